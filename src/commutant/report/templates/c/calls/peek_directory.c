
static void do_peek_directory(struct result *result, const char *parent, int with_times)
{
    char path[8192];
    struct dirent **entries = NULL;
    struct stat status;
    path_of(path, parent, "");
    int count = scandir(path, &entries, NULL, alphasort);
    add_item(result, BEGIN_LIST, NULL, NULL, 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        path_of(path, parent, name);
        int file = open(path, O_RDONLY);
        if (file < 0 || fstat(file, &status) < 0)
            _exit(3);
        add_item(result, BEGIN, NULL, NULL, 0);
        add_item(result, TEXT, "name", NULL, 0);
        snprintf(result->items[result->count - 1].text, sizeof result->items->text, "%.65s", name);
        add_stat(result, &status, with_times);
        add_pages(result, file);
        add_item(result, END, NULL, NULL, 0);
        close(file);
    }
    add_item(result, END, NULL, NULL, 0);
}
