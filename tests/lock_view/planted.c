/* One known pattern of sharing under every kind of lock: `planted KIND PERCENT`.
 *
 * Of 100 sections of each thread PERCENT write a place of the thread's own and the others a common one, so of 100 pairs of
 * sections (1 - (1 - p)^2) * 100 are independent, whatever keeps them apart. `none` and what follows it have no lock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commutant_locks.h"

#define THREADS 3
#define ROUNDS 600

struct place { _Alignas(64) long value; };
static struct place places[THREADS], common_place;
static long percent;
static volatile long seen;

static struct place *place_of(intptr_t thread, int round)
{
    return round * 37 % 100 < percent ? &places[thread] : &common_place;
}

static pthread_mutex_t planted_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t planted_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t planted_try = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t planted_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t planted_spin;
static sem_t planted_semaphore, planted_timed_semaphore;
static volatile int planted_inlined;
static struct { atomic_uint next, serving; } planted_ticket;

/* A lock of one byte, bit 0 taken, bit 1 that threads are parked. It is given back by an exchange that may fail, then by a plain
 * store; each third time that somebody is woken it is passed on to him, and the byte shows that at most by a smaller bit. */
struct parked { struct parked *next; pthread_cond_t woken; int is_woken, holds; };
static _Atomic unsigned char planted_parks;
static pthread_mutex_t park_guard = PTHREAD_MUTEX_INITIALIZER;
static struct parked *first_parked, **last_parked = &first_parked;
static int hand_overs;

static __attribute__((noinline)) void park_until_taken(void)
{
    for (;;) {
        unsigned char was = planted_parks;
        if (!(was & 1)) {
            if (atomic_compare_exchange_strong(&planted_parks, &was, was | 1))
                return;
            continue;
        }
        if (!(was & 2) && !atomic_compare_exchange_strong(&planted_parks, &was, was | 2))
            continue;
        struct parked own = {.woken = PTHREAD_COND_INITIALIZER};
        pthread_mutex_lock(&park_guard);
        if (planted_parks == 3) {
            *last_parked = &own;
            last_parked = &own.next;
            while (!own.is_woken)
                pthread_cond_wait(&own.woken, &park_guard);
        }
        pthread_mutex_unlock(&park_guard);
        if (own.holds)
            return;
    }
}

static __attribute__((noinline)) void wake_parked(void)
{
    pthread_mutex_lock(&park_guard);
    struct parked *woken = first_parked;
    if (woken) {
        first_parked = woken->next;
        if (!first_parked)
            last_parked = &first_parked;
        woken->holds = ++hand_overs % 3 == 0;
    }
    if (!woken || !woken->holds)
        atomic_store_explicit(&planted_parks, first_parked ? 2 : 0, memory_order_release);
    else if (!first_parked)
        atomic_store_explicit(&planted_parks, 1, memory_order_relaxed);
    if (woken) {
        woken->is_woken = 1;
        pthread_cond_signal(&woken->woken);
    }
    pthread_mutex_unlock(&park_guard);
}

static void enter(const char *kind, int round)
{
    if (!strcmp(kind, "mutex")) {
        pthread_mutex_lock(&planted_mutex);
    } else if (!strcmp(kind, "recursive")) {
        pthread_mutex_lock(&planted_recursive);
        pthread_mutex_lock(&planted_recursive);
    } else if (!strcmp(kind, "try")) {
        while (pthread_mutex_trylock(&planted_try))
            sched_yield();
    } else if (!strcmp(kind, "rwlock")) {
        if (round / 100 % 2)
            pthread_rwlock_rdlock(&planted_rwlock);
        else
            pthread_rwlock_wrlock(&planted_rwlock);
    } else if (!strcmp(kind, "spin")) {
        pthread_spin_lock(&planted_spin);
    } else if (!strcmp(kind, "semaphore")) {
        sem_wait(&planted_semaphore);
    } else if (!strcmp(kind, "timed_semaphore")) {
        struct timespec deadline = {.tv_sec = INT32_MAX};
        while (round % 2 ? sem_trywait(&planted_timed_semaphore) : sem_timedwait(&planted_timed_semaphore, &deadline))
            sched_yield();
    } else if (!strcmp(kind, "inlined")) {
        while (__atomic_exchange_n(&planted_inlined, 1, __ATOMIC_ACQUIRE))
            sched_yield();
    } else if (!strcmp(kind, "parks")) {
        unsigned char was = 0;
        if (!atomic_compare_exchange_strong(&planted_parks, &was, 1))
            park_until_taken();
        if (round % 19 == 0)
            sched_yield(); /* somebody else comes, and parks */
    } else { /* ticket */
        COMMUTANT_LOCK_ATTEMPT(&planted_ticket);
        unsigned mine = atomic_fetch_add(&planted_ticket.next, 1);
        while (atomic_load(&planted_ticket.serving) != mine) {
            COMMUTANT_LOCK_WAIT(&planted_ticket);
            sched_yield();
        }
        COMMUTANT_LOCK_ACQUIRE_EXCLUSIVE(&planted_ticket);
    }
}

