/* The init of a guest with sharing planted on purpose: what the tracer's tests on a machine trace.
 *
 * Workers: 0 (CPU 0) and 1 (CPU 1) are threads of this process, 2 (CPU 1) is another process. Those that have a part in a
 * scenario wait for their turns in user space, the others sleep. The coordinator stands on CPU 2. Each scenario runs WINDOWS
 * windows, in each of which its callers make one call, one after the other. The console gets `scenario NAME`, in order.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

enum { WINDOWS = 6, PAGE = 4096, WORKERS = 3, IDLE = -1, LEAVE = -2, NOBODY = -1 };
enum { WINDOW_OPEN = 0x10, CALL_BEGIN, CALL_END, WINDOW_CLOSE, FLUSH, THREAD };

#define MARKER(code) asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, %c0, 0x52, 0x54, 0x4d" ::"i"(code) : "memory")

/* Addresses of the window in which user accesses count. */
static char *const private_page = (char *)0x600000000000;
static char *const shared_page = (char *)0x600000001000;
static char *const unmapped_later = (char *)0x600000002000;
static char *const border = (char *)0x600000011000; /* between two pages that lie apart in memory */

/* What the coordinator and all workers share. */
struct control {
    _Atomic int turn, done, present, competitor_runs, competitor_rounds;
    _Alignas(64) _Atomic long counter;
};
static struct control *control;
static int descriptor, wake[WORKERS + 1][2];

static void stand_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) abort();
}

static void *map(char *address, size_t size, int flags) {
    void *memory = mmap(address, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | (address ? MAP_FIXED : 0), -1, 0);
    if (memory == MAP_FAILED) abort();
    memset(memory, 1, size);
    return memory;
}

static void compute(void) {
    unsigned long long start = __rdtsc();
    while (__rdtsc() - start < 40000000) {
    }
}

enum scenario { GETPPID, FSTAT, USER_FALSE, USER_TRUE, USER_PRIVATE, USER_BORDER, RUNNER, SHOOT_DOWN, TIMER, YIELD, CREATE, SCENARIOS };
/* `callers` call; `present` wait in user space on their CPUs without calling. */
static const struct { const char *name; int callers[2], present[2]; } scenarios[SCENARIOS] = {
    [GETPPID] = {"getppid", {0, 1}, {0, 1}},
    [FSTAT] = {"fstat", {0, 1}, {0, 1}},
    [USER_FALSE] = {"user-false", {0, 1}, {0, 1}},
    [USER_TRUE] = {"user-true", {0, 2}, {0, 2}},
    [USER_PRIVATE] = {"user-private", {0, 2}, {0, 2}},
    [USER_BORDER] = {"user-border", {0, 2}, {0, 2}},
    [RUNNER] = {"runner", {0, 1}, {0, 1}},
    [SHOOT_DOWN] = {"shoot-down", {0, NOBODY}, {0, 1}},
    [TIMER] = {"timer", {0, 1}, {0, 1}},
    [YIELD] = {"yield", {0, 1}, {0, 1}},
    [CREATE] = {"create", {0, 1}, {0, 1}},
};

/* Under FIFO a task that yields lets the other run at once; from Linux 6.6 on an ordinary one goes on to the end of its slice. */
static void schedule_by(int policy) {
    struct sched_param parameter = {.sched_priority = policy == SCHED_FIFO};
    if (sched_setscheduler(0, policy, &parameter)) abort();
}

static long yield_to_competitor(void) {
    int before = control->competitor_rounds;
    while (control->competitor_rounds == before) sched_yield();
    return 0;
}

static void call(enum scenario scenario, int worker) {
    struct stat status;
    switch (scenario) {
    case GETPPID: syscall(SYS_getppid); break;
    case FSTAT: syscall(SYS_fstat, descriptor, &status); break;
    case USER_FALSE: ((volatile long *)private_page)[worker] += 1; break;
    case USER_TRUE: *(volatile long *)shared_page += 1; break;
    case USER_PRIVATE: *(volatile long *)private_page += 1; break;
    case USER_BORDER: *(volatile long *)(border - (worker == 0 ? 4 : 0)) += 1; break;
    case RUNNER: control->counter += 1; break;
    case SHOOT_DOWN: munmap(unmapped_later, PAGE); break;
    case TIMER: compute(); break;
    case YIELD: worker == 0 ? yield_to_competitor() : syscall(SYS_fstat, descriptor, &status); break;
    case CREATE: close(open(worker ? "/b" : "/a", O_CREAT | O_RDWR, 0600)); break;
    default: abort();
    }
}

