/*
 * Programs with one lock each, as they are and with the lock really changed: `locks PROGRAM locked|changed THREADS ROUNDS`
 * prints the nanoseconds from the first section's start to the last one's end. They hold predictions of what a change of a lock
 * gains against what it does gain. Work inside and outside of sections is calculation, so that instructions are time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE _Alignas(64)
#define PARTS 16
#define MAX_THREADS 64

static int changed; /* whether the lock is changed */

struct thread {
    LINE uint64_t random;
    uint64_t sink;
    long number;
    long long started_at, ended_at; /* nanoseconds */
};
static struct thread threads[MAX_THREADS];

/* A generator of its own per thread: the same draws in each run. */
static uint64_t draw(struct thread *thread)
{
    thread->random ^= thread->random << 13;
    thread->random ^= thread->random >> 7;
    thread->random ^= thread->random << 17;
    return thread->random;
}

/* Calculation of `units` steps of about a nanosecond that touches no memory. */
static inline uint64_t work(uint64_t value, int units)
{
    for (int i = 0; i < units; i++)
        value = value * 6364136223846793005u + 1442695040888963407u;
    return value;
}

#define SECTION 3000 /* steps in a section: some microseconds, long compared with the cost of a lock */

/* Threads spin for a lock: to sleep and be woken costs more than a section, and is not what is compared. */
static pthread_spinlock_t lock;

/* A reader-writer lock that spins: the number of readers, and WRITER while there is a writer. */
#define WRITER 0x10000
static struct { LINE atomic_int state; } rw_lock;

static void take_shared(void)
{
    while (atomic_fetch_add(&rw_lock.state, 1) & WRITER) {
        atomic_fetch_sub(&rw_lock.state, 1);
        while (atomic_load(&rw_lock.state) & WRITER)
            __builtin_ia32_pause();
    }
}

static void take_exclusive(void)
{
    while (atomic_fetch_or(&rw_lock.state, WRITER) & WRITER)
        __builtin_ia32_pause();
    while (atomic_load(&rw_lock.state) != WRITER)
        __builtin_ia32_pause();
}
static struct { LINE pthread_spinlock_t lock; } parts[PARTS];

/* The C library elides mutexes only. */
static struct { LINE pthread_mutex_t mutex; } elided = {PTHREAD_MUTEX_INITIALIZER};

static void acquire_elidable(void)
{
    if (!changed)
        pthread_spin_lock(&lock);
    else
        while (pthread_mutex_trylock(&elided.mutex))
            for (int i = 0; i < 16; i++)
                __builtin_ia32_pause();
}

static void release_elidable(void)
{
    changed ? pthread_mutex_unlock(&elided.mutex) : pthread_spin_unlock(&lock);
}

/* --- counters: each thread has one; the lock is split by thread. */
static struct { LINE uint64_t value; } counters[MAX_THREADS];

static void own_counters(struct thread *thread)
{
    pthread_spinlock_t *mine = changed ? &parts[thread->number % PARTS].lock : &lock;
    pthread_spin_lock(mine);
    counters[thread->number].value = work(counters[thread->number].value, SECTION);
    pthread_spin_unlock(mine);
}

