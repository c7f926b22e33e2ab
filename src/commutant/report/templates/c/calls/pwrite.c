
static void do_pwrite(struct result *result, int fd, long number, long data)
{
    ssize_t count = pwrite(fd, fill(data), PAGE, number * PAGE);
    give_status(result, count < 0 ? -1 : count / PAGE);
}
