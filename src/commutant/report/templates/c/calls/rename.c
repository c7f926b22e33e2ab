
static void do_rename(struct result *result, const char *src, const char *dst)
{
    give_status(result, rename(src, dst));
}
