
static void do_mmap(struct result *result, int fixed, long number, int anonymous, int shared_mapping, int writable,
                    int fd, long page_of_file)
{
    int kind = anonymous ? MAP_PRIVATE | MAP_ANONYMOUS : shared_mapping ? MAP_SHARED : MAP_PRIVATE;
    void *address = mmap(fixed ? page_address(number) : NULL, PAGE, PROT_READ | (writable ? PROT_WRITE : 0),
                         kind | (fixed ? MAP_FIXED : 0), anonymous ? -1 : fd, anonymous ? 0 : page_of_file * PAGE);
    if (address == MAP_FAILED) {
        result->error = errno;
        return;
    }
    if (!fixed)
        picked[current_step()] = address;
    add_address(result, NULL, address);
}
