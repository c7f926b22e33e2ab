
static void do_mprotect(struct result *result, long number, int writable)
{
    give_status(result, mprotect(page_address(number), PAGE, PROT_READ | (writable ? PROT_WRITE : 0)));
}
