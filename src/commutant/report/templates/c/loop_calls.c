
/* ---- The calls, each as often as it can be. ---- */

enum { KEPT = 900 }; /* descriptors that calls are given again from */

static _Thread_local char bytes[PAGE];
static _Thread_local unsigned long long failures; /* calls that did not return what they do in the test */

__attribute__((unused)) static void must(int status)
{
    failures += status < 0;
}

__attribute__((unused)) static int seek(int fd, off_t offset, int whence)
{
    return lseek(fd, offset, whence) < 0 ? -1 : 0;
}

/* Reads a byte of a page or, with data, writes one; -1 if that raises a signal. */
__attribute__((unused)) static int touch_once(char *address, long data)
{
    if (sigsetjmp(escape, 0))
        return -1;
    if (data < 0)
        bytes[0] = *(volatile char *)address;
    else
        *(volatile char *)address = (char)data;
    return 0;
}