/* Calculates a new value of a counter: under the lock, or optimistically, again where another thread was faster. */
static void step(uint64_t *value)
{
    if (changed) {
        uint64_t before = __atomic_load_n(value, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n(value, &before, work(before, SECTION), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ;
    } else {
        pthread_spin_lock(&lock);
        *value = work(*value, SECTION);
        pthread_spin_unlock(&lock);
    }
}

/* --- one counter for all; sections run optimistically, and conflict always. */
static struct { LINE uint64_t value; } counter;

static void one_counter(struct thread *thread)
{
    (void)thread;
    step(&counter.value);
}

/* --- half of the sections use the common counter, the others the thread's own; optimistic. */
static void half_common(struct thread *thread)
{
    step(draw(thread) & 1 ? &counter.value : &counters[thread->number].value);
}

/* --- a table that is read in 95 of 100 sections: reader-writer lock. */
#define TABLE 4096
static LINE uint64_t table[TABLE];

static uint64_t table_sum(uint64_t start)
{
    uint64_t sum = 0;
    for (int i = 0; i < TABLE; i++)
        sum = sum * 3 + table[(start + (uint64_t)i) % TABLE];
    return sum;
}

static void __attribute__((noinline)) read_table(struct thread *thread)
{
    uint64_t start = draw(thread);
    if (changed)
        take_shared();
    else
        pthread_spin_lock(&lock);
    uint64_t sum = table_sum(start);
    if (changed)
        atomic_fetch_sub(&rw_lock.state, 1);
    else
        pthread_spin_unlock(&lock);
    thread->sink += sum;
}

static void __attribute__((noinline)) write_table(struct thread *thread)
{
    uint64_t start = draw(thread);
    if (changed)
        take_exclusive();
    else
        pthread_spin_lock(&lock);
    table[start % TABLE] = table_sum(start);
    if (changed)
        atomic_fetch_and(&rw_lock.state, ~WRITER);
    else
        pthread_spin_unlock(&lock);
}

static void mostly_read(struct thread *thread)
{
    draw(thread) % 100 < 95 ? read_table(thread) : write_table(thread);
}

/* --- a list that is searched, and changed in 10 of 100 sections: sequence lock. The nodes never go away. */
#define NODES 4096
static struct node { struct node *_Atomic next; _Atomic uint64_t value; } nodes[NODES];
static atomic_uint sequence;

static uint64_t list_sum(void)
{
    uint64_t sum = 0;
    struct node *node = &nodes[0];
    for (int i = 0; i < NODES; i++, node = atomic_load_explicit(&node->next, memory_order_relaxed))
        sum = sum * 5 + atomic_load_explicit(&node->value, memory_order_relaxed);
    return sum;
}

static void __attribute__((noinline)) search_list(struct thread *thread)
{
    uint64_t sum;
    if (changed) {
        unsigned before;
        do {
            while ((before = atomic_load_explicit(&sequence, memory_order_acquire)) & 1)
                ;
            sum = list_sum();
            atomic_thread_fence(memory_order_acquire);
        } while (atomic_load_explicit(&sequence, memory_order_relaxed) != before);
    } else {
        pthread_spin_lock(&lock);
        sum = list_sum();
        pthread_spin_unlock(&lock);
    }
    thread->sink += sum;
}

static void __attribute__((noinline)) change_list(struct thread *thread)
{
    struct node *node = &nodes[draw(thread) % NODES];
    pthread_spin_lock(&lock);
    if (changed)
        atomic_fetch_add_explicit(&sequence, 1, memory_order_acq_rel);
    atomic_store_explicit(&node->value, list_sum(), memory_order_relaxed);
    if (changed)
        atomic_fetch_add_explicit(&sequence, 1, memory_order_release);
    pthread_spin_unlock(&lock);
}

static void list(struct thread *thread)
{
    draw(thread) % 100 < 90 ? search_list(thread) : change_list(thread);
}

/* --- a hash table of chains; the lock is split by bucket. */
#define BUCKETS 1024
#define CHAIN 8
static struct { LINE uint64_t keys[CHAIN], values[CHAIN]; } buckets[BUCKETS];

static uint64_t change_bucket(uint64_t key)
{
    uint64_t bucket = key % BUCKETS;
    uint64_t value = key;
    for (int i = 0; i < CHAIN; i++) {
        value = work(value ^ buckets[bucket].keys[i], SECTION / CHAIN);
        buckets[bucket].values[i] += value;
    }
    return value;
}

static void hash_table(struct thread *thread)
{
    uint64_t key = draw(thread);
    pthread_spinlock_t *mine = changed ? &parts[key % BUCKETS % PARTS].lock : &lock;
    pthread_spin_lock(mine);
    change_bucket(key);
    pthread_spin_unlock(mine);
}

/* --- the same table with a count of all changes in each section; optimistic, and no use. */
static struct { LINE uint64_t value; } change_count;

static void counted_table(struct thread *thread)
{
    uint64_t key = draw(thread);
    acquire_elidable();
    change_count.value++;
    change_bucket(key);
    release_elidable();
}

/* --- the same with a count per core, and then a lock per bucket. */
static void per_core_count(struct thread *thread)
{
    uint64_t key = draw(thread);
    pthread_spinlock_t *mine = changed ? &parts[key % BUCKETS % PARTS].lock : &lock;
    pthread_spin_lock(mine);
    if (changed)
        counters[thread->number].value++;
    else
        change_count.value++;
    change_bucket(key);
    pthread_spin_unlock(mine);
}

/* --- a queue's two ends, filled by one half of the threads and emptied by the other: a lock for each end. */
#define QUEUE 65536
static struct { LINE uint64_t count; uint64_t last; } tail, head;
static uint64_t queue[QUEUE];

static void __attribute__((noinline)) put(struct thread *thread)
{
    pthread_spinlock_t *mine = changed ? &parts[0].lock : &lock;
    pthread_spin_lock(mine);
    tail.last = work(tail.last + thread->random, SECTION);
    queue[tail.count++ % (QUEUE / 2)] = tail.last;
    pthread_spin_unlock(mine);
}

static void __attribute__((noinline)) take(struct thread *thread)
{
    (void)thread;
    pthread_spinlock_t *mine = changed ? &parts[1].lock : &lock;
    pthread_spin_lock(mine);
    head.last = work(head.last + queue[QUEUE / 2 + head.count++ % (QUEUE / 2)], SECTION);
    pthread_spin_unlock(mine);
}

static void two_ends(struct thread *thread)
{
    thread->number % 2 ? take(thread) : put(thread);
}

/* --- a cache whose hits move the entry to the front of one list; optimistic, and no use. */
static struct entry { struct entry *before, *after; uint64_t value; } entries[256], front;

static void cache(struct thread *thread)
{
    struct entry *entry = &entries[draw(thread) % 256];
    acquire_elidable();
    entry->before->after = entry->after;
    entry->after->before = entry->before;
    entry->after = front.after;
    entry->before = &front;
    front.after->before = entry;
    front.after = entry;
    entry->value = work(entry->value, SECTION);
    release_elidable();
}

/* --- a search tree, one value of a found node is changed, and then something else is done; optimistic. */
#define TREE 16384
static struct { LINE uint64_t key, value; } tree[TREE];

static void search_tree(struct thread *thread)
{
    uint64_t key = draw(thread) % TREE;
    acquire_elidable();
    uint64_t low = 0, high = TREE;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (tree[middle].key <= key)
            low = middle;
        else
            high = middle;
    }
    tree[low].value = work(tree[low].value, SECTION);
    release_elidable();
    thread->sink = work(thread->sink + 1, SECTION / 2);
}

/* --- short sections between long calculations: whatever is done to the lock, it was not in the way. */
static void rarely(struct thread *thread)
{
    pthread_spinlock_t *mine = changed ? &parts[thread->number % PARTS].lock : &lock;
    thread->sink = work(thread->sink + 1, 20 * SECTION);
    pthread_spin_lock(mine);
    counters[thread->number].value = work(counters[thread->number].value, SECTION / 5);
    pthread_spin_unlock(mine);
}

/* --- as much calculation outside as inside, of lengths that scatter. */
static void as_much_outside(struct thread *thread)
{
    pthread_spinlock_t *mine = changed ? &parts[thread->number % PARTS].lock : &lock;
    thread->sink = work(thread->sink + 1, (int)(draw(thread) % (2 * SECTION)));
    int inside = (int)(draw(thread) % (2 * SECTION));
    pthread_spin_lock(mine);
    counters[thread->number].value = work(counters[thread->number].value, inside);
    pthread_spin_unlock(mine);
}

static const struct program {
    const char *name;
    void (*section)(struct thread *);
} programs[] = {
    {"own_counters", own_counters},
    {"one_counter", one_counter},
    {"half_common", half_common},
    {"mostly_read", mostly_read},
    {"list", list},
    {"hash_table", hash_table},
    {"counted_table", counted_table},
    {"per_core_count", per_core_count},
    {"two_ends", two_ends},
    {"cache", cache},
    {"search_tree", search_tree},
    {"rarely", rarely},
    {"as_much_outside", as_much_outside},
};

static const struct program *program;
static long rounds;
static pthread_barrier_t ready;

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *run(void *argument)
{
    struct thread *thread = argument;
    pthread_barrier_wait(&ready);
    thread->started_at = now();
    for (long i = 0; i < rounds; i++)
        program->section(thread);
    thread->ended_at = now();
    return NULL;
}

static void prepare(void)
{
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < PARTS; i++)
        pthread_spin_init(&parts[i].lock, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < NODES; i++) {
        atomic_init(&nodes[i].next, &nodes[(i + 1) % NODES]);
        atomic_init(&nodes[i].value, (uint64_t)i);
    }
    for (int i = 0; i < TREE; i++)
        tree[i].key = (uint64_t)i;
    for (int i = 0; i < BUCKETS; i++)
        for (int j = 0; j < CHAIN; j++)
            buckets[i].keys[j] = (uint64_t)(i * CHAIN + j);
    front.before = front.after = &front;
    for (int i = 0; i < 256; i++) {
        entries[i].before = &front;
        entries[i].after = front.after;
        front.after->before = &entries[i];
        front.after = &entries[i];
    }
    for (int i = 0; i < QUEUE; i++)
        queue[i] = (uint64_t)i;
    memset(table, 1, sizeof(table));
}

