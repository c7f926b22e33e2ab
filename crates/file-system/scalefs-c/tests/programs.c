/* What programs of several processes, threads and mappings want, and how it refuses what cannot be. Prints nothing and returns 0
 * if all is right. What has a call of the host's own is compared with it in same/same.c. */
#define _POSIX_C_SOURCE 200809L
#include "scalefs.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            fprintf(stderr, "line %d: %s; reason: %s\n", __LINE__, #condition, scalefs_reason()); \
            return 1;                                                 \
        }                                                             \
    } while (0)
#define REFUSED(call, text) CHECK((call) == -EINVAL && strstr(scalefs_reason(), text) != NULL)

static scalefs_instance *instance;
static scalefs_thread *me;
static scalefs_process *us;
static const uint32_t flags = SCALEFS_READ | SCALEFS_WRITE | SCALEFS_CREATE;

static int children(void) {
    int status = -1;
    scalefs_process *child = NULL;
    CHECK(scalefs_mkdir(me, us, "/d", 0755) == 0);
    CHECK(scalefs_open(me, us, "/kept", flags, 0644) == 0);
    CHECK(scalefs_open(me, us, "/closed", flags | SCALEFS_CLOSE_ON_EXEC, 0644) == 1);
    scalefs_action actions[] = {
        {SCALEFS_ACTION_CHDIR, 0, 0, 0, 0, "/d"},
        {SCALEFS_ACTION_OPEN, 5, 0, SCALEFS_WRITE | SCALEFS_CREATE | SCALEFS_APPEND, 0640, "new"},
        {SCALEFS_ACTION_DUPLICATE, 5, 7, 0, 0, NULL},
        {SCALEFS_ACTION_CLOSE, 5, 0, 0, 0, NULL},
    };
    CHECK(scalefs_spawn(me, us, actions, 4, 0, NULL, &child) == 0 && child != NULL);
    CHECK(scalefs_getppid(me, child) == scalefs_getpid(me, us) && scalefs_getpid(me, child) > 0 && scalefs_getppid(me, us) == 0);
    CHECK(scalefs_write(me, child, 7, "text", 4) == 4 && scalefs_write(me, child, 5, "x", 1) == -EBADF);
    CHECK(scalefs_fcntl(me, child, 7, SCALEFS_GET_FLAGS, 0) == (SCALEFS_WRITE | SCALEFS_APPEND));
    CHECK(scalefs_seek(me, child, 0, 0, 1) == 0 && scalefs_seek(me, child, 1, 0, 1) == -EBADF);
    char path[16];
    CHECK(scalefs_getcwd(me, child, path, sizeof path) == 3 && strcmp(path, "/d") == 0);
    CHECK(scalefs_access(me, us, "/d/new", 0) == 0);
    CHECK(scalefs_wait(me, us, SCALEFS_ANY_CHILD, &status) == 0 && status == -1);
    int64_t number = scalefs_getpid(me, child);
    CHECK(scalefs_wait(me, us, number, &status) == 0 && scalefs_wait(me, us, number + (1 << 28), &status) == -ECHILD);
    CHECK(scalefs_process_exit_with(me, child, 3) == 0 && scalefs_wait(me, us, number, &status) == number && status == 3 << 8);
    CHECK(scalefs_wait(me, us, SCALEFS_ANY_CHILD, NULL) == -ECHILD);

    const uint32_t groups[] = {7, 8};
    scalefs_credentials who = {5, 6, 2, groups};
    CHECK(scalefs_spawn(me, us, NULL, 0, SCALEFS_SPAWN_NOTHING, &who, &child) == 0);
    CHECK(scalefs_seek(me, child, 0, 0, 1) == -EBADF);
    scalefs_process *other = NULL;
    CHECK(scalefs_spawn(me, child, NULL, 0, 0, &who, &other) == -EPERM && other == NULL);
    CHECK(scalefs_process_exit(me, child) == 0 && scalefs_wait(me, us, SCALEFS_ANY_CHILD, NULL) > 0);

    CHECK(scalefs_fork(me, us, &child) == 0 && scalefs_seek(me, child, 1, 0, 1) == 0);
    CHECK(scalefs_exec(me, child) == 0 && scalefs_seek(me, child, 1, 0, 1) == -EBADF && scalefs_seek(me, child, 0, 0, 1) == 0);
    CHECK(scalefs_process_exit(me, child) == 0 && scalefs_wait(me, us, SCALEFS_ANY_CHILD, NULL) > 0);

    actions[1].flags |= SCALEFS_ANY_NUMBER;
    other = child;
    REFUSED(scalefs_spawn(me, us, actions, 4, 0, NULL, &child), "a flag");
    actions[1] = (scalefs_action){99, 0, 0, 0, 0, NULL};
    REFUSED(scalefs_spawn(me, us, actions, 4, 0, NULL, &child), "an action of spawn that there is not");
    REFUSED(scalefs_spawn(me, us, NULL, 4, 0, NULL, &child), "is NULL");
    REFUSED(scalefs_spawn(me, us, actions, 1u << 31, 0, NULL, &child), "a count of 2147483648, expected at most 1048576");
    actions[0].path = NULL;
    REFUSED(scalefs_spawn(me, us, actions, 1, 0, NULL, &child), "a path is NULL");
    actions[0].path = "/absent";
    CHECK(scalefs_spawn(me, us, actions, 1, 0, NULL, &child) == -ENOENT && child == other);
    REFUSED(scalefs_spawn(me, us, NULL, 0, 2, NULL, &child), "a flag");
    REFUSED(scalefs_spawn(me, us, NULL, 0, 0, NULL, NULL), "place for an answer");
    REFUSED(scalefs_fork(me, us, NULL), "place for an answer");
    REFUSED(scalefs_wait(me, us, -2, NULL), "below 0");
    who.group_count = 33;
    REFUSED(scalefs_spawn(me, us, NULL, 0, 0, &who, &child), "a count of 33, expected at most 32");
    CHECK(scalefs_process_new_as(me, &who) == NULL && scalefs_process_new_as(me, NULL) == NULL);
    CHECK(scalefs_close(me, us, 0) == 0 && scalefs_close(me, us, 1) == 0);
    return 0;
}

