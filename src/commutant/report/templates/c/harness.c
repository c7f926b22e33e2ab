
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
