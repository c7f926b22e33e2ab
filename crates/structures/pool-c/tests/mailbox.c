/* A protocol that is not ours: a mailbox of one line, right and with each of its steps left out. */
#include <pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, pool_reason());                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum fault { NONE, NO_WRITE_BACK, NO_DRAIN, NO_INVALIDATE, NO_ACCEPT_RULE, FAULTS };

struct mailbox {
    enum fault fault;
    struct pool_memory *ends[2];
    int wrong;
};

/* Data at 0; at 64 a flag of the writer, at 128 one of the reader: numbers of one word, which nothing tears. */
static void set(struct mailbox *box, int end, uint64_t at, uint64_t number) {
    pool_write_version(box->ends[end], at, &number, sizeof number, number);
    pool_write_back(box->ends[end], at, sizeof number);
    pool_drain(box->ends[end]);
    pool_promise(box->ends[end]);
}

static void wait_for(struct mailbox *box, int end, uint64_t at, uint64_t number) {
    uint64_t seen = 0;
    while (seen != number) {
        pool_invalidate(box->ends[end], at, sizeof seen);
        pool_read(box->ends[end], at, &seen, sizeof seen);
    }
    if (box->fault != NO_ACCEPT_RULE)
        pool_accept(box->ends[end], at, sizeof seen, number);
}

static int program(void *context, uint32_t end) {
    struct mailbox *box = context;
    for (uint64_t number = 1; number <= 50; number++) {
        uint64_t data[4] = {number, number, number, number};
        if (end == 0) {
            pool_write(box->ends[0], 0, data, sizeof data);
            if (box->fault != NO_WRITE_BACK)
                pool_write_back(box->ends[0], 0, sizeof data);
            if (box->fault != NO_DRAIN)
                pool_drain(box->ends[0]);
            set(box, 0, 64, number);
            wait_for(box, 0, 128, number);
        } else {
            wait_for(box, 1, 64, number);
            if (box->fault != NO_INVALIDATE)
                pool_invalidate(box->ends[1], 0, sizeof data);
            pool_read(box->ends[1], 0, data, sizeof data);
            box->wrong += data[0] != number || data[3] != number;
            set(box, 1, 128, number);
        }
    }
    return 0;
}

/* Runs the mailbox; returns how many faults were reported. */
static uint64_t run(enum fault fault, uint64_t seed, int *wrong, char *report, size_t length) {
    struct pool_emulated *emulated = pool_emulated_new(256, 2, seed);
    CHECK(emulated);
    struct mailbox box = {.fault = fault};
    for (uint32_t end = 0; end < 2; end++)
        CHECK(box.ends[end] = pool_emulated_domain(emulated, end, 0));
    CHECK(pool_declare(box.ends[0], 64, 64, POOL_REGISTER, 0, 0) == 0);
    CHECK(pool_declare(box.ends[0], 128, 64, POOL_REGISTER, 1, 0) == 0);
    CHECK(pool_run(program, &box, 2, seed, 1000000) == 1);
    pool_emulated_end(emulated);
    uint64_t count = pool_report_count(emulated);
    report[0] = 0;
    pool_report(emulated, 0, report, length);
    *wrong = box.wrong;
    for (int end = 0; end < 2; end++)
        pool_leave(box.ends[end]);
    pool_emulated_free(emulated);
    return count;
}

static void emulated(void) {
    char report[256], seed_text[32];
    int wrong;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t count = run(NONE, seed, &wrong, report, sizeof report);
        if (count || wrong) {
            fprintf(stderr, "%s\n", report);
            exit(1);
        }
        snprintf(seed_text, sizeof seed_text, "(seed %d,", (int)seed);
        for (enum fault fault = NO_WRITE_BACK; fault < FAULTS; fault++) {
            CHECK(run(fault, seed, &wrong, report, sizeof report) > 0);
            CHECK(strstr(report, seed_text));
            CHECK(wrong > 0 || fault == NO_ACCEPT_RULE || fault == NO_DRAIN);
        }
    }
}

static void misuse(void) {
    uint64_t word = 0;
    CHECK(pool_read(NULL, 0, &word, 8) == -22);
    CHECK(strcmp(pool_reason(), "expected memory, got NULL") == 0);
    CHECK(!pool_emulated_new(100, 2, 0));
    CHECK(strstr(pool_reason(), "expected a multiple of 64 bytes"));
    struct pool_emulated *emulated = pool_emulated_new(128, 2, 0);
    CHECK(!pool_emulated_domain(emulated, 2, 0));
    struct pool_memory *memory = pool_emulated_domain(emulated, 0, POOL_COHERENT);
    CHECK(pool_size_bytes(memory) == 128 && pool_first_free(memory) == 0);
    CHECK(pool_write(memory, 124, &word, 8) == -34);
    CHECK(strcmp(pool_reason(), "expected an access within the 128 bytes of the pool, got 8 bytes at 124") == 0);
    CHECK(pool_read(memory, 0, NULL, 8) == -22 && pool_accept(memory, 120, 16, 0) == -34);
    CHECK(pool_declare(memory, 0, 64, 4, 0, 0) == -22);
    CHECK(pool_sent(memory, 1, 1) == 0 && pool_received(memory, 1, 1) == 0);
    pool_crash(emulated, 0);
    CHECK(pool_read(memory, 0, &word, 8) == -130);
    pool_revive(emulated, 0);
    CHECK(pool_read(memory, 0, &word, 8) == 0);
    pool_leave(memory);
    pool_emulated_free(emulated);
}

static void files(void) {
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/pool-c-test-%d", (int)getpid());
    CHECK(pool_create(path, 1 << 16, 2) == 0);
    struct pool_memory *one = pool_join(path, 0, 0), *other = pool_join(path, 1, POOL_COHERENT);
    CHECK(one && other && !pool_join(path, 0, 0));
    CHECK(strstr(pool_reason(), "expected domain 0 to be free"));
    uint64_t word = 7, at = pool_first_free(one);
    CHECK(pool_write(one, at, &word, 8) == 0 && pool_write_back(one, at, 8) == 0 && pool_drain(one) == 0);
    word = 0;
    CHECK(pool_invalidate(other, at, 8) == 0 && pool_read(other, at, &word, 8) == 0 && word == 7);
    pool_leave(one);
    pool_leave(other);
    CHECK(unlink(path) == 0);
    CHECK(!pool_join(path, 0, POOL_TAKE_OVER) && pool_create(path, 64, 2) == -5);
}

int main(void) {
    emulated();
    misuse();
    files();
    return 0;
}
