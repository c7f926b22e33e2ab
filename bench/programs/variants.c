/* Programs in which threads share something or nothing, for predictions of `commutant scale` that real cores judge.
 *
 *     gcc -O2 -pthread -I "$(commutant scale --annotations)" bench/programs/variants.c -o variants
 *     ./variants counter 200 2 100000               kind, rounds of work, threads, operations of each: prints ns an operation
 *     commutant scale --cores 1,2 -- ./variants counter 200 {cores} 3000
 *
 * An operation is a number of rounds of work on a thread's own words, and then what its kind says. Threads stay on processors 0,
 * 1 and so on, and begin together. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commutant_scale.h"

#define MOST_THREADS 64
#define WORDS 16 /* of two lines, as neighbours are fetched together */
#define LINES 8
#define STRIPES 16

static _Alignas(128) atomic_long counter;
static _Alignas(128) atomic_long stripes[STRIPES][WORDS];
static _Alignas(128) atomic_long shown;
static _Alignas(128) atomic_int lock;
static _Alignas(128) long guarded[WORDS];
static _Alignas(128) atomic_long together[MOST_THREADS];
static _Alignas(128) atomic_long buffer[LINES][WORDS];
static _Alignas(128) struct { atomic_long word; long rest[WORDS - 1]; } own[MOST_THREADS];
static _Alignas(128) const char *kind;
static long work_rounds, operation_count;
static pthread_barrier_t begin;

enum kind { NOTHING, COUNTER, SELDOM, STRIPED, READ, LOCKED, FALSELY, HANDED };
static const char *const names[] = {"nothing", "counter", "seldom", "striped", "read", "locked", "falsely", "handed"};

static void share(enum kind what, long self, long round)
{
    switch (what) {
    case NOTHING:
        break;
    case COUNTER:
        atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
        break;
    case SELDOM: /* every fourth operation */
        if (round % 4 == 0)
            atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
        break;
    case STRIPED: /* one of many counters */
        atomic_fetch_add_explicit(&stripes[(round * 7 + self * 3) % STRIPES][0], 1, memory_order_relaxed);
        break;
    case READ: /* one thread writes now and then what all read */
        if (self == 0 && round % 8 == 0)
            atomic_store_explicit(&shown, round, memory_order_release);
        atomic_load_explicit(&shown, memory_order_acquire);
        break;
    case LOCKED:
        while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
            while (atomic_load_explicit(&lock, memory_order_relaxed))
                __builtin_ia32_pause();
        guarded[0]++;
        atomic_store_explicit(&lock, 0, memory_order_release);
        break;
    case FALSELY: /* words of their own in one line */
        atomic_store_explicit(&together[self], round, memory_order_relaxed);
        break;
    case HANDED: /* lines that the other one has written last */
        for (int line = 0; line < LINES; line++)
            atomic_store_explicit(&buffer[line][0], round + atomic_load_explicit(&buffer[line][0], memory_order_relaxed),
                                  memory_order_relaxed);
        break;
    }
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static enum kind found(void)
{
    for (size_t number = 0; number < sizeof names / sizeof *names; number++)
        if (strcmp(names[number], kind) == 0)
            return (enum kind)number;
    fprintf(stderr, "variants: expected a kind, got %.40s\n", kind);
    exit(2);
}

static void *run(void *argument)
{
    long self = (long)argument;
    enum kind what = found();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(self, &set);
    sched_setaffinity(0, sizeof set, &set);
    pthread_barrier_wait(&begin);
    double began = now_ns();
    for (long round = 0; round < operation_count; round++) {
        COMMUTANT_SCALE_BEGIN();
        for (long turn = 0; turn < work_rounds; turn++)
            atomic_store_explicit(&own[self].word,
                                  atomic_load_explicit(&own[self].word, memory_order_relaxed) * 5 + turn,
                                  memory_order_relaxed);
        share(what, self, round);
        COMMUTANT_SCALE_END();
    }
    double *taken = malloc(sizeof *taken);
    *taken = (now_ns() - began) / operation_count;
    return taken;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "variants: expected kind, rounds of work, threads and operations\n");
        return 2;
    }
    kind = argv[1];
    work_rounds = atol(argv[2]);
    long threads = atol(argv[3]);
    operation_count = atol(argv[4]);
    if (threads < 1 || threads > MOST_THREADS || operation_count < 1 || work_rounds < 0) {
        fprintf(stderr, "variants: expected 1 to %d threads, and operations\n", MOST_THREADS);
        return 2;
    }
    found();
    pthread_t ids[MOST_THREADS];
    pthread_barrier_init(&begin, NULL, threads);
    for (long self = 0; self < threads; self++)
        pthread_create(&ids[self], NULL, run, (void *)self);
    double sum = 0;
    for (long self = 0; self < threads; self++) {
        void *taken;
        pthread_join(ids[self], &taken);
        sum += *(double *)taken;
        free(taken);
    }
    printf("%.3f\n", sum / threads);
    return 0;
}
