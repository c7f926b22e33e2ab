/* Programs whose critical sections are known: `programs NAME [NUMBER]`. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commutant_locks.h"

#define THREADS 4
#define ROUNDS 400

static long number;
static void *(*body)(void *);
static pthread_barrier_t ready;

static void *started(void *argument)
{
    pthread_barrier_wait(&ready);
    return body(argument);
}

static void run(void *(*function)(void *))
{
    pthread_t threads[THREADS];
    body = function;
    pthread_barrier_init(&ready, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, started, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Of 100 sections, `number` write a place of the thread's own, the others a common one. */
struct place { _Alignas(64) long value; };
static struct place places[THREADS];
static struct place common_place;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static void *known(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct place *place = i * 37 % 100 < number ? &places[(intptr_t)argument] : &common_place;
        pthread_mutex_lock(&known_lock);
        place->value++;
        pthread_mutex_unlock(&known_lock);
    }
    return NULL;
}

/* Sections that share no memory, but write to one file. */
static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;

static void *output(void *argument)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&output_lock);
        places[(intptr_t)argument].value++;
        if (number && write(STDERR_FILENO, "", 0) != 0)
            abort();
        pthread_mutex_unlock(&output_lock);
    }
    return NULL;
}

/* Readers do not keep readers out. */
static pthread_rwlock_t shared_lock = PTHREAD_RWLOCK_INITIALIZER;
static long read_value;

static void *readers(void *argument)
{
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (argument == NULL && i % 10 == 0) {
            pthread_rwlock_wrlock(&shared_lock);
            read_value++;
        } else {
            pthread_rwlock_rdlock(&shared_lock);
            sum += read_value;
        }
        pthread_rwlock_unlock(&shared_lock);
    }
    return (void *)sum;
}

/* Locks that no library knows: one is annotated, one is found by its instructions. */
static volatile int annotated_lock, plain_lock;

