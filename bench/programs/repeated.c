/* An adapter whose calls repeat a call of another adapter, and keep the processor time that the thread took for them; as a
 * program it prints the same of calls that it makes by itself: `repeated SIGNATURE TIMES`. */
#define _GNU_SOURCE
#include <commutant.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPEATS = 500, KEYS = 64 };

static const commutant_adapter_type *measured(void) {
  static const commutant_adapter_type *adapter;
  if (!adapter) {
    void *library = dlopen(MEASURED, RTLD_NOW | RTLD_LOCAL);
    if (!library || !(adapter = dlsym(library, "commutant_adapter"))) {
      fprintf(stderr, "%s\n", dlerror());
      abort();
    }
  }
  return adapter;
}

static const commutant_call *call_of(const char *signature) {
  const commutant_call *call = measured()->calls;
  while (strcmp(call->signature, signature)) call++;
  return call;
}

static commutant_value member(int64_t number) { return (commutant_value){COMMUTANT_MEMBER, 0, number, "", 0}; }

/* Makes a call of all keys in turn; gives nanoseconds of the thread's processor time for REPEATS calls. */
static int64_t repeated(void *object, const char *signature) {
  const commutant_call *call = call_of(signature);
  struct timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int i = 0; i < REPEATS; i++) {
    commutant_value arguments[] = {member(i % KEYS), member(i)}, answers[8];
    commutant_result result = {answers, 0, 8, 0};
    call->function(object, arguments, &result);
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
}

static void *made(void) {
  void *object = measured()->make();
  repeated(object, "put(key, value)");
  return object;
}

static int64_t spent;

static void drop(void *object) { measured()->drop(object); }
static void get(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments, (void)result;
  spent = repeated(object, "get(key)");
}
static void put(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments, (void)result;
  spent = repeated(object, "put(key, value)");
}
static void last(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)object, (void)arguments;
  commutant_number(result, spent);
}

static const commutant_call calls[] = {{"get()", get}, {"put()", put}, {"last()", last}, {0, 0}};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, made, drop);

int main(int count, char **arguments) {
  if (count != 3) return 2;
  void *object = made();
  for (int i = 0; i < atoi(arguments[2]); i++) printf("%ld\n", (long)repeated(object, arguments[1]));
}
