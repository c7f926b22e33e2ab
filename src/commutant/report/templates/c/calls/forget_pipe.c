
static void do_forget_pipe(struct result *result, int number, int other_readers, int other_writers)
{
    if (!other_readers)
        close(HELD_PIPE + 2 * number);
    if (!other_writers)
        close(HELD_PIPE + 2 * number + 1);
    give_nothing(result, 0);
}
