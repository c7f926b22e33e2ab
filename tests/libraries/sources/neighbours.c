/* Planted neighbours: lines of one aligned pair of 128 bytes, each written by one core, with twins that have none. */
#include <commutant.h>
#include <stdlib.h>
#include <string.h>

#define PAIR 128
#define NOINLINE __attribute__((noinline))

/* The two counters lie in the two lines of one pair: 64 bytes apart are not enough. */
struct beside { long left; char gap[56]; long right; char rest[56]; } __attribute__((aligned(PAIR)));
NOINLINE static void lines_of_one_pair(struct beside *beside, int core) {
  if (core == 0) beside->left++;
  else beside->right++;
}

/* The twin: a pair for each. */
struct apart { long left __attribute__((aligned(PAIR))); long right __attribute__((aligned(PAIR))); };
NOINLINE static void lines_of_two_pairs(struct apart *apart, int core) {
  if (core == 0) apart->left++;
  else apart->right++;
}

/* Also 64 bytes apart, but across the border of two pairs. */
struct across { char before[64]; long left; char gap[56]; long right; char rest[56]; long end[8]; }
    __attribute__((aligned(PAIR)));
NOINLINE static void lines_across_pairs(struct across *across, int core) {
  if (core == 0) across->left++;
  else across->right++;
}

/* One line is shared by itself: a stronger kind, reported alone. */
NOINLINE static void line_that_is_shared(struct beside *beside, int core) {
  beside->left++;
  if (core == 1) beside->right++;
}

/* No one writes. */
NOINLINE static long lines_that_are_read(struct beside *beside, int core) {
  return core == 0 ? __atomic_load_n(&beside->left, __ATOMIC_RELAXED) : __atomic_load_n(&beside->right, __ATOMIC_RELAXED);
}

struct all { struct beside *beside; struct apart *apart; struct across *across; };
#define NEW(type) memset(aligned_alloc(PAIR, sizeof(type)), 0, sizeof(type))
static void *make(void) {
  struct all *all = malloc(sizeof *all);
  all->beside = NEW(struct beside);
  all->apart = NEW(struct apart);
  all->across = NEW(struct across);
  return all;
}
static void drop(void *all) { free(all); }

#define CALL(name, object)                                                                          \
  static void call_##name(void *all, const commutant_value *arguments, commutant_result *result) { \
    name(((struct all *)all)->object, (int)arguments[0].number);                                    \
    commutant_number(result, 0);                                                                    \
  }
CALL(lines_of_one_pair, beside)
CALL(lines_of_two_pairs, apart)
CALL(lines_across_pairs, across)
CALL(line_that_is_shared, beside)
CALL(lines_that_are_read, beside)

static const commutant_call calls[] = {
    {"lines_of_one_pair(core)", call_lines_of_one_pair},
    {"lines_of_two_pairs(core)", call_lines_of_two_pairs},
    {"lines_across_pairs(core)", call_lines_across_pairs},
    {"line_that_is_shared(core)", call_line_that_is_shared},
    {"lines_that_are_read(core)", call_lines_that_are_read},
    {0, 0},
};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);
