
static void do_close(struct result *result, int fd)
{
    give_status(result, close(fd));
}
