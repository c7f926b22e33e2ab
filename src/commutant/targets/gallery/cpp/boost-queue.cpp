// Boost.Lockfree: the queue of Michael and Scott.
#include <commutant.hpp>

#include <boost/lockfree/queue.hpp>
#include <cerrno>

struct Queue {
  boost::lockfree::queue<long> items{4096};
};

static void push(Queue &queue, const commutant_value *arguments, commutant_result *) {
  queue.items.push(arguments[0].number);
}

static void pop(Queue &queue, const commutant_value *, commutant_result *result) {
  long item;
  if (!queue.items.pop(item)) return commutant_error(result, EAGAIN);
  commutant_member(result, item);
}

COMMUTANT_LIBRARY(Queue, COMMUTANT_CALL(Queue, "push(item)", push), COMMUTANT_CALL(Queue, "pop()", pop))
