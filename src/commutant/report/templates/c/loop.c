
/* ---- Copies of the test, each with processes and a directory of its own, and a thread for each call. ---- */

enum { MOST_COPIES = 512, FINISH = -1, PATIENCE_SECONDS = 10 };

struct counter {
    _Atomic unsigned long long made, failed;
} __attribute__((aligned(128))); /* lines that no other thread touches, nor the processor fetches along */

static struct {
    sem_t turn[MOST_COPIES * PROCESS_COUNT];
    sem_t done;
    struct result result; /* of the step of the set-up that was last made */
    int step;
    _Atomic long ready;
    _Atomic int stop __attribute__((aligned(128)));
    struct counter counters[MOST_COPIES][CALL_COUNT];
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

static char place[4096]; /* all that the program makes */

static void fail(const char *what)
{
    perror(what);
    nftw(place, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    exit(3);
}

/* Keeps the calling thread on a CPU of its own, as long as there are that many. */
static void pin(int task)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return;
    task %= CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || task-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static int copy; /* which one this process belongs to */

static void *repeat(void *argument)
{
    const struct repeated *call = argument;
    int number = (int)(call - repeated);
    struct counter *counter = &shared->counters[copy][number];
    unsigned long long made = 0;
    pin(copy * CALL_COUNT + number);
    call->prepare();
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
        failures += (call->make() >= 0) != call->succeeds;
        atomic_store_explicit(&counter->made, ++made, memory_order_relaxed);
    }
    atomic_store(&counter->failed, failures);
    return NULL;
}

static void run_process(int process)
{
    pthread_t threads[CALL_COUNT];
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    int thread_count = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    close_range(0, ~0u, 0); /* a test names descriptors from 0 */
    for (;;) {
        while (sem_wait(&shared->turn[copy * PROCESS_COUNT + process]) < 0)
            ;
        if (shared->step == FINISH)
            break;
        steps[shared->step].run(&shared->result);
        sem_post(&shared->done);
    }
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    for (int call = 0; call < CALL_COUNT; call++)
        if (repeated[call].process == process &&
            pthread_create(&threads[thread_count++], NULL, repeat, (void *)&repeated[call]) != 0)
            _exit(3);
    while (thread_count > 0)
        pthread_join(threads[--thread_count], NULL);
    _exit(0);
}

static void start_copy(void)
{
    snprintf(directory, sizeof directory, "%.4000s/%d", place, copy);
    if (mkdir(directory, 0777) < 0 || chdir(directory) < 0)
        fail(directory);
    for (int process = 0; process < PROCESS_COUNT; process++) {
        sem_init(&shared->turn[copy * PROCESS_COUNT + process], 1, 0);
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (process == 0)
            first_process = child ? child : getpid();
        if (child == 0)
            run_process(process);
    }
    for (int step = 0; step < STEP_COUNT; step++) {
        struct timespec deadline;
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += PATIENCE_SECONDS;
        shared->step = step;
        shared->result.error = shared->result.count = 0;
        sem_post(&shared->turn[copy * PROCESS_COUNT + steps[step].process]);
        while (sem_timedwait(&shared->done, &deadline) < 0)
            if (errno != EINTR)
                fail(steps[step].what);
        errno = shared->result.error;
        if (errno)
            fail(steps[step].what);
    }
}

static unsigned long long sum_of(int call, int copies)
{
    unsigned long long sum = 0;
    for (int one = 0; one < copies; one++)
        sum += atomic_load_explicit(&shared->counters[one][call].made, memory_order_relaxed);
    return sum;
}

int main(int argc, char **argv)
{
    unsigned long long before[CALL_COUNT], first[CALL_COUNT], failed = 0;
    char *end = "", *last = "";
    long tasks = argc > 1 ? strtol(argv[1], &end, 10) : CALL_COUNT;
    long seconds = argc > 2 ? strtol(argv[2], &last, 10) : 5;
    int copies = (int)(tasks / CALL_COUNT), status, lost = 0;
    if (argc > 3 || *end || *last || seconds < 1 || seconds > 3600 || copies < 1 || copies > MOST_COPIES ||
        tasks % CALL_COUNT) {
        fprintf(stderr, "usage: %s [TASKS [SECONDS]], with TASKS a multiple of %d, at most %d\n", argv[0], CALL_COUNT,
                MOST_COPIES * CALL_COUNT);
        return 2;
    }

    const char *parent = getenv("TMPDIR");
    snprintf(place, sizeof place, "%s/commutant-XXXXXX", parent && *parent == '/' ? parent : "/tmp");
    if (!mkdtemp(place))
        fail(place);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    sem_init(&shared->done, 1, 0);
    for (copy = 0; copy < copies; copy++)
        start_copy();
    shared->step = FINISH;
    for (int agent = 0; agent < copies * PROCESS_COUNT; agent++)
        sem_post(&shared->turn[agent]);
    while (atomic_load(&shared->ready) < tasks)
        usleep(1000);

    printf("%ld tasks, calls per second:\n", tasks);
    for (int call = 0; call < CALL_COUNT; call++)
        first[call] = before[call] = sum_of(call, copies);
    for (long second = 0; second < seconds; second++) {
        sleep(1);
        for (int call = 0; call < CALL_COUNT; call++) {
            unsigned long long now = sum_of(call, copies);
            printf("%s%s:%llu", call ? " " : "", repeated[call].what, now - before[call]);
            before[call] = now;
        }
        puts("");
        fflush(stdout);
    }
    atomic_store(&shared->stop, 1);
    while (wait(&status) > 0)
        lost += status != 0;
    nftw(place, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    printf("average");
    for (int call = 0; call < CALL_COUNT; call++) {
        printf(" %s:%llu", repeated[call].what, (before[call] - first[call]) / (unsigned long long)seconds);
        for (int one = 0; one < copies; one++)
            failed += atomic_load(&shared->counters[one][call].failed);
    }
    printf("\nreturned otherwise than in the test: %llu\n", failed);
    return failed || lost;
}
