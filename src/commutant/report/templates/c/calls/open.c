
static void do_open(struct result *result, const char *name, int flags)
{
    int descriptor = open(name, O_RDWR | flags, 0666);
    give_status(result, descriptor < 0 ? -1 : 0); /* which descriptor it is does not matter here */
    if (descriptor >= 0)
        close(descriptor);
}
