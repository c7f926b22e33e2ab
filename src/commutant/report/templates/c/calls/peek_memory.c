
static void do_peek_memory(struct result *result)
{
    char *addresses[NAMED_PAGES + 256];
    int count = mapped_pages(addresses);
    add_item(result, BEGIN_LIST, NULL, NULL, 0);
    for (int i = 0; i < count; i++) {
        int content = 0, raised = touch(addresses[i], -1, &content);
        add_item(result, BEGIN, NULL, NULL, 0);
        add_address(result, "address", addresses[i]);
        add_item(result, raised ? SIGNAL : NUMBER, "content", NULL, raised ? raised : content);
        add_item(result, END, NULL, NULL, 0);
    }
    add_item(result, END, NULL, NULL, 0);
}
