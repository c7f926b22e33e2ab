
static void do_stat(struct result *result, const char *name)
{
    struct stat status;
    if (stat(name, &status) < 0) {
        result->error = errno;
        return;
    }
@FIELDS@
}