static void leave(const char *kind)
{
    if (!strcmp(kind, "mutex")) {
        pthread_mutex_unlock(&planted_mutex);
    } else if (!strcmp(kind, "recursive")) {
        pthread_mutex_unlock(&planted_recursive);
        pthread_mutex_unlock(&planted_recursive);
    } else if (!strcmp(kind, "try")) {
        pthread_mutex_unlock(&planted_try);
    } else if (!strcmp(kind, "rwlock")) {
        pthread_rwlock_unlock(&planted_rwlock);
    } else if (!strcmp(kind, "spin")) {
        pthread_spin_unlock(&planted_spin);
    } else if (!strcmp(kind, "semaphore")) {
        sem_post(&planted_semaphore);
    } else if (!strcmp(kind, "timed_semaphore")) {
        sem_post(&planted_timed_semaphore);
    } else if (!strcmp(kind, "inlined")) {
        __atomic_store_n(&planted_inlined, 0, __ATOMIC_SEQ_CST); /* a swap, too */
    } else if (!strcmp(kind, "parks")) {
        unsigned char was = 1;
        if (!atomic_compare_exchange_strong(&planted_parks, &was, 0))
            wake_parked();
    } else {
        COMMUTANT_LOCK_RELEASE(&planted_ticket);
        atomic_fetch_add(&planted_ticket.serving, 1);
    }
}

static const char *kind;
static pthread_barrier_t ready;

static void *locked(void *argument)
{
    pthread_barrier_wait(&ready);
    for (int round = 0; round < ROUNDS; round++) {
        struct place *place = place_of((intptr_t)argument, round);
        enter(kind, round);
        if (!strcmp(kind, "rwlock") && round / 100 % 2)
            seen += place->value > 1000000;
        else
            place->value++;
        leave(kind);
    }
    return NULL;
}

/* Objects that are counted: the count starts by a store, as a swap, and ends by a decrement. */
struct counted { atomic_int count; long value; };

static void *counts(void *argument)
{
    pthread_barrier_wait(&ready);
    for (int round = 0; round < ROUNDS / 3; round++) {
        struct counted *object = malloc(sizeof *object);
        atomic_store(&object->count, 1);
        atomic_fetch_add(&object->count, 1);
        object->value = (intptr_t)argument;
        common_place.value++; /* no lock, no section */
        if (atomic_fetch_sub(&object->count, 1) == 2 && atomic_fetch_sub(&object->count, 1) == 1)
            free(object);
    }
    return NULL;
}

/* The same, where a loop of exchanges gives each reference back, and what is freed is used again. */
static __attribute__((noinline)) void give_back(struct counted *object)
{
    int count = object->count;
    while (count > 1)
        if (atomic_compare_exchange_weak(&object->count, &count, count - 1))
            return;
    atomic_fetch_sub(&object->count, 1);
    *(volatile int *)&object->count = 0x55;
    free(object);
}

static void *given_back(void *argument)
{
    pthread_barrier_wait(&ready);
    for (int round = 0; round < ROUNDS / 3; round++) {
        struct counted *object = malloc(sizeof *object);
        object->count = 1;
        atomic_fetch_add(&object->count, 1);
        give_back(object);
        object->value = (intptr_t)argument;
        give_back(object);
    }
    return NULL;
}

/* A flag that one sets and others look at. */
static atomic_int flag;

static void *flags(void *argument)
{
    pthread_barrier_wait(&ready);
    for (int round = 0; round < ROUNDS; round++) {
        if (argument == NULL)
            atomic_store(&flag, round % 2);
        else
            seen += atomic_load(&flag);
        places[(intptr_t)argument].value++;
    }
    return NULL;
}

/* Semaphores that tell the next one to go on, of which one begins with one, and one that lets two in at once. */
static sem_t turns[THREADS], two_of_three;

static void *signals(void *argument)
{
    intptr_t own = (intptr_t)argument;
    pthread_barrier_wait(&ready);
    for (int round = 0; round < ROUNDS / 10; round++) {
        sem_wait(&turns[own]);
        places[own].value++;
        sem_post(&turns[(own + 1) % THREADS]);
        sem_wait(&two_of_three);
        places[own].value++;
        sem_post(&two_of_three);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    kind = arguments[1];
    percent = atol(arguments[2]);
    pthread_spin_init(&planted_spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&planted_semaphore, 0, 1);
    sem_init(&planted_timed_semaphore, 0, 1);
    sem_init(&two_of_three, 0, 2);
    for (int i = 0; i < THREADS; i++)
        sem_init(&turns[i], 0, i == 0);
    pthread_barrier_init(&ready, NULL, THREADS);
    void *(*body)(void *) = !strcmp(kind, "none_counts")       ? counts
                            : !strcmp(kind, "none_given_back") ? given_back
                            : !strcmp(kind, "none_flags")      ? flags
                            : !strcmp(kind, "none_signals")    ? signals
                                                               : locked;
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
