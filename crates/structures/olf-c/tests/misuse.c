/* What is not right is refused, and changes nothing. */
#include <string.h>

#include "check.h"

int freed;

static int nested(olf_steps *steps, void *argument) {
  (void)steps;
  return olf_atomically(argument, nested, argument);
}

struct many {
  olf_list *from, *to;
};

static int too_many(olf_steps *steps, void *argument) {
  struct many *many = argument;
  for (int key = 1; key < 10; key += 2) {
    olf_link *link;
    int error = olf_step_remove(steps, many->from, key, &link);
    if (!error) error = olf_step_insert(steps, many->to, link);
    if (error) return error;
  }
  return 0;
}

int main(void) {
  olf_domain *domain = NULL, *foreign;
  olf_thread *thread = NULL, *one_more;
  olf_list *list, *ends, *abroad;
  olf_link *link;
  EXPECT(OLF_INVALID, olf_domain_new(0, 1, &domain));
  EXPECT(OLF_INVALID, olf_domain_new(256, 1, &domain));
  EXPECT(OLF_INVALID, olf_domain_new(1, 524288, &domain));
  EXPECT(OLF_INVALID, olf_domain_new(1, 1, NULL));
  EXPECT(OLF_INVALID, olf_domain_free(NULL));
  EXPECT(0, olf_domain_new(1, 2, &domain));
  EXPECT(OLF_INVALID, olf_enter(domain, NULL));
  EXPECT(OLF_INVALID, olf_enter(NULL, &thread));
  EXPECT(0, olf_enter(domain, &thread));
  EXPECT(OLF_TOO_MANY, olf_enter(domain, &one_more));
  EXPECT(0, olf_sorted_new(domain, &list));
  EXPECT(0, olf_list_new(domain, &ends));
  EXPECT(OLF_TOO_MANY, olf_map_new(domain, &abroad));
  EXPECT(OLF_INVALID, olf_map_new(domain, NULL));

  /* Handles of one kind for another, and of another domain. */
  EXPECT(OLF_INVALID, olf_remove((olf_thread *)domain, list, 1, &link));
  EXPECT(OLF_INVALID, olf_remove(thread, (olf_list *)thread, 1, &link));
  EXPECT(OLF_INVALID, olf_enter((olf_domain *)list, &one_more));
  EXPECT(OLF_INVALID, olf_domain_free((olf_domain *)thread));
  EXPECT(OLF_INVALID, olf_leave((olf_thread *)ends));
  EXPECT(OLF_INVALID, olf_list_free((olf_list *)thread));
  EXPECT(OLF_INVALID, olf_remove(thread, ends, 1, &link));
  EXPECT(OLF_INVALID, olf_pop(thread, list, 1, &link));
  EXPECT(OLF_INVALID, olf_remove(thread, list, 1, NULL));
  EXPECT(0, olf_domain_new(1, 1, &foreign));
  EXPECT(0, olf_sorted_new(foreign, &abroad));
  EXPECT(OLF_INVALID, olf_find(thread, abroad, 1, NULL));
  EXPECT(OLF_INVALID, olf_move(thread, list, abroad, 1));
  thing *stranger = thing_new(foreign, 1, 1);
  EXPECT(OLF_INVALID, olf_insert(thread, list, &stranger->link));

  /* Links that are none. */
  _Alignas(OLF_ALIGN) char room[2 * sizeof(olf_link)];
  memset(room, 0, sizeof room);
  EXPECT(OLF_INVALID, olf_insert(thread, list, (olf_link *)(void *)room));
  EXPECT(OLF_INVALID, olf_insert(thread, list, NULL));
  EXPECT(OLF_INVALID, olf_link_init(domain, (olf_link *)(void *)(room + 8), 1, NULL));
  EXPECT(OLF_INVALID, olf_link_init(domain, NULL, 1, NULL));
  EXPECT(OLF_INVALID, olf_retire(thread, (olf_link *)(void *)room));

  /* The same item twice, and in lists of the other kind of link. */
  thing *thing = thing_new(domain, 0, 1);
  EXPECT(OLF_INVALID, olf_insert(thread, ends, &thing->link));
  EXPECT(OLF_INVALID, olf_push(thread, list, &thing->link, 1));
  EXPECT(0, olf_hold(thread, &thing->link));
  EXPECT(0, olf_insert(thread, list, &thing->link));
  EXPECT(OLF_BUSY, olf_insert(thread, list, &thing->link));
  EXPECT(OLF_ABSENT, olf_take(thread, ends, &thing->link));
  EXPECT(0, olf_retire(thread, &thing->link));

  /* Operations inside of one, that are too large, and steps that are over. */
  EXPECT(OLF_NESTED, olf_atomically(thread, nested, thread));
  EXPECT(OLF_INVALID, olf_atomically(thread, NULL, NULL));
  EXPECT(0, olf_list_free(ends));
  /* Its number is used again once three rounds have passed. */
  for (int round = 0; round < 4; round++) olf_maintain(thread);
  EXPECT(0, olf_sorted_new(domain, &ends));
  for (int key = 1; key < 10; key++) EXPECT(0, olf_insert(thread, list, &thing_new(domain, key, 1)->link));
  struct many many = {list, ends};
  EXPECT(OLF_TOO_LARGE, olf_atomically(thread, too_many, &many));
  for (int key = 0; key < 10; key++) EXPECT(0, olf_find(thread, list, key, NULL));
  EXPECT(OLF_INVALID, olf_step_contains(NULL, list, 1));
  EXPECT(OLF_INVALID, olf_step_contains((olf_steps *)thread, list, 1));

  /* What was given up. */
  EXPECT(OLF_BUSY, olf_domain_free(domain));
  EXPECT(0, olf_enter(foreign, &one_more));
  EXPECT(0, olf_retire(one_more, &stranger->link));
  EXPECT(0, olf_list_free(abroad));
  EXPECT(0, olf_leave(one_more));
  EXPECT(0, olf_domain_free(foreign));
  EXPECT(1, freed);
  EXPECT(0, olf_list_free(list));
  EXPECT(0, olf_list_free(ends));
  EXPECT(0, olf_leave(thread));
  EXPECT(0, olf_domain_free(domain));
  EXPECT(11, freed);
  for (int error = -200; error < 3; error++)
    if (strlen(olf_reason(error)) < 8 || strchr(olf_reason(error), '\n')) return 1;
  return 0;
}
