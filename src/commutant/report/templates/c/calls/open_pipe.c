
static void do_open_pipe(struct result *result, int fd, int number, int write_end)
{
    int held = HELD_PIPE + 2 * number + write_end;
    give_nothing(result, move_to(open_again(first_process, held, write_end ? O_WRONLY : O_RDONLY), fd));
}
