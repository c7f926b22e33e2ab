
static void do_map_file(struct result *result, long number, long file, long page_of_file, int shared_mapping, int writable,
                        int may_write)
{
    char path[8192];
    scratch_path(path, file);
    int fd = open(path, may_write ? O_RDWR : O_RDONLY);
    void *address = mmap(page_address(number), PAGE, PROT_READ | (writable ? PROT_WRITE : 0),
                         (shared_mapping ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED, fd, page_of_file * PAGE);
    give_nothing(result, address == MAP_FAILED ? -1 : 0);
    close(fd);
}
