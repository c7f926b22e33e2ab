/* Concurrency Kit: the stack of Treiber, with a counter next to its head. */
#include <commutant.h>

#include <ck_stack.h>
#include <errno.h>
#include <stdlib.h>

struct stack {
  _Alignas(64) ck_stack_t items;
};

struct item {
  ck_stack_entry_t entry; /* first: an entry's address is its item's */
  long value;
};

static void *make(void) {
  struct stack *stack = aligned_alloc(64, sizeof *stack);
  ck_stack_init(&stack->items);
  return stack;
}

static void push(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)result;
  struct stack *stack = object;
  struct item *item = malloc(sizeof *item);
  item->value = arguments[0].number;
  ck_stack_push_mpmc(&stack->items, &item->entry);
}

static void pop(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments;
  struct stack *stack = object;
  struct item *item = (struct item *)ck_stack_pop_mpmc(&stack->items);
  if (!item) return commutant_error(result, EAGAIN);
  commutant_member(result, item->value);
  free(item);
}

static void drop(void *object) {
  struct stack *stack = object;
  for (ck_stack_entry_t *entry; (entry = ck_stack_pop_mpmc(&stack->items));) free(entry);
  free(stack);
}

static const commutant_call calls[] = {{"push(item)", push}, {"pop()", pop}, {0, 0}};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);
