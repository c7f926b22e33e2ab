
static void do_make_pipe(struct result *result, int number)
{
    int ends[2];
    struct stat status;
    if (pipe2(ends, O_NONBLOCK) < 0 || move_to(ends[0], HELD_PIPE + 2 * number) < 0 ||
        move_to(ends[1], HELD_PIPE + 2 * number + 1) < 0 || fstat(HELD_PIPE + 2 * number, &status) < 0)
        result->error = errno;
    else
        add_item(result, CHOSEN, NULL, "Inum", INODE(&status));
}
