
static void do_read(struct result *result, int fd)
{
    char bytes[PAGE];
    ssize_t count = read(fd, bytes, PAGE);
    if (count < 0) {
        result->error = errno;
        return;
    }
@FIELDS@
}
