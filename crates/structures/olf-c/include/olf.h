/* Lists and maps whose operations compose, without locks and without allocation: links are fields of your structs.
 *
 * Made from crates/structures/olf-c/src; do not edit. docs/reference/olf.md says what is promised.
 *
 * A thread handle is used by one thread at a time. A call returns 0, or a negative error number of Linux, of which
 * olf_reason says a line: -EINVAL where a handle is NULL, was given up, or is of another domain, and where a link
 * was not initialised. Who inserts an item gives the list a count of it; who removes it gets that count back. */
#ifndef OLF_H
#define OLF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define OLF_ALIGNED alignas(OLF_ALIGN)
#else
#define OLF_ALIGNED _Alignas(OLF_ALIGN)
#endif

/* The struct whose field a link is. */
#define OLF_CONTAINER_OF(link, type, field) ((type *)((char *)(link) - offsetof(type, field)))
/* Links, and so the structs that have them, lie at multiples of this. */
#define OLF_ALIGN 32

/* A field of an item by which it can stand in one map or list in order, and in one doubly linked list. Its
 * content is the library's. */
typedef struct olf_link {
    OLF_ALIGNED uint64_t room[20];
} olf_link;

typedef struct olf_domain olf_domain; /* What lists and items share between which items move. */
typedef struct olf_thread olf_thread; /* A thread of a domain. */
typedef struct olf_list olf_list; /* A list or a map of a domain. */
typedef struct olf_steps olf_steps; /* What olf_atomically gives to its body. */

/* There is no item with the key, or the item does not stand in the list (ENOENT). */
#define OLF_ABSENT (-2)
/* There is an item with the key (EEXIST). */
#define OLF_EXISTS (-17)
/* The item stands in a list by this link, or a domain is still used (EBUSY). */
#define OLF_BUSY (-16)
/* NULL, a handle that was given up, a link that was not initialised, or one of another domain (EINVAL). */
#define OLF_INVALID (-22)
/* One list twice (ELOOP). */
#define OLF_SAME_LIST (-40)
/* More than eight words in one operation (E2BIG). */
#define OLF_TOO_LARGE (-7)
/* olf_atomically inside of olf_atomically (EDEADLK). */
#define OLF_NESTED (-35)
/* What the steps have seen is not true any more: return it, and they are made again (EAGAIN). */
#define OLF_AGAIN (-11)
/* Memory does not suffice (ENOMEM). */
#define OLF_NO_MEMORY (-12)
/* All threads of the domain, or all its lists, are there already (EUSERS). */
#define OLF_TOO_MANY (-87)

/* What an error number means, in a line that lives as long as the program. */
const char *olf_reason(int error);

/* Makes a domain for this many threads (1 to 255) and lists (1 to 524287) at once. */
int olf_domain_new(size_t threads, size_t lists, olf_domain **made);

/* Gives a domain up, and frees what was retired in it. Returns -EBUSY while it has threads or lists. No count of an item of
 * it may be left. */
int olf_domain_free(olf_domain *domain);

/* Makes the calling thread one of a domain. The handle is used by one thread at a time. */
int olf_enter(olf_domain *domain, olf_thread **made);

/* Ends the thread's part in its domain. */
int olf_leave(olf_thread *thread);

/* Frees what was retired and is looked at by no one any more. To be called between operations, every now and then.
 * Returns 1 if something is left, 0 if not. */
int olf_maintain(olf_thread *thread);

/* Of what no one reaches any more: gets the link, whose memory is the caller's again. Called by olf_maintain in any
 * thread, and by olf_domain_free; must not call anything of this library. */
typedef void (*olf_free)(olf_link *);

/* Makes a link that stands in no list, with a key that does not change any more. The caller has a count of it, which a list
 * takes over and gives back; free is called once, after olf_retire has ended the last count. Returns 0, or -EINVAL if the
 * link is not aligned to OLF_ALIGN or lies above 2^47. */
int olf_link_init(olf_domain *domain, olf_link *link, uint64_t key, olf_free free);

/* Gives the caller one more count of an item of which the caller has one. */
int olf_hold(olf_thread *thread, olf_link *link);

/* Ends a count of the caller's. The last one makes olf_maintain call what olf_link_init was given, once no one reaches
 * the item. */
int olf_retire(olf_thread *thread, olf_link *link);

/* Makes an empty list in the order of keys: for some twenty items. */
int olf_sorted_new(olf_domain *domain, olf_list **list);

