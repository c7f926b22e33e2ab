
static void do_access(struct result *result, const char *name)
{
    give_status(result, access(name, F_OK));
}
