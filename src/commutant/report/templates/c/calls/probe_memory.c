
static void do_probe_memory(struct result *result, long first)
{
    char *addresses[NAMED_PAGES + 256];
    int count = mapped_pages(addresses);
    add_item(result, BEGIN_LIST, NULL, NULL, 0);
    for (int i = 0; i < count; i++) {
        int raised = touch(addresses[i], first + i, NULL);
        add_item(result, raised ? SIGNAL : NOTHING, NULL, NULL, raised);
    }
    add_item(result, END, NULL, NULL, 0);
}
