
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- What a call returned: an error, or items, of which CHOSEN ones (inode numbers) are the kernel's own choice. A
 * structure or a list is its items between a BEGIN and an END. ---- */

enum kind { NUMBER, FLAG, CHOSEN, TIME, NOTHING, SIGNAL, TEXT, BEGIN, BEGIN_LIST, END };

struct item {
    enum kind kind;
    const char *name; /* of a field; NULL for a plain result */
    const char *sort; /* of a CHOSEN value */
    long long value;
    char text[66];
};

enum { MOST_ITEMS = 1024 };

struct result {
    int error;
    int count;
    struct item items[MOST_ITEMS];
};

/* Files and pipes are numbered by file systems of their own. */
#define INODE(status) ((long long)(status)->st_ino ^ (long long)(status)->st_dev << 40)
#define NANOSECONDS(time) ((time).tv_sec * 1000000000LL + (time).tv_nsec)

static char directory[4096]; /* where the program works */
static pid_t first_process;  /* the process that holds what the set-up makes */

__attribute__((unused)) static int current_step(void);

__attribute__((unused)) static void add_item(struct result *result, enum kind kind, const char *name, const char *sort,
                                             long long value)
{
    if (result->count == MOST_ITEMS)
        _exit(3);
    result->items[result->count++] = (struct item){.kind = kind, .name = name, .sort = sort, .value = value};
}

__attribute__((unused)) static void give_status(struct result *result, long long status)
{
    if (status < 0)
        result->error = errno;
    else
        add_item(result, NUMBER, NULL, NULL, status);
}

__attribute__((unused)) static void give_nothing(struct result *result, long long status)
{
    if (status < 0)
        result->error = errno;
    else
        add_item(result, NOTHING, NULL, NULL, 0);
}

/* ---- The calls. ---- */
