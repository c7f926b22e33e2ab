/* Memory that coherence domains share, for C: real, coherent, or emulated with old data, an adversary and a checker.
 *
 * Made from crates/structures/pool-c/src; do not edit. Link with libpool_c.a.
 *
 * write - pool_write_back - pool_drain - message -> pool_invalidate - read: all four steps lie between one domain's write and
 * another's read. A call returns 0, or a negative error number of Linux: -EINVAL where a pointer is NULL, -ERANGE past the end,
 * -EIO where the file has gone, -EOWNERDEAD where the domain has crashed; pool_reason says why. A view is used by one thread at a
 * time, and not after it was given up. */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pool_memory pool_memory;
typedef struct pool_emulated pool_emulated;

/* A flag of pool_join: another host has left this number without saying so, and has ended. */
#define POOL_TAKE_OVER 1u
/* A flag of pool_join and pool_emulated_domain: the memory is taken for coherent, and write-backs and invalidations are nothing. */
#define POOL_COHERENT 2u

/* Makes a file a pool for that number of domains. */
int32_t pool_create(const char *path, uint64_t size_bytes, uint32_t domain_count);

/* Joins a pool as a domain, with flags; NULL, and pool_reason says why not. */
pool_memory *pool_join(const char *path, uint32_t domain, uint32_t flags);

/* Offset of the first byte that is not the pool's own; 0 for emulated memory. */
uint64_t pool_first_free(const pool_memory *memory);
/* A use of pool_declare: accesses of different domains are ordered by messages. What is not declared is this. */
#define POOL_DATA 0u
/* A use of pool_declare: one domain writes, another takes each version once (pool_accept) before the next is written. */
#define POOL_MESSAGES 1u
/* A use of pool_declare: one domain writes, all read at any time and take what is newest. */
#define POOL_REGISTER 2u
/* A use of pool_declare: nothing is checked. */
#define POOL_UNCHECKED 3u

/* Bytes of the memory; 0 for NULL. */
uint64_t pool_size_bytes(const pool_memory *memory);

/* Reads through this domain's cache. */
int32_t pool_read(const pool_memory *memory, uint64_t at, void *into, size_t length);

/* Writes into this domain's cache. */
int32_t pool_write(const pool_memory *memory, uint64_t at, const void *bytes, size_t length);

/* Writes a version that has a number above 0, which pool_accept must take it for. */
int32_t pool_write_version(const pool_memory *memory, uint64_t at, const void *bytes, size_t length, uint64_t version);

/* Begins to write lines back; they have reached memory after the next pool_drain. */
int32_t pool_write_back(const pool_memory *memory, uint64_t at, size_t length);

/* Forgets lines, so that the next read is of memory. */
int32_t pool_invalidate(const pool_memory *memory, uint64_t at, size_t length);

/* Waits until all write-backs of this thread have reached memory. */
int32_t pool_drain(const pool_memory *memory);

/* Says how lines will be used (POOL_DATA and what follows it), by which writer, and by which reader of POOL_MESSAGES. */
int32_t pool_declare(const pool_memory *memory, uint64_t at, size_t length, uint32_t used, uint32_t writer, uint32_t reader);

/* Says that the caller has validated what it last read of these lines, and takes it for this version, whole. 0: no number. */
int32_t pool_accept(const pool_memory *memory, uint64_t at, size_t length, uint64_t version);

/* Says that others now rely on all that this domain has written for them to read at any time. */
int32_t pool_promise(const pool_memory *memory);

/* Says that this domain sends message `number` of a channel that is not in the memory. */
int32_t pool_sent(const pool_memory *memory, uint64_t channel, uint64_t number);

/* Says that this domain has received message `number` of a channel that is not in the memory. */
int32_t pool_received(const pool_memory *memory, uint64_t channel, uint64_t number);

/* Gives a view up. A domain of a pool file leaves it. */
void pool_leave(pool_memory *memory);

/* Why the last call of this thread that failed did; valid until the next one that fails. */
const char *pool_reason(void);

/* What a domain does in pool_run: gets the context that was given, and its number. */
typedef int32_t (*pool_program)(void *, uint32_t);

/* Emulated memory of zeros for `domain_count` domains, with an adversary that the seed determines; NULL, and pool_reason says why
 * not. */
pool_emulated *pool_emulated_new(uint64_t size_bytes, uint32_t domain_count, uint64_t seed);

/* Gives it up; views of its domains stay valid. */
void pool_emulated_free(pool_emulated *emulated);

/* The memory as this domain sees it, with flags (POOL_COHERENT); NULL, and pool_reason says why not. */
pool_memory *pool_emulated_domain(const pool_emulated *emulated, uint32_t domain, uint32_t flags);

/* Runs a program for each of `count` domains, on this thread: they take turns inside of their accesses, as the seed chooses, for
 * at most `step_count` steps. 1 if all have ended, 0 if not (their stacks, of 1 MiB, are then lost). */
int32_t pool_run(pool_program program, void *context, uint32_t count, uint64_t seed, uint64_t step_count);

/* The run ends: what still had to reach memory is reported. */
void pool_emulated_end(const pool_emulated *emulated);

/* How many faults the checker has found, the same ones counted again. */
uint64_t pool_report_count(const pool_emulated *emulated);

/* Writes the report of this number, from 0, as one line with its seed, cut to `length` bytes and ended with NUL. Returns the
 * bytes of all of it, or 0 if there is none. */
size_t pool_report(const pool_emulated *emulated, uint32_t number, char *into, size_t length);

/* A domain crashes: what its cache held is lost, and its calls fail with -EOWNERDEAD until pool_revive. */
void pool_crash(const pool_emulated *emulated, uint32_t domain);

/* A domain that has crashed begins again. */
void pool_revive(const pool_emulated *emulated, uint32_t domain);

#ifdef __cplusplus
}
#endif

#endif
