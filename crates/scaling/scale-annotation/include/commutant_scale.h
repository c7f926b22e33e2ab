/* Marks the operations of a program for `commutant scale -- PROGRAM`, which counts the lines that go from core to core:
 *
 *     void *worker(void *shard)
 *     {
 *         for (int i = 0; i < 3000; i++) {
 *             COMMUTANT_SCALE_BEGIN();
 *             insert(map, shard, i);            what is measured
 *             COMMUTANT_SCALE_END();
 *         }
 *         return NULL;
 *     }
 *
 * Each thread that marks operations is a core. Under `commutant scale` threads take turns, so that one runs at a time. A
 * program that runs by itself compares a pointer at each mark, and does nothing else. What lies between two operations, such
 * as the choice of the next one, is not measured.
 *
 * The program has to be linked to the C library as usual, not statically. */
#ifndef COMMUTANT_SCALE_H
#define COMMUTANT_SCALE_H

#include <dlfcn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* On a line of its own, which is read only: the marks themselves share nothing. */
struct commutant_scale_marks {
    void (*begin)(void);
    void (*end)(void);
} __attribute__((aligned(64)));

__attribute__((weak)) struct commutant_scale_marks commutant_scale_marks;

__attribute__((constructor, unused)) static void commutant_scale_find(void)
{
    if (!commutant_scale_marks.begin) {
        *(void **)&commutant_scale_marks.begin = dlsym((void *)0, "commutant_scale_turns_begin");
        *(void **)&commutant_scale_marks.end = dlsym((void *)0, "commutant_scale_turns_end");
    }
}

#define COMMUTANT_SCALE_BEGIN()                                                                                        \
    do {                                                                                                               \
        if (commutant_scale_marks.begin)                                                                               \
            commutant_scale_marks.begin();                                                                             \
    } while (0)

#define COMMUTANT_SCALE_END()                                                                                          \
    do {                                                                                                               \
        if (commutant_scale_marks.end)                                                                                 \
            commutant_scale_marks.end();                                                                               \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
