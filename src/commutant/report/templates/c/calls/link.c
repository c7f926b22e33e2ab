
static void do_link(struct result *result, const char *old, const char *new)
{
    give_status(result, link(old, new));
}
