
/* ---- What the set-up and the observation of a whole process need, of which a test may use a part. ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"

enum { PAGE = 4096, NAMED_PAGES = 256, TEST_DESCRIPTORS = 512, HELD_FILE = 512, HELD_PIPE = 640 };

static char page[PAGE];
static _Thread_local sigjmp_buf escape;
static void *picked[256]; /* by step: the pages that mmap found a place for in this process */

static void *page_address(long number)
{
    return (void *)(0x600000000000UL + (unsigned long)number * PAGE);
}

static const char *fill(long data)
{
    return memset(page, (int)data, PAGE);
}

/* What fills the page, or -1 if its bytes differ. */
static int content_of(const char *bytes)
{
    return memcmp(bytes, bytes + 1, PAGE - 1) == 0 ? (unsigned char)*bytes : -1;
}

static void path_of(char *path, const char *parent, const char *name)
{
    snprintf(path, 8192, "%s/%s/%s", directory, parent, name);
}

static void scratch_path(char *path, long file)
{
    snprintf(path, 8192, "%s/.file-%ld", directory, file);
}

static int move_to(int descriptor, int wanted)
{
    if (descriptor < 0 || descriptor == wanted)
        return descriptor;
    int moved = dup2(descriptor, wanted);
    close(descriptor);
    return moved;
}

static int open_again(pid_t process, int descriptor, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
    return open(path, flags | O_NONBLOCK);
}

static int access_mode(int readable, int writable)
{
    return readable ? writable ? O_RDWR : O_RDONLY : writable ? O_WRONLY : O_ACCMODE;
}

static void on_fault(int number)
{
    siglongjmp(escape, number);
}

/* Fills a page or, with data -1, looks at it; 0 or the signal. */
static int touch(char *address, long data, int *content)
{
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    int number = sigsetjmp(escape, 0);
    if (number)
        return number;
    if (data >= 0)
        for (int i = 0; i < PAGE; i++)
            ((volatile char *)address)[i] = (char)data;
    else
        *content = (*(volatile char *)address, content_of(address));
    return 0;
}

static void add_address(struct result *result, const char *name, char *address)
{
    long number = (address - (char *)page_address(0)) / PAGE;
    if (number >= 0 && number < NAMED_PAGES)
        add_item(result, NUMBER, name, NULL, number);
    else
        add_item(result, CHOSEN, name, "Address", (long long)address + ((long long)getpid() << 48));
}

static void add_stat(struct result *result, const struct stat *status, int times)
{
    add_item(result, BEGIN, "stat", NULL, 0);
    add_item(result, CHOSEN, "ino", "Inum", INODE(status));
    add_item(result, FLAG, "pipe", NULL, S_ISFIFO(status->st_mode));
    add_item(result, NUMBER, "nlink", NULL, (long long)status->st_nlink);
    add_item(result, NUMBER, "size", NULL, status->st_size / PAGE);
    add_item(result, times ? TIME : NOTHING, "mtime", NULL, NANOSECONDS(status->st_mtim));
    add_item(result, times ? TIME : NOTHING, "ctime", NULL, NANOSECONDS(status->st_ctim));
    add_item(result, END, NULL, NULL, 0);
}

static void add_pages(struct result *result, int descriptor)
{
    char bytes[PAGE];
    add_item(result, BEGIN_LIST, "contents", NULL, 0);
    for (off_t at = 0; pread(descriptor, bytes, PAGE, at) == PAGE; at += PAGE)
        add_item(result, NUMBER, NULL, NULL, content_of(bytes));
    add_item(result, END, NULL, NULL, 0);
}

/* The pages that wait in a pipe, which stay there. */
static void add_waiting(struct result *result, int descriptor)
{
    char bytes[PAGE];
    int copy[2];
    add_item(result, BEGIN_LIST, "contents", NULL, 0);
    if (pipe2(copy, O_NONBLOCK) < 0)
        _exit(3);
    tee(descriptor, copy[1], 16 * PAGE, SPLICE_F_NONBLOCK);
    while (read(copy[0], bytes, PAGE) == PAGE)
        add_item(result, NUMBER, NULL, NULL, content_of(bytes));
    close(copy[0]);
    close(copy[1]);
    add_item(result, END, NULL, NULL, 0);
}

/* The mapped pages of this process: those that tests name, then those that mmap found a place for, by call. */
static int mapped_pages(char **addresses)
{
    int count = 0;
    unsigned char present;
    for (long number = 0; number < NAMED_PAGES; number++)
        if (mincore(page_address(number), PAGE, &present) == 0)
            addresses[count++] = page_address(number);
    for (size_t step = 0; step < sizeof picked / sizeof *picked; step++)
        if (picked[step] && mincore(picked[step], PAGE, &present) == 0)
            addresses[count++] = picked[step];
    return count;
}

#pragma GCC diagnostic pop
