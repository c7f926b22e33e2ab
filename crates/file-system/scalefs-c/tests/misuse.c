/* What cannot be is refused, and the reason is told. Prints nothing and returns 0 if all is right. */
#define _POSIX_C_SOURCE 200809L
#include "scalefs.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition)) {                                           \
            fprintf(stderr, "line %d: %s; reason: %s\n", __LINE__, #condition, scalefs_reason()); \
            return 1;                                                 \
        }                                                             \
    } while (0)

#define REFUSED(call, text) CHECK((call) == -EINVAL && strstr(scalefs_reason(), text) != NULL)
#define NONE(call, text) CHECK((call) == NULL && strstr(scalefs_reason(), text) != NULL)

static scalefs_instance *busy;
static atomic_int is_over, is_under_way;

static void *call_all_the_time(void *unused) {
    (void)unused;
    scalefs_thread *thread = scalefs_attach(busy, 1);
    scalefs_process *process = scalefs_process_new(thread, 0, 0);
    while (!atomic_load(&is_over)) {
        scalefs_mkdir(thread, process, "/d", 0755);
        scalefs_rmdir(thread, process, "/d");
        atomic_store(&is_under_way, 1);
    }
    scalefs_process_exit(thread, process);
    scalefs_detach(thread);
    return NULL;
}

/* In a child of fork, whatever other threads of its parent were doing. */
static int in_child(scalefs_thread *thread, scalefs_process *process) {
    REFUSED(scalefs_mkdir(thread, process, "/x", 0755), "a child makes one of its own");
    NONE(scalefs_attach(busy, 0), "a child makes one of its own");
    NONE(scalefs_process_new(thread, 0, 0), "a child makes one of its own");
    scalefs_instance *own = scalefs_create(2u << 20, 8, 1, 1);
    scalefs_thread *me = scalefs_attach(own, 0);
    scalefs_process *us = scalefs_process_new(me, 0, 0);
    CHECK(scalefs_mkdir(me, us, "/x", 0755) == 0);
    return 0;
}

int main(void) {
    NONE(scalefs_create(1, 1, 2, 1), "");
    CHECK(strlen(scalefs_reason()) > 10);
    NONE(scalefs_create(1u << 20, 8, 0, 1), "core");
    NONE(scalefs_attach(NULL, 0), "the instance is NULL");
    REFUSED(scalefs_destroy(NULL), "the instance is NULL");
    scalefs_instance *one = scalefs_create(2u << 20, 8, 2, 1), *other = scalefs_create(16u << 20, 8, 2, 1);
    scalefs_thread *me = scalefs_attach(one, 0), *there = scalefs_attach(other, 0);
    NONE(scalefs_attach(one, 0), "core 0:");
    NONE(scalefs_attach(one, 5), "core 5:");
    scalefs_process *us = scalefs_process_new(me, 0, 0);
    NONE(scalefs_process_new(NULL, 0, 0), "the thread is NULL");
    CHECK(scalefs_destroy(one) == -EBUSY && strstr(scalefs_reason(), "still attached: 1") != NULL);

    REFUSED(scalefs_mkdir(there, us, "/x", 0755), "of two instances");
    REFUSED(scalefs_process_exit(there, us), "of two instances");
    REFUSED(scalefs_mkdir(NULL, us, "/x", 0755), "the thread is NULL");
    REFUSED(scalefs_mkdir(me, NULL, "/x", 0755), "the process is NULL");
    REFUSED(scalefs_mkdir(me, us, NULL, 0755), "a path is NULL");
    int fd = scalefs_open(me, us, "/f", SCALEFS_READ | SCALEFS_WRITE | SCALEFS_CREATE, 0644);
    REFUSED(scalefs_read(me, us, fd, NULL, 1), "a buffer is NULL");
    REFUSED(scalefs_write(me, us, fd, "x", (size_t)PTRDIFF_MAX + 1), "above SSIZE_MAX");
    REFUSED(scalefs_open(me, us, "/f", 1u << 30, 0), "a flag");
    scalefs_status status = {.struct_size = sizeof status};
    REFUSED(scalefs_stat(me, us, "/f", 1, 1u << 30, &status), "a flag or field");
    REFUSED(scalefs_stat(me, us, "/f", 1, SCALEFS_ALL, NULL), "place for an answer");
    status.struct_size = 8;
    REFUSED(scalefs_stat(me, us, "/f", 1, SCALEFS_ALL, &status), "struct_size");
    /* A later version of the struct: what this library does not know stays as it is. */
    struct { scalefs_status status; uint64_t later; } larger = {.later = 7};
    larger.status.struct_size = sizeof larger;
    CHECK(scalefs_stat(me, us, "/f", 1, SCALEFS_ALL, &larger.status) == 0 && larger.later == 7);
    CHECK(larger.status.struct_size == sizeof larger && larger.status.link_count == 1);

    CHECK(scalefs_process_exit(me, us) == 0);
    REFUSED(scalefs_process_exit(me, us), "the process has exited");
    REFUSED(scalefs_mkdir(me, us, "/x", 0755), "the process has exited");
    scalefs_detach(me);
    REFUSED(scalefs_mkdir(me, us, "/x", 0755), "the thread was detached");
    scalefs_detach(me);
    scalefs_detach(NULL);
    CHECK(scalefs_destroy(one) == 0);

    busy = other;
    pthread_t caller;
    scalefs_process *process = scalefs_process_new(there, 0, 0);
    CHECK(pthread_create(&caller, NULL, call_all_the_time, NULL) == 0);
    while (!atomic_load(&is_under_way)) sched_yield();
    for (int forks = 0; forks < 20; forks++) {
        pid_t child = fork();
        if (child == 0) _exit(in_child(there, process));
        int ended;
        CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    atomic_store(&is_over, 1);
    pthread_join(caller, NULL);
    /* What the caller has given up waited for this core. */
    for (int rounds = 0; rounds < 8; rounds++) scalefs_maintain(there);
    CHECK(scalefs_mkdir(there, process, "/after", 0755) == 0);
    scalefs_detach(there);
    CHECK(scalefs_destroy(other) == 0);
    return 0;
}
