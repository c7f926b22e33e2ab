
static void do_open_file(struct result *result, int fd, long file, int readable, int writable, long offset)
{
    char path[8192];
    scratch_path(path, file);
    int opened = move_to(open(path, access_mode(readable, writable)), fd);
    give_nothing(result, opened < 0 || (offset && lseek(fd, offset * PAGE, SEEK_SET) < 0) ? -1 : 0);
}
