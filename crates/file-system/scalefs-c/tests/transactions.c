/* Transactions of a thread beside calls of another: all or nothing, and what is refused. */
#include "scalefs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EEXIST 17
#define EINVAL 22
#define EOPNOTSUPP 95
#define ECANCELED 125

static void expect(long came, long expected, const char *what, int line) {
    if (came != expected) {
        fprintf(stderr, "line %d: %s gave %ld, expected %ld (%s)\n", line, what, came, expected, scalefs_reason());
        exit(1);
    }
}
#define EXPECT(call, expected) expect(call, expected, #call, __LINE__)

int main(void) {
    scalefs_instance *files = scalefs_create(64u << 20, 1024, 2, 1);
    scalefs_thread *me = scalefs_attach(files, 0), *other = scalefs_attach(files, 1);
    scalefs_process *process = scalefs_process_new(me, 0, 0);

    /* All of it happens at the end, and nobody sees it before. */
    EXPECT(scalefs_xbegin(me, process, SCALEFS_TX_DEFAULTS), 0);
    EXPECT(scalefs_mkdir(me, process, "etc", 0755), 0);
    EXPECT(scalefs_mknod(me, process, "etc/passwd", 0644), 0);
    EXPECT(scalefs_mknod(me, process, "etc/shadow", 0600), 0);
    EXPECT(scalefs_rename(me, process, "etc/shadow", "etc/gshadow", SCALEFS_REPLACE), 0);
    EXPECT(scalefs_access(me, process, "etc/gshadow", 0), 0);
    EXPECT(scalefs_access(other, process, "etc", 0), -2);
    EXPECT(scalefs_xend(me, process), 0);
    EXPECT(scalefs_access(other, process, "etc/passwd", 0), 0);
    EXPECT(scalefs_access(other, process, "etc/shadow", 0), -2);

    /* Nothing happens of one that is aborted, or has failed in the meantime. */
    EXPECT(scalefs_xbegin(me, process, SCALEFS_TX_NO_AUTO_RETRY), 0);
    EXPECT(scalefs_unlink(me, process, "etc/passwd"), 0);
    EXPECT(scalefs_xabort(me, process), 0);
    EXPECT(scalefs_access(me, process, "etc/passwd", 0), 0);
    EXPECT(scalefs_xbegin(me, process, 0), 0);
    EXPECT(scalefs_access(me, process, "lock", 0), -2);
    EXPECT(scalefs_mknod(me, process, "work", 0644), 0);
    EXPECT(scalefs_mknod(other, process, "lock", 0644), 0);
    EXPECT(scalefs_xend(me, process), -ECANCELED);
    EXPECT(scalefs_access(me, process, "work", 0), -2);

    /* An error of a call does not end it. */
    EXPECT(scalefs_xbegin(me, process, 0), 0);
    EXPECT(scalefs_mknod(me, process, "lock", 0644), -EEXIST);
    EXPECT(scalefs_symlink(me, process, "lock", "way"), 0);
    EXPECT(scalefs_link(me, process, "lock", "lock-2"), 0);
    char target[8] = "";
    EXPECT(scalefs_readlink(me, process, "way", target, sizeof target), 4);
    EXPECT(memcmp(target, "lock", 4), 0);
    EXPECT(scalefs_xend(me, process), 0);

    /* Bad input. */
    EXPECT(scalefs_xend(me, process), -EINVAL);
    EXPECT(strstr(scalefs_reason(), "begun no transaction") != NULL, 1);
    EXPECT(scalefs_xabort(me, process), -EINVAL);
    EXPECT(scalefs_xbegin(me, process, 16), -EINVAL);
    EXPECT(scalefs_xbegin(NULL, process, 0), -EINVAL);
    EXPECT(scalefs_xbegin(me, process, 0), 0);
    EXPECT(scalefs_xbegin(me, process, 0), -EINVAL);
    EXPECT(scalefs_open(me, process, "f", SCALEFS_CREATE, 0644), -EOPNOTSUPP);
    EXPECT(strstr(scalefs_reason(), "end it first") != NULL, 1);
    EXPECT(scalefs_xend(other, process), -EINVAL); /* another thread's */
    EXPECT(scalefs_mknod(me, process, "after", 0644), 0);
    EXPECT(scalefs_xend(me, process), 0);
    EXPECT(scalefs_access(other, process, "after", 0), 0);

    EXPECT(scalefs_process_exit(me, process), 0);
    scalefs_detach(me);
    scalefs_detach(other);
    return scalefs_destroy(files);
}
