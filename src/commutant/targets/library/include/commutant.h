/* What an adapter of a library tells Commutant (docs/guides/libraries.md). An adapter is a shared object that defines
 * commutant_adapter. Calls may come from any thread; a call under test is made on the thread of its core. */
#ifndef COMMUTANT_H
#define COMMUTANT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COMMUTANT_VERSION 1

enum commutant_kind {
  COMMUTANT_NOTHING,  /* a call without a result */
  COMMUTANT_NUMBER,   /* number */
  COMMUTANT_TRUTH,    /* number: 0 or 1 */
  COMMUTANT_MEMBER,   /* a member of a sort, such as a key: a number that is new in each test, and a text of its own */
  COMMUTANT_ERROR,    /* number: an error of Linux, such as ENOENT */
  COMMUTANT_HANDLE,   /* number: what the library chose; text: the handle's sort */
  COMMUTANT_SEQUENCE, /* length values follow */
  COMMUTANT_RECORD,   /* length values follow, each with the name of its field */
  COMMUTANT_FAILED    /* text: why the library did what it never should */
};

typedef struct {
  uint32_t kind;
  uint32_t length; /* of the text, or how many values follow */
  int64_t number;
  const char *text; /* ends with NUL in arguments; in results it must stay until the thread's next call */
  const char *field;
} commutant_value;

/* Where a call puts its result. The functions below write into it; they allocate nothing. */
typedef struct {
  commutant_value *values;
  uint32_t count, capacity;
  const char *field;
} commutant_result;

typedef struct {
  const char *signature; /* as in the model: "put(key, value)" */
  void (*function)(void *object, const commutant_value *arguments, commutant_result *result);
} commutant_call;

typedef struct {
  uint32_t version, size;
  const commutant_call *calls; /* ends with {0} */
  void *(*make)(void);         /* an empty object; each test has one */
  void (*drop)(void *object);
  void (*reset)(void *object);  /* or NULL: empties an object, where making one is slow */
  void (*settle)(void *object); /* or NULL: on each core's thread before each test */
  void (*enter)(uint32_t core); /* or NULL: once on each core's thread, before all tests */
} commutant_adapter_type;

extern
#ifdef __GNUC__
    __attribute__((visibility("default")))
#endif
    const commutant_adapter_type commutant_adapter;

#define COMMUTANT_ADAPTER(calls, make, drop) {COMMUTANT_VERSION, sizeof(commutant_adapter_type), calls, make, drop, 0, 0, 0}

static inline commutant_value *commutant_put(commutant_result *result, uint32_t kind, int64_t number, const char *text) {
  commutant_value *value = &result->values[result->count < result->capacity ? result->count : 0];
  value->kind = kind;
  value->length = text ? (uint32_t)strlen(text) : 0;
  value->number = number;
  value->text = text;
  value->field = result->field;
  result->field = 0;
  result->count++; /* more values than there is room for are an error that the runner reports */
  return value;
}
static inline void commutant_number(commutant_result *result, int64_t n) { commutant_put(result, COMMUTANT_NUMBER, n, 0); }
static inline void commutant_truth(commutant_result *result, int truth) { commutant_put(result, COMMUTANT_TRUTH, !!truth, 0); }
static inline void commutant_member(commutant_result *result, int64_t n) { commutant_put(result, COMMUTANT_MEMBER, n, 0); }
static inline void commutant_text(commutant_result *result, const char *text) { commutant_put(result, COMMUTANT_MEMBER, 0, text); }
static inline void commutant_error(commutant_result *result, int error) { commutant_put(result, COMMUTANT_ERROR, error, 0); }
static inline void commutant_failed(commutant_result *result, const char *why) { commutant_put(result, COMMUTANT_FAILED, 0, why); }
static inline void commutant_handle(commutant_result *result, int64_t n, const char *sort) { commutant_put(result, COMMUTANT_HANDLE, n, sort); }
/* The values behind belong to it: raise its length with each. */
static inline commutant_value *commutant_sequence(commutant_result *result) { return commutant_put(result, COMMUTANT_SEQUENCE, 0, 0); }
static inline commutant_value *commutant_record(commutant_result *result) { return commutant_put(result, COMMUTANT_RECORD, 0, 0); }
static inline void commutant_field(commutant_result *result, const char *name) { result->field = name; } /* of the next value */

#ifdef __cplusplus
}
#endif
#endif
