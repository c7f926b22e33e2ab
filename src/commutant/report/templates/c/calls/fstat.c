
static void do_fstat(struct result *result, int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        result->error = errno;
        return;
    }
@FIELDS@
}