static void *spinning(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        COMMUTANT_LOCK_ATTEMPT(&annotated_lock);
        while (__atomic_exchange_n(&annotated_lock, 1, __ATOMIC_ACQUIRE)) {
            COMMUTANT_LOCK_WAIT(&annotated_lock);
            sched_yield();
        }
        COMMUTANT_LOCK_ACQUIRE_EXCLUSIVE(&annotated_lock);
        places[(intptr_t)argument].value++;
        COMMUTANT_LOCK_RELEASE(&annotated_lock);
        __atomic_store_n(&annotated_lock, 0, __ATOMIC_RELEASE);

        while (__atomic_exchange_n(&plain_lock, 1, __ATOMIC_ACQUIRE))
            sched_yield();
        common_place.value++;
        __atomic_store_n(&plain_lock, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* A lock in memory that is freed and used for another lock of the same kind. */
static void *fleeting(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS / 10; i++) {
        struct { pthread_mutex_t lock; long value; } *cell = malloc(sizeof *cell);
        pthread_mutex_init(&cell->lock, NULL);
        pthread_mutex_lock(&cell->lock);
        cell->value = i;
        pthread_mutex_unlock(&cell->lock);
        pthread_mutex_destroy(&cell->lock);
        free(cell);
    }
    return NULL;
}

/* The same for a lock that no one reports: its maker stores zeros, as C++ does. No two threads use one of them. */
static struct { pthread_mutex_t lock; long value; } renewed;
static long whose;

static void *renewing(void *argument)
{
    for (long i = 0; i < 20; i++) {
        while (__atomic_load_n(&whose, __ATOMIC_ACQUIRE) % THREADS != (intptr_t)argument)
            sched_yield();
        for (size_t word = 0; word < sizeof renewed.lock / 8; word++)
            ((volatile long *)&renewed.lock)[word] = 0;
        pthread_mutex_lock(&renewed.lock);
        renewed.value = i;
        pthread_mutex_unlock(&renewed.lock);
        __atomic_add_fetch(&whose, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Threads on stacks that lie next to what they share. */
static struct { char before[4096], stacks[THREADS][1 << 16]; long value; } beside __attribute__((aligned(4096)));

static void *shares(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&known_lock);
        beside.before[0]++;
        beside.value++;
        pthread_mutex_unlock(&known_lock);
    }
    return NULL;
}

static void run_on_own_stacks(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, beside.stacks[i], sizeof beside.stacks[i]);
        pthread_create(&threads[i], &attributes, shares, NULL);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Main takes a lock before there are others, and threads share locks on its stack and on the heap. */
struct guarded { pthread_mutex_t lock; long value; };
static struct guarded *on_stack, *on_heap[2];

static void *guards(void *argument)
{
    struct guarded *all[] = {on_stack, on_heap[0], on_heap[1]};
    for (int i = 0; i < ROUNDS; i++) {
        struct guarded *one = all[i % 3];
        pthread_mutex_lock(&one->lock);
        one->value++;
        pthread_mutex_unlock(&one->lock);
    }
    known(argument);
    return NULL;
}

static void start_up(void)
{
    struct guarded own = {PTHREAD_MUTEX_INITIALIZER, 0};
    on_stack = &own;
    for (int i = 0; i < 2; i++) {
        on_heap[i] = calloc(1, sizeof own);
        pthread_mutex_init(&on_heap[i]->lock, NULL);
    }
    for (int i = 0; i < 700; i++) {
        pthread_mutex_lock(i % 2 ? &known_lock : &output_lock);
        common_place.value++;
        pthread_mutex_unlock(i % 2 ? &known_lock : &output_lock);
    }
    run(guards);
}

static void *wait_for_main(void *main_thread)
{
    pthread_join(*(pthread_t *)main_thread, NULL);
    return NULL;
}

/* Waiting for a condition releases the mutex. */
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_came = PTHREAD_COND_INITIALIZER;
static long turn;

static void *turns(void *argument)
{
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&turn_lock);
        while (turn % THREADS != (intptr_t)argument)
            pthread_cond_wait(&turn_came, &turn_lock);
        turn++;
        pthread_cond_broadcast(&turn_came);
        pthread_mutex_unlock(&turn_lock);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "";
    number = count > 2 ? atol(arguments[2]) : 0;
    if (!strcmp(name, "known")) {
        run(known);
    } else if (!strcmp(name, "output")) {
        run(output);
    } else if (!strcmp(name, "readers")) {
        run(readers);
    } else if (!strcmp(name, "spinning")) {
        run(spinning);
    } else if (!strcmp(name, "fleeting")) {
        run(fleeting);
    } else if (!strcmp(name, "renewing")) {
        run(renewing);
    } else if (!strcmp(name, "own_stacks")) {
        run_on_own_stacks();
    } else if (!strcmp(name, "turns")) {
        run(turns);
    } else if (!strcmp(name, "alone")) {
        known(NULL);
    } else if (!strcmp(name, "start_up")) {
        start_up();
    } else if (!strcmp(name, "crash")) {
        run(known);
        kill(getpid(), number);
    } else if (!strcmp(name, "fault")) {
        run(known);
        *(volatile int *)number = 1;
    } else if (!strcmp(name, "leave")) {
        static pthread_t self;
        self = pthread_self();
        run(known);
        pthread_t last;
        pthread_create(&last, NULL, wait_for_main, &self);
        pthread_exit(NULL);
    } else if (!strcmp(name, "daemon")) {
        run(known);
        if (fork() == 0) {
            setsid();
            pause();
        }
    } else if (!strcmp(name, "forever")) {
        run(known);
        if (write(STDOUT_FILENO, "\n", 1) != 1)
            abort();
        for (;;)
            known(NULL);
    } else if (!strcmp(name, "fork")) {
        run(known);
        if (fork() == 0) {
            known(NULL);
            _exit(7);
        }
        wait(NULL);
    } else if (!strcmp(name, "exec")) {
        run(known);
        execl("/bin/true", "true", NULL);
    } else if (!strcmp(name, "misuse")) {
        run(known);
        pthread_mutex_unlock(&known_lock);
        pthread_mutex_lock(&turn_lock);
    } else {
        fprintf(stderr, "programs: no such program: %s\n", name);
        return 2;
    }
    return 0;
}
