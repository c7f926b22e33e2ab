/* liburcu: a queue whose producers never wait, and whose consumers take a lock. */
#define _LGPL_SOURCE
#include <commutant.h>

#include <errno.h>
#include <stdlib.h>
#include <urcu/wfcqueue.h>

struct queue {
  struct cds_wfcq_head head;
  _Alignas(64) struct cds_wfcq_tail tail;
};

struct item {
  struct cds_wfcq_node node; /* first: a node's address is its item's */
  long value;
};

static void *make(void) {
  struct queue *queue = aligned_alloc(64, sizeof *queue);
  cds_wfcq_init(&queue->head, &queue->tail);
  return queue;
}

static void push(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)result;
  struct queue *queue = object;
  struct item *item = malloc(sizeof *item);
  cds_wfcq_node_init(&item->node);
  item->value = arguments[0].number;
  cds_wfcq_enqueue(&queue->head, &queue->tail, &item->node);
}

static struct item *take(struct queue *queue) {
  return (struct item *)cds_wfcq_dequeue_blocking(&queue->head, &queue->tail);
}

static void pop(void *object, const commutant_value *arguments, commutant_result *result) {
  (void)arguments;
  struct item *item = take(object);
  if (!item) return commutant_error(result, EAGAIN);
  commutant_member(result, item->value);
  free(item);
}

static void drop(void *object) {
  struct queue *queue = object;
  for (struct item *item; (item = take(queue));) free(item);
  cds_wfcq_destroy(&queue->head, &queue->tail);
  free(queue);
}

static const commutant_call calls[] = {{"push(item)", push}, {"pop()", pop}, {0, 0}};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);
