
static void do_forget_file(struct result *result, long file)
{
    char path[8192];
    scratch_path(path, file);
    close(HELD_FILE + (int)file);
    give_nothing(result, unlink(path));
}
