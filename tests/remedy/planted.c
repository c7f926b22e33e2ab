/* A small library whose calls commute, and a program that makes them in windows of the tracer. Macros make the changes:
 * OWN_LINE moves `hits` to a line of its own and leaves a gap, PARTED moves `closed` there as well, SPREAD puts each entry on one,
 * CHECK_FIRST leaves out a write that changes nothing, DIVIDED gives each thread a counter, NO_PREFETCH leaves out a prefetch.
 * Usage: planted FIRST SECOND ...: for each pair of calls (numbers) a window in either order. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SPREAD
struct entry { _Alignas(64) uint64_t value; };
#else
struct entry { uint64_t value; };
#endif
#ifdef DIVIDED
struct counter { struct { _Alignas(64) uint64_t value; } of[2]; };
#else
struct counter { struct { uint64_t value; } of[1]; };
#endif

#if defined(OWN_LINE) || defined(PARTED)
#define HITS_HERE uint64_t gap
#define HITS_APART _Alignas(64) uint64_t hits
#else
#define HITS_HERE uint64_t hits
#define HITS_APART
#endif
#ifdef PARTED
#define CLOSED_HERE uint32_t another_gap
#define CLOSED_APART uint32_t closed
#else
#define CLOSED_HERE uint32_t closed
#define CLOSED_APART
#endif

struct ledger {
    uint64_t limit;
    HITS_HERE;
    CLOSED_HERE;
    uint32_t asked;
    struct entry entries[16];
    struct counter calls;
    HITS_APART;
    CLOSED_APART;
};

static _Alignas(64) struct ledger ledger;
static volatile uint64_t sink[2][64] __attribute__((aligned(64)));

#define MARK(code) __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, " code ", 0x52, 0x54, 0x4d" ::: "memory")
#define FIELD(name, member) \
    printf("%lx %lx struct ledger." name "\n", (unsigned long)&ledger.member, (unsigned long)(&ledger.member + 1))

__attribute__((noinline)) static void read_limit(int who) { sink[who][0] = *(volatile uint64_t *)&ledger.limit; }
__attribute__((noinline)) static void note_hit(int who) { (void)who; (*(volatile uint64_t *)&ledger.hits)++; }
__attribute__((noinline)) static void keep_open(int who) {
    uint32_t closed = *(volatile uint32_t *)&ledger.closed;
#ifdef CHECK_FIRST
    if (closed == 0) return;
#endif
    sink[who][1] = closed;
    *(volatile uint32_t *)&ledger.closed = 0;
}
__attribute__((noinline)) static void put(int index) { *(volatile uint64_t *)&ledger.entries[index].value = 7; }
__attribute__((noinline)) static void count(int who) {
    volatile uint64_t *counter = &ledger.calls.of[who % (sizeof ledger.calls / sizeof ledger.calls.of[0])].value;
    *counter = *counter + 1;
}

__attribute__((noinline)) static void ask(void) {
#ifndef NO_PREFETCH
    __asm__ volatile("prefetchw (%0)" : : "r"(&ledger.asked));
#endif
}

static void call(int number, int who) {
    switch (number) {
    case 0: read_limit(who); break;
    case 1: note_hit(who); break;
    case 2: keep_open(who); break;
    case 3: count(who); break;
    case 4: ask(); break;
    default: put(number - 5); break;
    }
}

static int pair[2];
static pthread_barrier_t turn;

static void *worker(void *argument) {
    int who = (int)(intptr_t)argument;
    MARK("0x15");
    for (;;) {
        for (int step = 0; step < 2; step++) {
            pthread_barrier_wait(&turn);
            if (pair[0] < 0) return NULL;
            if (step == pair[1] % 2 ? who == 0 : who == 1) {
                int number = who == 0 ? pair[0] : pair[1] / 2;
                MARK("0x11");
                call(number, who);
                MARK("0x12");
            }
            pthread_barrier_wait(&turn);
        }
    }
}

int main(int count_of, char **arguments) {
    FIELD("limit", limit);
    FIELD("hits", hits);
    FIELD("closed", closed);
    FIELD("asked", asked);
    FIELD("entries[]", entries);
    FIELD("calls", calls);
    fflush(stdout);
    pthread_t threads[2];
    pthread_barrier_init(&turn, NULL, 3);
    for (intptr_t who = 0; who < 2; who++) pthread_create(&threads[who], NULL, worker, (void *)who);
    for (int at = 1; at + 1 < count_of; at += 2) {
        for (int order = 0; order < 2; order++) {
            pair[0] = atoi(arguments[at]);
            pair[1] = 2 * atoi(arguments[at + 1]) + order;
            MARK("0x10");
            for (int step = 0; step < 2; step++) {
                pthread_barrier_wait(&turn);
                pthread_barrier_wait(&turn);
            }
            MARK("0x13");
        }
    }
    MARK("0x14");
    pair[0] = -1;
    pthread_barrier_wait(&turn);
    for (int who = 0; who < 2; who++) pthread_join(threads[who], NULL);
    return 0;
}
