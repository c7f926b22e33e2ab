
static void do_memwrite(struct result *result, long number, long data)
{
    int raised = touch(page_address(number), data, NULL);
    add_item(result, raised ? SIGNAL : NUMBER, NULL, NULL, raised);
}
