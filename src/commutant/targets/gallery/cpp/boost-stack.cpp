// Boost.Lockfree: a stack of nodes.
#include <commutant.hpp>

#include <boost/lockfree/stack.hpp>
#include <cerrno>

struct Stack {
  boost::lockfree::stack<long> items{4096};
};

static void push(Stack &stack, const commutant_value *arguments, commutant_result *) {
  stack.items.push(arguments[0].number);
}

static void pop(Stack &stack, const commutant_value *, commutant_result *result) {
  long item;
  if (!stack.items.pop(item)) return commutant_error(result, EAGAIN);
  commutant_member(result, item);
}

COMMUTANT_LIBRARY(Stack, COMMUTANT_CALL(Stack, "push(item)", push), COMMUTANT_CALL(Stack, "pop()", pop))
