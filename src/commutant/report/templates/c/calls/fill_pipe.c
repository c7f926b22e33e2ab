
static void do_fill_pipe(struct result *result, int number, long data)
{
    give_nothing(result, write(HELD_PIPE + 2 * number + 1, fill(data), PAGE));
}
