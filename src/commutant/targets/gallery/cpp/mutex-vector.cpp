// The C++ library's vector behind a lock, as a stack.
#include <commutant.hpp>

#include <cerrno>
#include <mutex>
#include <vector>

struct Stack {
  std::mutex lock;
  std::vector<long> items;
  Stack() { items.reserve(4096); }
};

static void push(Stack &stack, const commutant_value *arguments, commutant_result *) {
  std::lock_guard guard(stack.lock);
  stack.items.push_back(arguments[0].number);
}

static void pop(Stack &stack, const commutant_value *, commutant_result *result) {
  std::lock_guard guard(stack.lock);
  if (stack.items.empty()) return commutant_error(result, EAGAIN);
  commutant_member(result, stack.items.back());
  stack.items.pop_back();
}

COMMUTANT_LIBRARY(Stack, COMMUTANT_CALL(Stack, "push(item)", push), COMMUTANT_CALL(Stack, "pop()", pop))
