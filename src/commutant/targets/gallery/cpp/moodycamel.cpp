// moodycamel::ConcurrentQueue: a queue for each producer.
#include <commutant.hpp>

#include <cerrno>
#include <concurrentqueue/concurrentqueue.h>

struct Queue {
  moodycamel::ConcurrentQueue<long> items;
};

static void push(Queue &queue, const commutant_value *arguments, commutant_result *) {
  queue.items.enqueue(arguments[0].number);
}

static void pop(Queue &queue, const commutant_value *, commutant_result *result) {
  long item;
  if (!queue.items.try_dequeue(item)) return commutant_error(result, EAGAIN);
  commutant_member(result, item);
}

COMMUTANT_LIBRARY(Queue, COMMUTANT_CALL(Queue, "push(item)", push), COMMUTANT_CALL(Queue, "pop()", pop))
