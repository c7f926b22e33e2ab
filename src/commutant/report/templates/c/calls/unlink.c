
static void do_unlink(struct result *result, const char *name)
{
    give_status(result, unlink(name));
}