static void sleep_until_woken(int sleeper) {
    char byte;
    if (read(wake[sleeper][0], &byte, 1) != 1) abort();
}

static void wake_up(int sleeper) {
    if (write(wake[sleeper][1], "", 1) != 1) abort();
}

static void take_turns(int worker) {
    for (;;) {
        int turn = control->turn;
        if (turn == LEAVE) return;
        if (turn == IDLE || turn % 4 != worker) {
            asm volatile("pause");
            continue;
        }
        enum scenario scenario = turn / 4;
        volatile char touched = scenario == SHOOT_DOWN ? *unmapped_later : 0;
        (void)touched;
        MARKER(CALL_BEGIN);
        call(scenario, worker);
        MARKER(CALL_END);
        control->turn = IDLE;
        control->done += 1;
    }
}

static _Noreturn void *work(void *argument) {
    int worker = (int)(long)argument;
    stand_on(worker == 0 ? 0 : 1);
    memset(private_page, 2, PAGE);
    memset(border - PAGE, 2, 2 * PAGE);
    MARKER(THREAD);
    for (;;) {
        sleep_until_woken(worker);
        schedule_by(worker == 0 && control->competitor_runs ? SCHED_FIFO : SCHED_OTHER);
        control->present += 1;
        take_turns(worker);
        control->present -= 1;
    }
}

/* A task on CPU 0 that is not a worker. */
static _Noreturn void compete(void) {
    stand_on(0);
    schedule_by(SCHED_FIFO);
    for (;;) {
        sleep_until_woken(WORKERS);
        while (control->competitor_runs) {
            close(dup(descriptor)); // another reference, so that every kernel writes the file's count
            control->competitor_rounds += 1;
            sched_yield();
        }
    }
}

static void run_turn(enum scenario scenario, int worker) {
    int before = control->done;
    control->turn = scenario * 4 + worker;
    while (control->done == before) asm volatile("pause");
}

int main(void) {
    stand_on(2);
    control = memset(map(NULL, PAGE, MAP_SHARED), 0, PAGE);
    control->turn = LEAVE;
    map(private_page, PAGE, MAP_PRIVATE);
    map(border, PAGE, MAP_SHARED);
    map(shared_page, PAGE, MAP_SHARED);
    map(border - PAGE, PAGE, MAP_SHARED);
    descriptor = open("/", O_RDONLY);
    for (int sleeper = 0; sleeper <= WORKERS; sleeper++)
        if (pipe(wake[sleeper])) abort();
    if (fork() == 0) work((void *)2L);
    if (fork() == 0) compete();
    for (long worker = 0; worker < 2; worker++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)worker)) abort();
    }
    for (enum scenario scenario = 0; scenario < SCENARIOS; scenario++) {
        printf("scenario %s\n", scenarios[scenario].name);
        fflush(stdout);
        control->turn = IDLE;
        control->competitor_runs = scenario == YIELD;
        for (int position = 0; position < 2; position++) wake_up(scenarios[scenario].present[position]);
        while (control->present < 2) sched_yield();
        if (scenario == YIELD) wake_up(WORKERS); /* behind the worker, which it would not let run else */
        for (int window = 0; window < WINDOWS; window++) {
            if (scenario == SHOOT_DOWN) map(unmapped_later, PAGE, MAP_PRIVATE);
            if (scenario == CREATE) {
                unlink("/a");
                unlink("/b");
            }
            MARKER(WINDOW_OPEN);
            for (int position = 0; position < 2; position++) {
                int worker = scenarios[scenario].callers[window % 2 ? 1 - position : position];
                if (worker != NOBODY) run_turn(scenario, worker);
            }
            MARKER(WINDOW_CLOSE);
        }
        MARKER(FLUSH);
        control->competitor_runs = 0;
        control->turn = LEAVE;
        while (control->present > 0) sched_yield();
    }
    printf("done\n");
    fflush(stdout);
    reboot(RB_POWER_OFF);
}
