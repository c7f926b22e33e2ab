/* What the programs here have in common: items, and checks that end the program with a line. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <olf.h>

#define EXPECT(wanted, call)                                                                                           \
  do {                                                                                                                 \
    int came = (call);                                                                                                 \
    if (came != (wanted)) {                                                                                            \
      fprintf(stderr, "%s:%d: %s: expected %d, got %d: %s\n", __FILE__, __LINE__, #call, (wanted), came,               \
              olf_reason(came));                                                                                       \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

/* An item with a link somewhere in it. */
typedef struct thing {
  char name[8];
  olf_link link;
  int amount;
} thing;

/* Things that were freed. */
extern int freed;

static inline thing *thing_of(olf_link *link) { return OLF_CONTAINER_OF(link, thing, link); }

static inline void thing_free(olf_link *link) {
  __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
  free(thing_of(link));
}

static inline thing *thing_new(olf_domain *domain, uint64_t key, int amount) {
  size_t size = (sizeof(thing) + OLF_ALIGN - 1) / OLF_ALIGN * OLF_ALIGN;
  thing *made = aligned_alloc(OLF_ALIGN, size);
  made->amount = amount;
  EXPECT(0, olf_link_init(domain, &made->link, key, thing_free));
  return made;
}

#endif
