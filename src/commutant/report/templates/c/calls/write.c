
static void do_write(struct result *result, int fd, long data)
{
    ssize_t count = write(fd, fill(data), PAGE);
    give_status(result, count < 0 ? -1 : count / PAGE);
}
