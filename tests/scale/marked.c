/* A program whose operations are marked, in the ways that tests ask for by its first argument; the second is how many threads. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commutant_scale.h"

#define SLOTS 32
#define ROUNDS 400

struct shard {
    pthread_mutex_t lock;
    long slots[SLOTS];
} __attribute__((aligned(128)));

static struct shard shards[256];
static _Alignas(64) atomic_long entry_count;
static _Alignas(64) pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Alignas(64) long turns;
static pthread_barrier_t barrier;
static const char *kind;
static long thread_count;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

/* A map in shards, each with a lock of its own, which counts its entries in one place if it is asked to. */
static void insert(long shard, long round)
{
    pthread_mutex_lock(&shards[shard].lock);
    shards[shard].slots[round % SLOTS] = round;
    pthread_mutex_unlock(&shards[shard].lock);
    if (is("counted"))
        atomic_fetch_add_explicit(&entry_count, 1, memory_order_relaxed);
}

/* Each waits until it is its turn in the order of their numbers. */
static void take_turn(long self)
{
    pthread_mutex_lock(&common);
    while (turns % thread_count != self)
        pthread_cond_wait(&changed, &common);
    turns++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&common);
}

/* Two locks, taken by every other thread in another order. */
static void lock_both(long self)
{
    pthread_mutex_lock(self % 2 ? &common : &other);
    for (volatile int wait = 0; wait < 1000; wait++)
        ;
    pthread_mutex_lock(self % 2 ? &other : &common);
    pthread_mutex_unlock(&common);
    pthread_mutex_unlock(&other);
}

static void *work(void *argument)
{
    long self = (long)argument;
    if (is("unmarked"))
        return NULL;
    if (is("barrier"))
        pthread_barrier_wait(&barrier);
    for (long round = 0; is("endless") || round < ROUNDS; round++) {
        COMMUTANT_SCALE_BEGIN();
        if (is("nested"))
            COMMUTANT_SCALE_BEGIN();
        if (is("random"))
            random();
        else if (is("turns"))
            take_turn(self);
        else if (is("deadlock"))
            lock_both(self);
        else if (is("crash") && round == 9)
            raise(SIGSEGV);
        else if (is("leaves") && round == 9)
            _exit(0);
        else if (is("ends") && round == 9)
            pthread_exit(NULL);
        else if (is("stands-still"))
            for (;;)
                ;
        else
            insert(self, round);
        COMMUTANT_SCALE_END();
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[256];
    kind = count > 1 ? arguments[1] : "plain";
    thread_count = count > 2 ? atol(arguments[2]) : 2;
    if (is("forks")) { /* A child that lives on. */
        pid_t child = fork();
        while (child == 0)
            pause();
        FILE *file = fopen(arguments[3], "w");
        fprintf(file, "%d", child);
        fclose(file);
    }
    for (long shard = 0; shard < 256; shard++)
        pthread_mutex_init(&shards[shard].lock, NULL);
    pthread_barrier_init(&barrier, NULL, thread_count);
    for (long thread = 0; thread < thread_count; thread++)
        pthread_create(&threads[thread], NULL, work, (void *)thread);
    for (long thread = 0; thread < thread_count; thread++)
        pthread_join(threads[thread], NULL);
    printf("%ld\n", atomic_load(&entry_count));
    return 0;
}