int main(int count, char **words)
{
    if (count == 5)
        for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
            if (!strcmp(words[1], programs[i].name))
                program = &programs[i];
    long thread_count = count == 5 ? atol(words[3]) : 0;
    rounds = count == 5 ? atol(words[4]) : 0;
    if (!program || thread_count < 1 || thread_count > MAX_THREADS || rounds < 1) {
        fprintf(stderr, "usage: locks PROGRAM locked|changed THREADS ROUNDS\n");
        return 2;
    }
    changed = !strcmp(words[2], "changed");
    prepare();
    pthread_t handles[MAX_THREADS];
    pthread_barrier_init(&ready, NULL, (unsigned)thread_count);
    for (long i = 0; i < thread_count; i++) {
        threads[i] = (struct thread){.random = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1), .number = i};
        pthread_create(&handles[i], NULL, run, &threads[i]);
    }
    for (long i = 0; i < thread_count; i++)
        pthread_join(handles[i], NULL);
    long long first = threads[0].started_at, last = threads[0].ended_at;
    for (long i = 1; i < thread_count; i++) {
        first = threads[i].started_at < first ? threads[i].started_at : first;
        last = threads[i].ended_at > last ? threads[i].ended_at : last;
    }
    printf("%lld\n", last - first);
    return 0;
}
