/* Concurrency Kit: a ring between many producers and many consumers. */
#include <commutant.h>

#include <ck_ring.h>
#include <errno.h>
#include <stdlib.h>

#define ROOM 4096

struct queue {
  ck_ring_t ring;
  _Alignas(64) ck_ring_buffer_t slots[ROOM];
};

static void *make(void) {
  struct queue *queue = aligned_alloc(64, sizeof *queue);
  ck_ring_init(&queue->ring, ROOM);
  return queue;
}
static void drop(void *queue) { free(queue); }

static void push(void *object, const commutant_value *arguments, commutant_result *result) {
  struct queue *queue = object;
  if (!ck_ring_enqueue_mpmc(&queue->ring, queue->slots, (void *)arguments[0].number))
    commutant_failed(result, "the ring is full");
}

static void pop(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments;
  struct queue *queue = object;
  void *item;
  if (!ck_ring_dequeue_mpmc(&queue->ring, queue->slots, &item)) return commutant_error(result, EAGAIN);
  commutant_member(result, (int64_t)item);
}

static const commutant_call calls[] = {{"push(item)", push}, {"pop()", pop}, {0, 0}};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);