static int windows(void) {
    int fd = scalefs_open(me, us, "/mapped", flags, 0644);
    CHECK(fd == 0 && scalefs_truncate(me, us, fd, 8192) == 0);
    int64_t window = scalefs_window(me, us, 16);
    CHECK(window > 0 && scalefs_window(me, us, 16) == -ENOMEM);
    const uint32_t both = SCALEFS_READ | SCALEFS_WRITE;
    CHECK(scalefs_mmap(me, us, window, 8192, both, SCALEFS_MAP_SHARED | SCALEFS_MAP_FIXED, fd, 0) == window);
    CHECK(scalefs_mmap(me, us, window, 4096, both, SCALEFS_MAP_SHARED | SCALEFS_MAP_FIXED_NOREPLACE, fd, 0) == -EEXIST);
    CHECK(scalefs_touch(me, us, window, SCALEFS_WRITE) == 0);
    char *memory = (char *)window;
    strcpy(memory, "by a store of the program");
    char read[16] = "";
    CHECK(scalefs_pread(me, us, fd, read, 10, 0) == 10 && strcmp(read, "by a store") == 0);
    CHECK(scalefs_touch(me, us, window + 8192, SCALEFS_READ) == -EFAULT && strstr(scalefs_reason(), "SIGSEGV") != NULL);
    CHECK(scalefs_truncate(me, us, fd, 4096 + 1) == 0 && scalefs_touch(me, us, window + 4096, SCALEFS_WRITE) == -EFAULT);
    CHECK(strstr(scalefs_reason(), "ends within the page") != NULL);
    CHECK(scalefs_truncate(me, us, fd, 4096) == 0 && scalefs_touch(me, us, window + 4096, SCALEFS_READ) == -EFAULT);
    CHECK(strstr(scalefs_reason(), "SIGBUS") != NULL);
    CHECK(scalefs_load(me, us, window + 4096, read, 1) == -EFAULT && strstr(scalefs_reason(), "SIGBUS") != NULL);
    REFUSED(scalefs_touch(me, us, window, 0), "a flag");
    REFUSED(scalefs_mmap(me, us, 0, 4096, both, 0, fd, 0), "mmap wants");
    REFUSED(scalefs_mmap(me, us, 0, 4096, 4, SCALEFS_MAP_SHARED, fd, 0), "a flag");
    REFUSED(scalefs_mremap(me, us, window, 4096, 8192, 2, 0), "a flag");
    REFUSED(scalefs_load(me, us, window, NULL, 1), "a buffer is NULL");
    CHECK(scalefs_mremap(me, us, window, 4096, 4096, SCALEFS_REMAP_MAYMOVE | SCALEFS_REMAP_FIXED, window + 32768) == window + 32768);
    CHECK(scalefs_load(me, us, window + 32768, read, 2) == 0 && memcmp(read, "by", 2) == 0);
    CHECK(scalefs_munmap(me, us, window + 32768, 4096) == 0 && scalefs_close(me, us, fd) == 0);
    scalefs_instance *plain = scalefs_create(2u << 20, 8, 1, 1);
    scalefs_thread *there = scalefs_attach(plain, 0);
    CHECK(scalefs_window(there, scalefs_process_new(there, 0, 0), 1) == -ENOMEM);
    scalefs_detach(there);
    CHECK(scalefs_destroy(plain) == 0);
    return 0;
}

