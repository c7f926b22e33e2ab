/*
 * One lock over sections of chosen lengths, as it is and really changed:
 * `lengths spin|mutex locked|split|rwlock INSIDE OUTSIDE READERS_PERCENT THREADS ROUNDS` prints nanoseconds.
 *
 * INSIDE and OUTSIDE are instructions, calculated and not waited for; a section adds to, or reads, one of 64 slots in lines
 * of their own. `split` has 16 locks instead of one, by slot; `rwlock` is the C library's.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOTS 64
#define PARTS 16
#define MAX_THREADS 64

struct slot { _Alignas(64) uint64_t value; };
static struct slot slots[SLOTS];
static struct { _Alignas(64) pthread_mutex_t lock; } mutexes[PARTS];
static struct { _Alignas(64) pthread_spinlock_t lock; } spins[PARTS];
static struct { _Alignas(64) pthread_rwlock_t lock; } rwlock = {PTHREAD_RWLOCK_INITIALIZER};
static int is_mutex, is_split, is_rwlock;
static long inside, outside, readers_percent, rounds;
static pthread_barrier_t ready;
struct span { _Alignas(64) long long started_at, ended_at; uint64_t sink; };
static struct span spans[MAX_THREADS];

/* Three instructions a step: a multiplication, a test, a jump. */
static inline uint64_t work(uint64_t value, long instructions)
{
    for (long i = 0; i < instructions; i += 3)
        __asm__ volatile("imul $0x19660d, %0, %0" : "+r"(value));
    return value;
}

static void take(int reads, unsigned slot)
{
    if (is_rwlock && reads)
        pthread_rwlock_rdlock(&rwlock.lock);
    else if (is_rwlock)
        pthread_rwlock_wrlock(&rwlock.lock);
    else if (is_mutex)
        pthread_mutex_lock(&mutexes[is_split ? slot % PARTS : 0].lock);
    else
        pthread_spin_lock(&spins[is_split ? slot % PARTS : 0].lock);
}

static void give(unsigned slot)
{
    if (is_rwlock)
        pthread_rwlock_unlock(&rwlock.lock);
    else if (is_mutex)
        pthread_mutex_unlock(&mutexes[is_split ? slot % PARTS : 0].lock);
    else
        pthread_spin_unlock(&spins[is_split ? slot % PARTS : 0].lock);
}

static uint64_t __attribute__((noinline)) reads(unsigned slot)
{
    take(1, slot);
    uint64_t value = work(slots[slot].value, inside);
    give(slot);
    return value;
}

static void __attribute__((noinline)) writes(unsigned slot)
{
    take(0, slot);
    slots[slot].value = work(slots[slot].value, inside);
    give(slot);
}

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *run(void *argument)
{
    struct span *span = argument;
    uint64_t random = 0x9e3779b97f4a7c15u * (uint64_t)(span - spans + 1);
    pthread_barrier_wait(&ready);
    span->started_at = now();
    for (long i = 0; i < rounds; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        span->sink = work(span->sink + random, outside);
        if ((long)(random >> 8 & 0xffffff) % 100 < readers_percent && readers_percent)
            span->sink += reads(random % SLOTS);
        else
            writes(random % SLOTS);
    }
    span->ended_at = now();
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 8) {
        fprintf(stderr, "lengths spin|mutex locked|split|rwlock INSIDE OUTSIDE READERS_PERCENT THREADS ROUNDS\n");
        return 2;
    }
    is_mutex = !strcmp(arguments[1], "mutex");
    is_split = !strcmp(arguments[2], "split");
    is_rwlock = !strcmp(arguments[2], "rwlock");
    inside = atol(arguments[3]);
    outside = atol(arguments[4]);
    readers_percent = atol(arguments[5]);
    const long thread_count = atol(arguments[6]);
    rounds = atol(arguments[7]);
    if (thread_count < 1 || thread_count > MAX_THREADS)
        return 2;
    pthread_t threads[MAX_THREADS];
    for (int i = 0; i < PARTS; i++) {
        pthread_spin_init(&spins[i].lock, PTHREAD_PROCESS_PRIVATE);
        pthread_mutex_init(&mutexes[i].lock, NULL);
    }
    pthread_barrier_init(&ready, NULL, (unsigned)thread_count);
    for (long i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, run, &spans[i]);
    long long first = INT64_MAX, last = 0;
    for (long i = 0; i < thread_count; i++) {
        pthread_join(threads[i], NULL);
        first = spans[i].started_at < first ? spans[i].started_at : first;
        last = spans[i].ended_at > last ? spans[i].ended_at : last;
    }
    printf("%lld\n", last - first);
    return 0;
}
