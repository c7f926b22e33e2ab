
static void do_pipe(struct result *result)
{
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) < 0) {
        result->error = errno;
        return;
    }
@FIELDS@
}
