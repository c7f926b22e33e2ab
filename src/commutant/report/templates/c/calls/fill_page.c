
static void do_fill_page(struct result *result, long file, long number, long data)
{
    give_nothing(result, pwrite(HELD_FILE + (int)file, fill(data), PAGE, number * PAGE));
}
