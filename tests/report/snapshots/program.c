/*
 * link-rename-8242302b3345
 * link(old=a, new=b) || rename(src=a, dst=c)
 * Class: by hand
 *
 * Build: cc -pthread -o test test.c        Run: ./test [ORDER]
 * Order 0: link, then rename
 * Order 1: rename, then link
 * Exit code: 0 the outcome is acceptable, 1 it is not, 2 wrong use, 3 the program itself failed.
 * The files are made in a new directory in $TMPDIR or /tmp.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- What a call returned: an error, or items, of which CHOSEN ones (inode numbers) are the kernel's own choice. A
 * structure or a list is its items between a BEGIN and an END. ---- */

enum kind { NUMBER, FLAG, CHOSEN, TIME, NOTHING, SIGNAL, TEXT, BEGIN, BEGIN_LIST, END };

struct item {
    enum kind kind;
    const char *name; /* of a field; NULL for a plain result */
    const char *sort; /* of a CHOSEN value */
    long long value;
    char text[66];
};

enum { MOST_ITEMS = 1024 };

struct result {
    int error;
    int count;
    struct item items[MOST_ITEMS];
};

/* Files and pipes are numbered by file systems of their own. */
#define INODE(status) ((long long)(status)->st_ino ^ (long long)(status)->st_dev << 40)
#define NANOSECONDS(time) ((time).tv_sec * 1000000000LL + (time).tv_nsec)

static char directory[4096]; /* where the program works */
static pid_t first_process;  /* the process that holds what the set-up makes */

__attribute__((unused)) static int current_step(void);

__attribute__((unused)) static void add_item(struct result *result, enum kind kind, const char *name, const char *sort,
                                             long long value)
{
    if (result->count == MOST_ITEMS)
        _exit(3);
    result->items[result->count++] = (struct item){.kind = kind, .name = name, .sort = sort, .value = value};
}

__attribute__((unused)) static void give_status(struct result *result, long long status)
{
    if (status < 0)
        result->error = errno;
    else
        add_item(result, NUMBER, NULL, NULL, status);
}

__attribute__((unused)) static void give_nothing(struct result *result, long long status)
{
    if (status < 0)
        result->error = errno;
    else
        add_item(result, NOTHING, NULL, NULL, 0);
}

/* ---- The calls. ---- */

static void do_open(struct result *result, const char *name, int flags)
{
    int descriptor = open(name, O_RDWR | flags, 0666);
    give_status(result, descriptor < 0 ? -1 : 0); /* which descriptor it is does not matter here */
    if (descriptor >= 0)
        close(descriptor);
}

static void do_link(struct result *result, const char *old, const char *new)
{
    give_status(result, link(old, new));
}

static void do_rename(struct result *result, const char *src, const char *dst)
{
    give_status(result, rename(src, dst));
}

static void do_stat(struct result *result, const char *name)
{
    struct stat status;
    if (stat(name, &status) < 0) {
        result->error = errno;
        return;
    }
    add_item(result, CHOSEN, "ino", "Inum", (long long)INODE(&status));
    add_item(result, NUMBER, "nlink", NULL, (long long)status.st_nlink);
}

/* ---- This test: set-up, calls, observation. ---- */

static void setup_0(struct result *result) { do_open(result, "a", O_CREAT | O_EXCL); }
static void call_0(struct result *result) { do_link(result, "a", "b"); }
static void call_1(struct result *result) { do_rename(result, "a", "c"); }
static void observe_0(struct result *result) { do_stat(result, "a"); }
static void observe_1(struct result *result) { do_stat(result, "b"); }
static void observe_2(struct result *result) { do_stat(result, "c"); }

struct step {
    const char *what;
    void (*run)(struct result *result);
    int process;
    int core; /* -1 for set-up and observation, which run anywhere */
};

static const struct step steps[] = {
    {"set-up 0 open", setup_0, 0, -1},
    {"call 0 link", call_0, 0, 0},
    {"call 1 rename", call_1, 1, 1},
    {"observe 0 stat", observe_0, 0, -1},
    {"observe 1 stat", observe_1, 0, -1},
    {"observe 2 stat", observe_2, 0, -1},
};

enum { FIRST_CALL = 1, CALL_COUNT = 2, STEP_COUNT = 6, PROCESS_COUNT = 2, ORDER_COUNT = 2 };

/* For each order: the calls as they are run, and every acceptable outcome as text. */

static const int orders[ORDER_COUNT][CALL_COUNT] = {
    {0, 1},
    {1, 0},
};

struct outcome {
    const char *text;
    const int *times; /* all that are in the text */
};

