
static void do_lseek(struct result *result, int fd, long offset, int whence)
{
    off_t reached = lseek(fd, offset * PAGE, whence);
    give_status(result, reached < 0 ? -1 : reached / PAGE);
}
