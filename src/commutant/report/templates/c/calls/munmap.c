
static void do_munmap(struct result *result, long number)
{
    give_status(result, munmap(page_address(number), PAGE));
}