static int ends[2];

/* Writes after the other thread has begun to wait, most likely; else that one finds the byte at once. */
static void *write_later(void *process) {
    scalefs_thread *thread = scalefs_attach(instance, 1);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    scalefs_write(thread, process, ends[1], "x", 1);
    scalefs_detach(thread);
    return NULL;
}

static int wait_in_callback(const char *name, size_t length, uint64_t number, void *answer) {
    (void)name, (void)length, (void)number;
    scalefs_poll_entry entry = {ends[0], SCALEFS_POLL_IN, 0};
    *(int *)answer = scalefs_poll(me, us, &entry, 1, -1);
    return 0;
}

static int waiting(void) {
    CHECK(scalefs_pipe(me, us, ends, 0) == 0);
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, write_later, us) == 0);
    scalefs_poll_entry entries[2] = {{-1, SCALEFS_POLL_IN, 9}, {ends[0], SCALEFS_POLL_IN, 9}};
    CHECK(scalefs_poll(me, us, entries, 2, -1) == 1 && entries[0].found == 0 && entries[1].found == SCALEFS_POLL_IN);
    pthread_join(writer, NULL);
    CHECK(scalefs_read(me, us, ends[0], entries, 1) == 1 && scalefs_poll(me, us, entries, 2, 1) == 0);
    CHECK(scalefs_poll(me, us, NULL, 0, 0) == 0);
    REFUSED(scalefs_poll(me, us, NULL, 1, 0), "is NULL");
    REFUSED(scalefs_poll(me, us, entries, 1u << 30, -1), "a count of 1073741824");
    int answer = 0;
    uint64_t cookie = 0;
    CHECK(scalefs_list(me, us, "/", &cookie, wait_in_callback, &answer) == 1 && answer == -EDEADLK);
    CHECK(strstr(scalefs_reason(), "a callback does not wait") != NULL);
    CHECK(scalefs_close(me, us, ends[0]) == 0 && scalefs_close(me, us, ends[1]) == 0);
    return 0;
}

