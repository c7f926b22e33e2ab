/* Every call, by one thread. */
#include "check.h"

int freed;

struct step {
  olf_list *from, *to, *queue;
  int runs;
  olf_link *popped;
};

/* Moves item 1, and takes the first of the queue, unless item 9 is there. */
static int move_two(olf_steps *steps, void *argument) {
  struct step *step = argument;
  olf_link *link;
  step->runs++;
  step->popped = NULL;
  int error = olf_step_contains(steps, step->to, 9);
  if (error) return error;
  if ((error = olf_step_remove(steps, step->from, 1, &link))) return error;
  if ((error = olf_step_insert(steps, step->to, link))) return error;
  return olf_step_pop(steps, step->queue, 1, &step->popped);
}

/* Puts back what was popped. */
static int push_back(olf_steps *steps, void *argument) {
  struct step *step = argument;
  return olf_step_push(steps, step->queue, step->popped, 0);
}

/* Takes item 1 out for the caller, and fails if it is asked to. */
static int take_one(olf_steps *steps, void *argument) {
  struct step *step = argument;
  olf_link *link;
  int error = olf_step_remove(steps, step->to, 1, &link);
  return error ? error : step->runs;
}

struct looks {
  olf_thread *other;
  olf_list *from, *to;
  int runs, lost;
};

/* Looks again and again at an item that another thread moves after the first look. */
static int look_often(olf_steps *steps, void *argument) {
  struct looks *looks = argument;
  int found = olf_step_contains(steps, looks->from, 3);
  if (looks->runs++ == 0) EXPECT(0, olf_move(looks->other, looks->from, looks->to, 3));
  for (int look = 0; found >= 0 && look < 1000; look++) found = olf_step_contains(steps, looks->from, 3);
  looks->lost += found == OLF_AGAIN;
  return found < 0 ? found : 40 + found;
}

int main(void) {
  olf_domain *domain;
  olf_thread *thread;
  olf_list *map, *sorted, *queue, *other;
  olf_link *link, *again;
  EXPECT(0, olf_domain_new(2, 4, &domain));
  EXPECT(0, olf_enter(domain, &thread));
  EXPECT(0, olf_map_new(domain, &map));
  EXPECT(0, olf_sorted_new(domain, &sorted));
  EXPECT(0, olf_list_new(domain, &queue));
  EXPECT(0, olf_list_new(domain, &other));

  /* Maps and lists in order. */
  for (int key = 0; key < 4; key++) EXPECT(0, olf_insert(thread, map, &thing_new(domain, key, 10 * key)->link));
  thing *twice = thing_new(domain, 2, 7);
  EXPECT(OLF_EXISTS, olf_insert(thread, map, &twice->link));
  EXPECT(0, olf_insert(thread, sorted, &twice->link));
  EXPECT(0, olf_find(thread, map, 3, &link));
  EXPECT(30, thing_of(link)->amount);
  EXPECT(OLF_BUSY, olf_insert(thread, sorted, link));
  EXPECT(0, olf_retire(thread, link));
  EXPECT(0, olf_find(thread, sorted, 2, NULL));
  EXPECT(OLF_ABSENT, olf_find(thread, sorted, 3, NULL));
  EXPECT(0, olf_move(thread, map, sorted, 1));
  EXPECT(OLF_ABSENT, olf_move(thread, map, sorted, 1));
  EXPECT(OLF_EXISTS, olf_move(thread, map, sorted, 2));
  EXPECT(OLF_SAME_LIST, olf_move(thread, map, map, 0));
  EXPECT(0, olf_swap(thread, map, 2, sorted, 2));
  EXPECT(0, olf_remove(thread, map, 2, &link));
  EXPECT(7, thing_of(link)->amount);
  EXPECT(OLF_ABSENT, olf_remove(thread, map, 2, &again));

  /* Both ends; the item is in the map as well. */
  EXPECT(0, olf_insert(thread, map, link));
  EXPECT(0, olf_hold(thread, link));
  EXPECT(0, olf_hold(thread, link));
  EXPECT(0, olf_push(thread, queue, link, 1));
  EXPECT(OLF_BUSY, olf_push(thread, queue, link, 0));
  EXPECT(0, olf_push(thread, queue, &thing_new(domain, 50, 50)->link, 0));
  EXPECT(0, olf_pass(thread, queue, other, link, 0));
  EXPECT(OLF_ABSENT, olf_pass(thread, queue, other, link, 0));
  EXPECT(OLF_ABSENT, olf_take(thread, queue, link));
  EXPECT(0, olf_pass(thread, other, queue, link, 0));
  EXPECT(0, olf_pop(thread, queue, 1, &again));
  EXPECT(50, thing_of(again)->amount);
  EXPECT(0, olf_push(thread, queue, again, 1));
  EXPECT(0, olf_take(thread, queue, link));
  EXPECT(0, olf_retire(thread, link));
  EXPECT(0, olf_push(thread, queue, link, 0));
  EXPECT(OLF_ABSENT, olf_pop(thread, other, 0, &again));

  /* Steps that happen together, or not at all. */
  struct step step = {sorted, map, queue, 0, NULL};
  EXPECT(0, olf_atomically(thread, move_two, &step));
  EXPECT(1, step.runs);
  EXPECT(50, thing_of(step.popped)->amount);
  EXPECT(0, olf_atomically(thread, push_back, &step));
  EXPECT(OLF_BUSY, olf_atomically(thread, push_back, &step));
  EXPECT(0, olf_find(thread, map, 1, NULL));
  EXPECT(OLF_ABSENT, olf_find(thread, sorted, 1, NULL));
  EXPECT(OLF_ABSENT, olf_atomically(thread, move_two, &step));
  EXPECT(0, olf_insert(thread, map, &thing_new(domain, 9, 9)->link));
  EXPECT(1, olf_atomically(thread, move_two, &step));
  step.runs = 77;
  EXPECT(77, olf_atomically(thread, take_one, &step));
  EXPECT(0, olf_find(thread, map, 1, &link));
  step.runs = 0;
  EXPECT(0, olf_atomically(thread, take_one, &step));
  EXPECT(OLF_ABSENT, olf_find(thread, map, 1, NULL));
  EXPECT(0, olf_retire(thread, link));
  EXPECT(0, olf_retire(thread, link));
  while (olf_maintain(thread)) {
  }
  EXPECT(1, freed);

  /* Steps that have seen what is no longer so are made again. */
  struct looks looks = {NULL, map, sorted, 0, 0};
  EXPECT(0, olf_enter(domain, &looks.other));
  EXPECT(40, olf_atomically(thread, look_often, &looks));
  EXPECT(2, looks.runs);
  EXPECT(1, looks.lost);
  EXPECT(0, olf_leave(looks.other));

  /* A map grows; what is left in lists is freed with them. */
  for (int key = 100; key < 300; key++) EXPECT(0, olf_insert(thread, map, &thing_new(domain, key, key)->link));
  EXPECT(1, olf_grow(thread, map));
  while (olf_grow(thread, map)) {
  }
  for (int key = 100; key < 300; key++) EXPECT(0, olf_find(thread, map, key, NULL));
  EXPECT(0, olf_grow(thread, queue));
  EXPECT(OLF_BUSY, olf_domain_free(domain));
  EXPECT(0, olf_list_free(map));
  EXPECT(0, olf_list_free(sorted));
  EXPECT(0, olf_list_free(queue));
  EXPECT(0, olf_list_free(other));
  EXPECT(0, olf_leave(thread));
  EXPECT(0, olf_domain_free(domain));
  EXPECT(207, freed);
  return 0;
}
