
static void do_memread(struct result *result, long number)
{
    int content = 0, raised = touch(page_address(number), -1, &content);
    add_item(result, raised ? SIGNAL : NUMBER, NULL, NULL, raised ? raised : content);
}
