/* Two threads take one lock or the other, as many times as standard input says: "a 100\n" or "b 100\n", until its end. A
 * first argument has each "b" stand between annotations. A lock `held` is taken before the first span and given back after. */
#include <commutant_locks.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
long data_a, data_b;
static long times;

static void *use_a(void *nothing) {
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&lock_a);
        data_a++;
        pthread_mutex_unlock(&lock_a);
    }
    return nothing;
}

static void *use_b(void *nothing) {
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&lock_b);
        data_b++;
        pthread_mutex_unlock(&lock_b);
    }
    return nothing;
}

int main(int count, char **arguments) {
    char which;
    (void)arguments;
    pthread_mutex_lock(&held);
    while (scanf(" %c %ld", &which, &times) == 2) {
        pthread_t threads[2];
        if (which == 'b' && count > 1)
            COMMUTANT_LOCK_SPAN_BEGIN();
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, which == 'a' ? use_a : use_b, NULL);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        if (which == 'b' && count > 1)
            COMMUTANT_LOCK_SPAN_END();
        printf("done %c\n", which);
        fflush(stdout);
    }
    pthread_mutex_unlock(&held);
    return 0;
}
