
static void do_open_number(struct result *result, const char *name, int flags, int readable, int writable)
{
    give_status(result, open(name, access_mode(readable, writable) | flags, 0666));
}
