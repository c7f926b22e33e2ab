/* The first and only process of the test's guest. It makes objects whose names the test knows, sends /proc/kallsyms to
 * the host byte by byte over QEMU's debug port, says that it is done, and waits forever.
 *
 * Freestanding, so that no C library is needed: cc -static -nostdlib -ffreestanding. */

static long call(long number, long a, long b, long c, long d, long e)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

enum { READ = 0, WRITE = 1, OPEN = 2, MMAP = 9, IOPL = 172, PIPE = 22, PAUSE = 34, MOUNT = 165, MKDIR = 83, DUP2 = 33, PRCTL = 157 };

static void send(const char *text, long length)
{
    __asm__ volatile("rep outsb" : "+S"(text), "+c"(length) : "d"(0xe9) : "memory");
}

static char buffer[65536];

void _start(void)
{
    int pipes[2];
    long symbols, count;

    call(PRCTL, 15, (long)"naming-test", 0, 0, 0); /* PR_SET_NAME */
    call(MKDIR, (long)"/proc", 0755, 0, 0, 0);
    call(MKDIR, (long)"/tmp", 0755, 0, 0, 0);
    call(MOUNT, (long)"proc", (long)"/proc", (long)"proc", 0, 0);
    call(MOUNT, (long)"tmpfs", (long)"/tmp", (long)"tmpfs", 0, 0);
    call(OPEN, (long)"/tmp/file", 0102, 0600, 0, 0); /* O_RDWR | O_CREAT: descriptor 0, 1 or what is free */
    call(PIPE, (long)pipes, 0, 0, 0, 0);
    call(WRITE, pipes[1], (long)"waits", 5, 0, 0);
    call(DUP2, pipes[0], 200, 0, 0, 0); /* more than 64 descriptors: a table of its own */
    call(IOPL, 3, 0, 0, 0, 0);
    symbols = call(OPEN, (long)"/proc/kallsyms", 0, 0, 0, 0);
    while ((count = call(READ, symbols, (long)buffer, sizeof(buffer), 0, 0)) > 0)
        send(buffer, count);
    send("\nREADY\n", 7); /* behind an empty line, which no symbol is: names that end so exist */
    for (;;)
        call(PAUSE, 0, 0, 0, 0, 0);
}
