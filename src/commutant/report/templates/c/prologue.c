
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
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

/* ---- What a call returned: an error, or items, of which CHOSEN ones (inode numbers) are the kernel's own choice. ---- */

enum { MOST_ITEMS = 8 };

enum kind { NUMBER, CHOSEN };

struct item {
    enum kind kind;
    const char *name; /* of a field; NULL for a plain result */
    const char *sort; /* of a CHOSEN value */
    long long value;
};

struct result {
    int error;
    int count;
    struct item items[MOST_ITEMS];
};

__attribute__((unused)) static void add_item(struct result *result, enum kind kind, const char *name, const char *sort,
                                             long long value)
{
    result->items[result->count++] = (struct item){kind, name, sort, value};
}

__attribute__((unused)) static void give_status(struct result *result, long long status)
{
    if (status < 0)
        result->error = errno;
    else
        add_item(result, NUMBER, NULL, NULL, status);
}

/* ---- The calls. ---- */
