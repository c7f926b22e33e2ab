/* Figures 1 and 2 of "The Scalable Commutativity Rule", over a reference implementation M of one flag (flag.py).
 *
 * A history H is known beforehand: set-up X, then a region Y of two calls, one of each core. While the calls are those of H,
 * answers come from H, and M is not asked. Once they are not, M makes all calls so far, and from then on each call.
 *
 *   FIGURE 1   one place in H, which each step moves: any two steps share it
 *   FIGURE 2   a place in H for each thread. Within Y a step moves its own thread's: no two steps share anything
 *
 * FIRST and SECOND are the calls of Y, IS_SET says whether X sets the flag. */
#include <commutant.h>
#include <stdlib.h>

enum call { set, clear, test };
enum { THREADS = 3, SETUP = 2, EMULATE = -1 };

struct step {
  int thread, answer;
  enum call call;
};

struct flag {
  struct step history[3];
  int setup_steps;       /* of H: X; behind it Y begins */
  _Alignas(64) int flag; /* M's state */
  _Alignas(64) int next; /* Figure 1: how many steps of H are done, or EMULATE */
  struct {
    _Alignas(64) int next; /* Figure 2: of X, then of this thread's calls in Y, or EMULATE */
    int commutes;
  } threads[THREADS];
};

static _Thread_local int thread = SETUP;

static int reference(int *flag, enum call call) {
  if (call != test) *flag = call == set;
  return *flag;
}

static void add(struct flag *object, int *steps, int *flag, int thread, enum call call) {
  object->history[(*steps)++] = (struct step){thread, reference(flag, call), call};
}

static void *make(void) {
  struct flag *object = aligned_alloc(64, sizeof *object);
  int steps = 0, flag = 0;
  memset(object, 0, sizeof *object);
  if (IS_SET) add(object, &steps, &flag, SETUP, set);
  object->setup_steps = steps;
  add(object, &steps, &flag, 0, FIRST);
  add(object, &steps, &flag, 1, SECOND);
  return object;
}

#if FIGURE == 1

static int step(struct flag *object, enum call call) {
  int end = object->setup_steps + 2;
  const struct step *head = object->next != EMULATE && object->next < end ? &object->history[object->next] : NULL;
  if (head && head->thread == thread && head->call == call) {
    object->next++;
    return head->answer;
  }
  if (object->next != EMULATE) { /* H is complete, or the calls are others */
    for (int done = 0; done < object->next; done++) reference(&object->flag, object->history[done].call);
    object->next = EMULATE;
  }
  return reference(&object->flag, call);
}

#else

static const struct step *head_of(const struct flag *object, int next) {
  if (next == EMULATE) return NULL;
  if (next < object->setup_steps) return &object->history[next];
  return next == object->setup_steps && thread != SETUP ? &object->history[next + thread] : NULL;
}

static int step(struct flag *object, enum call call) {
  int *next = &object->threads[thread].next;
  if (*next == object->setup_steps) object->threads[thread].commutes = 1; /* conflict-free mode */
  const struct step *head = head_of(object, *next);
  if (head && head->thread == thread && head->call == call) {
    if (object->threads[thread].commutes)
      ++*next;
    else
      for (int other = 0; other < THREADS; other++) object->threads[other].next++;
    return head->answer;
  }
  if (*next != EMULATE) { /* H is complete, or the calls are others; the order of those in Y is of no account */
    for (int done = 0; done < object->setup_steps && done < *next; done++)
      reference(&object->flag, object->history[done].call);
    for (int core = 0; core < 2; core++)
      if (object->threads[core].next > object->setup_steps)
        reference(&object->flag, object->history[object->setup_steps + core].call);
    for (int other = 0; other < THREADS; other++) object->threads[other].next = EMULATE;
  }
  return reference(&object->flag, call);
}

#endif

static void do_set(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments, (void)result;
  step(object, set);
}
static void do_clear(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments, (void)result;
  step(object, clear);
}
static void do_test(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments;
  commutant_truth(result, step(object, test));
}

static void enter(uint32_t core) { thread = core < 2 ? (int)core : SETUP; }

static const commutant_call calls[] = {{"set()", do_set}, {"clear()", do_clear}, {"test()", do_test}, {0, 0}};
const commutant_adapter_type commutant_adapter = {
    COMMUTANT_VERSION, sizeof(commutant_adapter_type), calls, make, free, 0, 0, enter};