static int refusals(void) {
    int fd = scalefs_open(me, us, "/any", flags | SCALEFS_ANY_NUMBER, 0644);
    CHECK(fd >= 1 << 20 && scalefs_close(me, us, fd) == 0);
    int both[2];
    CHECK(scalefs_socketpair(me, us, both, SCALEFS_UNORDERED | SCALEFS_CLOSE_ON_EXEC) == 0);
    CHECK(scalefs_sendto(me, us, both[0], "x", 1, NULL, 0) == 1 && scalefs_fcntl(me, us, both[1], SCALEFS_GET_ON_EXEC, 0) == 1);
    char byte;
    REFUSED(scalefs_recvfrom(me, us, both[1], &byte, 1, &byte, NULL), "place for an answer");
    CHECK(scalefs_recvfrom(me, us, both[1], &byte, 1, NULL, NULL) == 1 && byte == 'x');
    char name[108] = {0};
    REFUSED(scalefs_bind(me, us, both[0], name, 0), "a name of a socket of 0 bytes, or of more than 107");
    REFUSED(scalefs_bind(me, us, both[0], name, 108), "more than 107");
    REFUSED(scalefs_bind(me, us, both[0], NULL, 5), "a buffer is NULL");
    CHECK(scalefs_bind(me, us, both[0], name, 107) == 0 && scalefs_getsockname(me, us, both[0], name, 3) == 107);
    REFUSED(scalefs_socket(me, us, SCALEFS_APPEND), "a flag");
    REFUSED(scalefs_socketpair(me, us, NULL, 0), "place for an answer");
    CHECK(scalefs_close(me, us, both[0]) == 0 && scalefs_close(me, us, both[1]) == 0);

    int root = scalefs_open(me, us, "/", SCALEFS_READ, 0);
    char buffer[64];
    REFUSED(scalefs_getdents(me, us, root, buffer, 10), "no room for the next name");
    REFUSED(scalefs_getdents(me, us, root, NULL, 64), "a buffer is NULL");
    CHECK(offsetof(scalefs_entry, name) == 19 && scalefs_getdents(me, us, root, buffer, 64) == 48);
    /* Whoever has come to the end is there, whatever is made since. */
    char all[1024];
    CHECK(scalefs_getdents(me, us, root, all, sizeof all) > 0 && scalefs_getdents(me, us, root, all, sizeof all) == 0);
    CHECK(scalefs_mkdir(me, us, "/later", 0755) == 0 && scalefs_getdents(me, us, root, all, sizeof all) == 0);
    CHECK(scalefs_seek(me, us, root, 0, 1) == INT64_MAX && scalefs_seek(me, us, root, 0, 0) == 0);
    CHECK(scalefs_getdents(me, us, root, all, sizeof all) > 0);
    REFUSED(scalefs_getcwd(me, us, NULL, 5), "a buffer is NULL");
    CHECK(scalefs_getcwd(me, us, NULL, 0) == -ERANGE && scalefs_getcwd(me, us, buffer, 2) == 2 && strcmp(buffer, "/") == 0);
    REFUSED(scalefs_truncateat(me, us, SCALEFS_AT_CWD, NULL, 0), "a path is NULL");
    REFUSED(scalefs_futimens(me, us, root, 0, 0, 5), "to what is given and to the present");
    REFUSED(scalefs_futimens(me, us, root, 0, 0, 16), "a flag");
    REFUSED(scalefs_dup3(me, us, root, root, 0), "dup3 of a number to itself");
    REFUSED(scalefs_dup3(me, us, root, 9, SCALEFS_APPEND), "a flag");
    REFUSED(scalefs_open(me, us, "/", 1u << 30, 0), "a flag");
    CHECK(scalefs_umask(me, NULL, 0) == -EINVAL);

    /* In a transaction none of these is a part of it. */
    scalefs_process *child = NULL;
    CHECK(scalefs_xbegin(me, us, 0) == 0);
    CHECK(scalefs_umask(me, us, 0) == -EOPNOTSUPP && scalefs_fork(me, us, &child) == -EOPNOTSUPP && child == NULL);
    CHECK(scalefs_exec(me, us) == -EOPNOTSUPP && scalefs_fchmod(me, us, root, 0700) == -EOPNOTSUPP);
    CHECK(scalefs_getdents(me, us, root, buffer, 64) == -EOPNOTSUPP && scalefs_getpid(me, us) == -EOPNOTSUPP);
    CHECK(scalefs_xabort(me, us) == 0);
    CHECK(scalefs_umask(me, us, 0777) == 022 && scalefs_umask(me, us, 022) == 0777);
    return 0;
}

int main(void) {
    instance = scalefs_create_mappable(16u << 20, 64, 2, 1);
    CHECK(instance != NULL && scalefs_create_mappable(1, 1, 1, 1) == NULL);
    me = scalefs_attach(instance, 0);
    us = scalefs_process_new(me, 0, 0);
    if (children() != 0 || windows() != 0 || waiting() != 0 || refusals() != 0) return 1;
    CHECK(scalefs_process_exit(me, us) == 0);
    scalefs_detach(me);
    CHECK(scalefs_destroy(instance) == 0);
    return 0;
}