static const struct outcome outcomes_0[] = {
    {
        "set-up 0 open: 0\n"
        "call 0 link: 0\n"
        "call 1 rename: 0\n"
        "observe 0 stat: ENOENT\n"
        "observe 1 stat: ino=Inum#0 nlink=2\n"
        "observe 2 stat: ino=Inum#0 nlink=2\n"
        , (const int[]){0}
    },
    {NULL, NULL},
};

static const struct outcome outcomes_1[] = {
    {
        "set-up 0 open: 0\n"
        "call 0 link: ENOENT\n"
        "call 1 rename: 0\n"
        "observe 0 stat: ENOENT\n"
        "observe 1 stat: ENOENT\n"
        "observe 2 stat: ino=Inum#0 nlink=1\n"
        , (const int[]){0}
    },
    {NULL, NULL},
};

static const struct outcome *const outcomes[ORDER_COUNT] = {
    outcomes_0,
    outcomes_1,
};

/* ---- Results as text, in which the values that the kernel chose are numbered by first appearance. ---- */

enum { MOST_TEXT = 1 << 20, MOST_TIMES = 4096 };

static const char *error_name(int error)
{
    static const struct {
        int error;
        const char *name;
    } names[] = {
        {EPERM, "EPERM"},   {ENOENT, "ENOENT"}, {EINTR, "EINTR"},     {EIO, "EIO"},         {EBADF, "EBADF"},
        {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},   {EFAULT, "EFAULT"},   {EBUSY, "EBUSY"},
        {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"},   {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"},   {EINVAL, "EINVAL"},
        {EMFILE, "EMFILE"}, {EFBIG, "EFBIG"},   {ENOSPC, "ENOSPC"},   {ESPIPE, "ESPIPE"},   {EROFS, "EROFS"},
        {EMLINK, "EMLINK"}, {EPIPE, "EPIPE"},   {ELOOP, "ELOOP"},     {ENOTEMPTY, "ENOTEMPTY"}, {ENODEV, "ENODEV"},
        {ENXIO, "ENXIO"},   {ENFILE, "ENFILE"}, {E2BIG, "E2BIG"},     {ENOSYS, "ENOSYS"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    return strerror(error);
}

static int chosen_number(const char *sort, long long value)
{
    static struct {
        const char *sort;
        long long value;
        int number;
    } seen[STEP_COUNT * MOST_ITEMS];
    static int seen_count;
    int next = 0;
    for (int i = 0; i < seen_count; i++) {
        if (strcmp(seen[i].sort, sort) != 0)
            continue;
        if (seen[i].value == value)
            return seen[i].number;
        next++;
    }
    seen[seen_count].sort = sort;
    seen[seen_count].value = value;
    seen[seen_count++].number = next;
    return next;
}

static long long times[MOST_TIMES]; /* all points in time that results hold, in the order of the text */
static int time_count;

static void append_value(FILE *text, const struct item *item)
{
    switch (item->kind) {
    case CHOSEN:
        fprintf(text, "%s#%d", item->sort, chosen_number(item->sort, item->value));
        break;
    case TIME:
        times[time_count++ % MOST_TIMES] = item->value;
        fputs("time", text);
        break;
    case FLAG:
        fputs(item->value ? "true" : "false", text);
        break;
    case NOTHING:
        fputs("-", text);
        break;
    case SIGNAL:
        fputs(item->value == SIGBUS ? "SIGBUS" : "SIGSEGV", text);
        break;
    case TEXT:
        fputs(item->text, text);
        break;
    default:
        fprintf(text, "%lld", item->value);
    }
}

static void append_result(FILE *text, const struct result *result)
{
    const char *separators[8] = {" "};
    int depth = 0, first = 1;
    if (result->error)
        fputs(error_name(result->error), text);
    for (int i = 0; i < result->count; i++) {
        const struct item *item = &result->items[i];
        if (item->kind == END) {
            fputs(*separators[depth--] == ',' ? "]" : "", text);
            first = 0;
            continue;
        }
        fputs(first ? "" : separators[depth], text);
        if (item->name)
            fprintf(text, "%s=", item->name);
        first = item->kind == BEGIN || item->kind == BEGIN_LIST;
        if (first)
            separators[++depth] = item->kind == BEGIN_LIST ? ", " : " ";
        if (item->kind == BEGIN_LIST)
            fputs("[", text);
        else if (item->kind != BEGIN)
            append_value(text, item);
    }
    fputs("\n", text);
}

/* Whether the points in time stand in the order of these numbers; nothing is asked where two numbers are equal. */
static int in_order(const int *expected)
{
    for (int i = 0; i < time_count; i++)
        for (int j = 0; j < time_count; j++)
            if (expected[i] < expected[j] && times[i] > times[j])
                return 0;
    return 1;
}

/* ---- Processes and threads that take their turns one after the other. ---- */

enum { AGENT_COUNT = PROCESS_COUNT + CALL_COUNT, FINISH = -1, PATIENCE_SECONDS = 10 };

static struct {
    sem_t done;
    sem_t turn[AGENT_COUNT]; /* the main thread of each process, then the thread of each call */
    int step;
    struct result results[STEP_COUNT];
} *shared;

static int current_step(void)
{
    return shared->step;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

static void remove_directory(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void fail(const char *what)
{
    perror(what);
    remove_directory();
    exit(3);
}

/* Keeps the calling thread on the core-th CPU that this program may use, if there are that many. */
static void pin(int core)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0 || CPU_COUNT(&allowed) <= core)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || core-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static void serve(int agent)
{
    for (;;) {
        while (sem_wait(&shared->turn[agent]) < 0)
            ;
        if (shared->step == FINISH)
            return;
        steps[shared->step].run(&shared->results[shared->step]);
        sem_post(&shared->done);
    }
}

static void *call_thread(void *argument)
{
    const struct step *call = argument;
    pin(call->core);
    serve(PROCESS_COUNT + (int)(call - &steps[FIRST_CALL]));
    return NULL;
}

static void run_process(int process)
{
    pthread_t threads[CALL_COUNT];
    int thread_count = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    close_range(0, ~0u, 0); /* a test names descriptors from 0 */
    for (int call = 0; call < CALL_COUNT; call++)
        if (steps[FIRST_CALL + call].process == process &&
            pthread_create(&threads[thread_count++], NULL, call_thread, (void *)&steps[FIRST_CALL + call]) != 0)
            _exit(3);
    serve(process);
    while (thread_count > 0)
        pthread_join(threads[--thread_count], NULL);
    _exit(0);
}

static void take_turn(int agent, int step)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_SECONDS;
    shared->step = step;
    sem_post(&shared->turn[agent]);
    if (step == FINISH)
        return;
    while (sem_timedwait(&shared->done, &deadline) < 0)
        if (errno != EINTR)
            fail(steps[step].what);
}

static void run_steps(const int *order)
{
    for (int step = 0; step < FIRST_CALL; step++)
        take_turn(steps[step].process, step);
    for (int turn = 0; turn < CALL_COUNT; turn++)
        take_turn(PROCESS_COUNT + order[turn], FIRST_CALL + order[turn]);
    for (int step = FIRST_CALL + CALL_COUNT; step < STEP_COUNT; step++)
        take_turn(steps[step].process, step);
    for (int agent = AGENT_COUNT - 1; agent >= 0; agent--)
        take_turn(agent, FINISH);
}

int main(int argc, char **argv)
{
    static char text[MOST_TEXT];
    char *end = "";
    long order = argc > 1 ? strtol(argv[1], &end, 10) : 0;
    if (argc > 2 || *end || order < 0 || order >= ORDER_COUNT) {
        fprintf(stderr, "usage: %s [ORDER], with ORDER from 0 to %d\n", argv[0], ORDER_COUNT - 1);
        return 2;
    }

    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/commutant-XXXXXX", parent && *parent == '/' ? parent : "/tmp");
    if (!mkdtemp(directory) || chdir(directory) < 0)
        fail(directory);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    sem_init(&shared->done, 1, 0);
    for (int agent = 0; agent < AGENT_COUNT; agent++)
        sem_init(&shared->turn[agent], 1, 0);
    for (int process = 0; process < PROCESS_COUNT; process++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (process == 0)
            first_process = child ? child : getpid();
        if (child == 0)
            run_process(process);
    }

    run_steps(orders[order]);
    while (wait(NULL) > 0)
        ;
    remove_directory();

    FILE *stream = fmemopen(text, sizeof text, "w");
    if (!stream)
        fail("fmemopen");
    for (int step = 0; step < STEP_COUNT; step++) {
        fprintf(stream, "%s: ", steps[step].what);
        append_result(stream, &shared->results[step]);
    }
    fclose(stream);
    fputs(text, stdout);
    for (const struct outcome *outcome = outcomes[order]; outcome->text; outcome++) {
        if (strcmp(outcome->text, text) == 0 && in_order(outcome->times)) {
            puts("acceptable");
            return 0;
        }
    }
    puts("not acceptable; expected:");
    for (const struct outcome *outcome = outcomes[order]; outcome->text; outcome++)
        printf("%s%s", outcome == outcomes[order] ? "" : "or (perhaps with times in another order)\n", outcome->text);
    return 1;
}