/* Makes an empty map by hash. */
int olf_map_new(olf_domain *domain, olf_list **list);

/* Makes an empty doubly linked list in the order of insertion. */
int olf_list_new(olf_domain *domain, olf_list **list);

/* Gives a list up, which no thread uses any more. Its counts of items end. */
int olf_list_free(olf_list *list);

/* Doubles the buckets of a map if they are full. To be called between operations, every now and then: a map does not grow by
 * itself. Returns 1 if it grew, 0 if not; other lists do not grow. */
int olf_grow(olf_thread *thread, olf_list *list);

/* Inserts an item, and takes the caller's count of it. Returns -EEXIST if there is one with its key, -EBUSY if it stands in a
 * map or a list in order; then the count stays the caller's. */
int olf_insert(olf_thread *thread, olf_list *list, olf_link *link);

/* Takes the item with a key out, and gives the caller the list's count of it. Returns -ENOENT if there is none. */
int olf_remove(olf_thread *thread, olf_list *list, uint64_t key, olf_link **taken);

/* Finds the item with a key, and gives the caller a count of it; with NULL for found, only tells whether it is there. Returns
 * -ENOENT if there is none. */
int olf_find(olf_thread *thread, olf_list *list, uint64_t key, olf_link **found);

/* Moves the item with a key to another map or list in order, with the list's count; everybody sees it in exactly one of them.
 * Returns -ENOENT if it is not there, -EEXIST if the other one has the key, -ELOOP for one list twice. */
int olf_move(olf_thread *thread, olf_list *from, olf_list *to, uint64_t key);

/* Exchanges the item with a key for an item of another map or list in order. Returns -ENOENT if one of them is not there,
 * -EEXIST if one would then hold a key twice, -ELOOP for one list twice. */
int olf_swap(olf_thread *thread, olf_list *list, uint64_t key, olf_list *other, uint64_t its_key);

/* Puts an item after all others of a list, or before them if at_front is not zero, and takes the caller's count of it.
 * Returns -EBUSY if it stands in a doubly linked list; then the count stays the caller's. */
int olf_push(olf_thread *thread, olf_list *list, olf_link *link, int at_front);

/* Takes the last item of a list, or the first one if at_front is not zero, and gives the caller the list's count of it. Returns
 * -ENOENT if the list is empty. */
int olf_pop(olf_thread *thread, olf_list *list, int at_front, olf_link **taken);

/* Takes an item out of a list, wherever it stands there, and gives the caller the list's count of it in addition to
 * the one that the caller has. Returns -ENOENT if it does not stand there. */
int olf_take(olf_thread *thread, olf_list *list, olf_link *link);

/* Moves an item, of which the caller has a count, from a list to the back of another, or to its front if at_front is not zero.
 * Everybody sees it in exactly one place. Returns -ENOENT if it does not stand in the first list. */
int olf_pass(olf_thread *thread, olf_list *from, olf_list *to, olf_link *link, int at_front);

/* Makes steps by the handle that it gets, with the argument given to olf_atomically; returns 0 for all of them to happen, and
 * anything else for none. A step that has failed returns an error number, which it returns if it does not know better.
 * It is called again if something has changed under it, so it keeps its own results for itself until olf_atomically returns. */
typedef int (*olf_body)(olf_steps *, void *);

/* Makes the steps of a body happen at one moment, or none. What it looked at was so at that moment, too, whether it returns 0 or
 * an error. Counts go with the items, as in single calls. At most eight words change, which is four items or fewer. Returns what
 * the body returned, or -EDEADLK inside of another body of this thread. */
int olf_atomically(olf_thread *thread, olf_body body, void *argument);

/* As olf_insert, as a step. */
int olf_step_insert(olf_steps *steps, olf_list *list, olf_link *link);

/* As olf_remove, as a step. The link may be used in further steps; the count is the caller's once olf_atomically has returned 0. */
int olf_step_remove(olf_steps *steps, olf_list *list, uint64_t key, olf_link **taken);

/* Whether there is an item with a key: 1 or 0, or an error. */
int olf_step_contains(olf_steps *steps, olf_list *list, uint64_t key);

/* As olf_push, as a step. */
int olf_step_push(olf_steps *steps, olf_list *list, olf_link *link, int at_front);

/* As olf_pop, as a step. The link may be used in further steps; the count is the caller's once olf_atomically has returned 0. */
int olf_step_pop(olf_steps *steps, olf_list *list, int at_front, olf_link **taken);

#ifdef __cplusplus
}
#endif

#endif
