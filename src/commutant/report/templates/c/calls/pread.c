
static void do_pread(struct result *result, int fd, long number)
{
    char bytes[PAGE];
    ssize_t count = pread(fd, bytes, PAGE, number * PAGE);
    if (count < 0) {
        result->error = errno;
        return;
    }
@FIELDS@
}
