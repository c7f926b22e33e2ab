/* Tells Commutant's lock recorder what a custom lock does; see the crate lock-annotation for when to tell what.
 *
 *     COMMUTANT_LOCK_ATTEMPT(&lock);                    a thread is about to take it
 *     while (take_ticket(&lock) != now_serving(&lock))
 *         COMMUTANT_LOCK_WAIT(&lock);                   it has to wait
 *     COMMUTANT_LOCK_ACQUIRE_EXCLUSIVE(&lock);          it got it; a reader: ..._SHARED
 *     ...
 *     COMMUTANT_LOCK_RELEASE(&lock);                    it is about to give it back
 *
 * Each event is one load of the lock's first byte. Without the recorder nothing else happens. On processors other than
 * x86-64 the macros do nothing. */
#ifndef COMMUTANT_LOCKS_H
#define COMMUTANT_LOCKS_H

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define COMMUTANT_LOCK_EVENT(number, lock)                                                                             \
    do {                                                                                                               \
        enum { commutant_code = 0x4c000000 | (number) << 16 | (int)(sizeof *(lock) & 0xffff) };                        \
        const char *commutant_base = (const char *)(lock) - commutant_code;                                            \
        __asm__ volatile("movb %c1(%0), %%al" : "+a"(commutant_base) : "i"(commutant_code) : "memory");                \
    } while (0)
#else
#define COMMUTANT_LOCK_EVENT(number, lock) ((void)(lock))
#endif

/* `lock` is a pointer to the lock itself: its size is that of what it points to. */
#define COMMUTANT_LOCK_ATTEMPT(lock) COMMUTANT_LOCK_EVENT(1, lock)
#define COMMUTANT_LOCK_WAIT(lock) COMMUTANT_LOCK_EVENT(2, lock)
#define COMMUTANT_LOCK_ACQUIRE_EXCLUSIVE(lock) COMMUTANT_LOCK_EVENT(3, lock)
#define COMMUTANT_LOCK_ACQUIRE_SHARED(lock) COMMUTANT_LOCK_EVENT(4, lock)
#define COMMUTANT_LOCK_RELEASE(lock) COMMUTANT_LOCK_EVENT(5, lock)
#define COMMUTANT_LOCK_GIVE_UP(lock) COMMUTANT_LOCK_EVENT(6, lock)
#define COMMUTANT_LOCK_DESTROY(lock) COMMUTANT_LOCK_EVENT(7, lock)
#define COMMUTANT_LOCK_RELEASE_FOR_ANY(lock) COMMUTANT_LOCK_EVENT(8, lock)
#define COMMUTANT_LOCK_NO_LOCK(lock) COMMUTANT_LOCK_EVENT(9, lock)

/* With `commutant locks --span annotations` only what happens between these two is recorded, of all threads. A program may
 * have many such spans; they count together. */
#define COMMUTANT_LOCK_SPAN_BEGIN() COMMUTANT_LOCK_SPAN(10)
#define COMMUTANT_LOCK_SPAN_END() COMMUTANT_LOCK_SPAN(11)
#define COMMUTANT_LOCK_SPAN(number)                                                                                    \
    do {                                                                                                               \
        const char commutant_here = 0;                                                                                 \
        COMMUTANT_LOCK_EVENT(number, &commutant_here);                                                                 \
    } while (0)

#endif
