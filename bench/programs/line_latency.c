/* What it takes to get a line from another processor's cache: the constants of `commutant scale`.
 *
 *     gcc -O2 -pthread bench/programs/line_latency.c -o line_latency && ./line_latency
 *
 * Two threads, on processors 0 and 1, take turns. In one's turn it leaves 64 lines modified (miss), or both have read them
 * (upgrade). Then the other loads all of them, each address waiting for the load before, or adds to all of them atomically.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 20000
#define LINES 64
#define APART 16 /* words: two lines, as neighbours are fetched together */

static _Alignas(128) atomic_long turn;
static _Alignas(128) atomic_long lines[LINES * APART];
static int is_upgrade;
static double samples[ROUNDS];

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void read_all(void)
{
    for (int line = 0; line < LINES; line++)
        (void)atomic_load_explicit(&lines[line * APART], memory_order_relaxed);
}

static void *other(void *unused)
{
    (void)unused;
    stay_on(1);
    for (long round = 0; round < ROUNDS; round++) {
        while (atomic_load(&turn) != 2 * round + 1)
            ;
        if (is_upgrade)
            read_all();
        else
            for (int line = 0; line < LINES; line++)
                atomic_store_explicit(&lines[line * APART], round, memory_order_relaxed);
        atomic_store(&turn, 2 * round + 2);
    }
    return NULL;
}

static int by_size(const void *one, const void *two)
{
    double first = *(const double *)one, second = *(const double *)two;
    return (first > second) - (first < second);
}

static void measure(const char *name)
{
    pthread_t thread;
    atomic_store(&turn, 0);
    if (pthread_create(&thread, NULL, other, NULL) != 0)
        exit(1);
    stay_on(0);
    for (long round = 0; round < ROUNDS; round++) {
        if (is_upgrade)
            read_all();
        atomic_store(&turn, 2 * round + 1);
        while (atomic_load(&turn) != 2 * round + 2)
            ;
        double start = now_ns();
        long found = 0;
        for (int line = 0; line < LINES; line++) {
            if (is_upgrade)
                atomic_fetch_add(&lines[line * APART], 1);
            else /* What was found is never so large: the address is the same, and waits for it. */
                found = atomic_load_explicit(&lines[(line + (found >> 62)) * APART], memory_order_relaxed);
        }
        samples[round] = (now_ns() - start) / LINES;
    }
    pthread_join(thread, NULL);
    qsort(samples, ROUNDS, sizeof samples[0], by_size);
    printf("%s: %.1f ns (a tenth below %.1f, a tenth above %.1f)\n", name, samples[ROUNDS / 2], samples[ROUNDS / 10],
           samples[ROUNDS / 10 * 9]);
}

int main(void)
{
    measure("miss");
    is_upgrade = 1;
    measure("upgrade");
    return 0;
}
