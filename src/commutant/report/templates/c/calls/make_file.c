
static void do_make_file(struct result *result, long file, long length)
{
    char path[8192];
    struct stat status;
    scratch_path(path, file);
    int held = HELD_FILE + (int)file;
    if (move_to(open(path, O_RDWR | O_CREAT | O_EXCL, 0666), held) < 0 || (length && ftruncate(held, length * PAGE) < 0) ||
        fstat(held, &status) < 0)
        result->error = errno;
    else
        add_item(result, CHOSEN, NULL, "Inum", INODE(&status));
}
