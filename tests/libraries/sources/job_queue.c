/* A work queue: a waiting job is leased, then acknowledged or given back. Which one comes first is the queue's choice, and a
   macro's here: LEASE gives the place of the next job among `count` ones that wait, BACK where one goes that is given back. */
#include <commutant.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifndef LEASE
#define LEASE 0
#endif
#ifndef BACK
#define BACK count
#endif
#ifndef FAULT
#define FAULT 0 /* What a job that is given back has more in its payload. */
#endif
#define MOST 64

struct job {
    long number, payload;
};
struct queue {
    pthread_mutex_t lock;
    long next, waiting, leased;
    struct job wait[MOST], lease[MOST];
};

static void *make(void) {
    struct queue *queue = calloc(1, sizeof *queue);
    pthread_mutex_init(&queue->lock, 0);
    return queue;
}

static void drop(void *queue) { free(queue); }

static struct job take(struct job *jobs, long *count, long place) {
    struct job job = jobs[place];
    memmove(jobs + place, jobs + place + 1, (size_t)(*count - place - 1) * sizeof *jobs);
    --*count;
    return job;
}

static void insert(struct job *jobs, long *count, long place, struct job job) {
    memmove(jobs + place + 1, jobs + place, (size_t)(*count - place) * sizeof *jobs);
    jobs[place] = job;
    ++*count;
}

static long find(const struct job *jobs, long count, long number) {
    for (long place = 0; place < count; place++)
        if (jobs[place].number == number)
            return place;
    return -1;
}

static void submit(void *object, const commutant_value *a, commutant_result *r) {
    struct queue *queue = object;
    pthread_mutex_lock(&queue->lock);
    struct job job = {++queue->next * 7, a[0].number};
    insert(queue->wait, &queue->waiting, queue->waiting, job);
    commutant_handle(r, job.number, "Job");
    pthread_mutex_unlock(&queue->lock);
}

static void lease(void *object, const commutant_value *a, commutant_result *r) {
    (void)a;
    struct queue *queue = object;
    pthread_mutex_lock(&queue->lock);
    long count = queue->waiting;
    if (count == 0) {
        commutant_error(r, EAGAIN);
    } else {
        struct job job = take(queue->wait, &queue->waiting, LEASE);
        insert(queue->lease, &queue->leased, queue->leased, job);
        commutant_handle(r, job.number, "Job");
    }
    pthread_mutex_unlock(&queue->lock);
}

static void payload(void *object, const commutant_value *a, commutant_result *r) {
    struct queue *queue = object;
    pthread_mutex_lock(&queue->lock);
    long place = find(queue->lease, queue->leased, a[0].number);
    if (place < 0)
        commutant_error(r, ENOENT);
    else
        commutant_member(r, queue->lease[place].payload);
    pthread_mutex_unlock(&queue->lock);
}

static void end(struct queue *queue, long number, commutant_result *r, int is_given_back) {
    pthread_mutex_lock(&queue->lock);
    long place = find(queue->lease, queue->leased, number);
    if (place < 0) {
        commutant_error(r, ENOENT);
    } else {
        struct job job = take(queue->lease, &queue->leased, place);
        long count = queue->waiting;
        (void)count;
        job.payload += FAULT;
        if (is_given_back)
            insert(queue->wait, &queue->waiting, BACK, job);
        commutant_number(r, 0);
    }
    pthread_mutex_unlock(&queue->lock);
}

static void ack(void *object, const commutant_value *a, commutant_result *r) { end(object, a[0].number, r, 0); }

static void nack(void *object, const commutant_value *a, commutant_result *r) { end(object, a[0].number, r, 1); }

static const commutant_call calls[] = {
    {"submit(payload)", submit}, {"lease()", lease}, {"payload(job)", payload},
    {"ack(job)", ack},           {"nack(job)", nack}, {0, 0},
};
const commutant_adapter_type commutant_adapter = COMMUTANT_ADAPTER(calls, make, drop);
