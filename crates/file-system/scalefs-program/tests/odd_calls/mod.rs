//! Calls that few programs make, by a program of C in a tree and on tmpfs: what each returns, or its error, is the same.

mod children;
mod races;

use std::path::Path;
use std::process::Command;

use crate::support::{Scratch, compiled, run_in_tree};

/// What each part looks at: its name, by which the program is called, and its code. `say` prints a call and what it returned.
const PARTS: [(&str, &str); 15] = [
    ("numbers at which nothing is open", CLOSED),
    ("what waits with such a number", WAITED_FOR),
    ("numbers that the kernel gives", GIVEN),
    ("numbers at the limit", AT_THE_LIMIT),
    ("limits that change", LIMITS),
    ("whom signals tell", TOLD),
    ("times of select", TIMES),
    ("paths by numbers", BY_NUMBERS),
    ("what scripts are called by", CALLED_BY),
    ("what a program is told", IS_TOLD),
    ("flags and paths that are empty", FLAGS),
    ("descriptors that only stand for a file", HANDLES),
    ("memory that is there in part", PARTLY_THERE),
    ("pipes with names", PIPES),
    ("execution", EXECUTED),
];

/// The placeholder of a number that was closed is a file for the kernel alone.
const CLOSED: &str = r#"
    int closed = open("a", O_RDWR);
    close(closed);
    say(read(closed, buffer, 1)); say(write(closed, buffer, 1)); say(pread(closed, buffer, 1, 0));
    say(pwrite(closed, buffer, 1, 0)); say(writev(closed, &io, 1)); say(lseek(closed, 0, SEEK_SET)); say(fstat(closed, &status));
    say(fstatat(closed, "", &status, AT_EMPTY_PATH)); say(fstatat(closed, "x", &status, 0)); say(fsync(closed));
    say(openat(closed, "x", O_RDONLY)); say(mkdirat(closed, "x", 0755)); say(unlinkat(closed, "x", 0));
    say(renameat(closed, "x", closed, "y")); say(ftruncate(closed, 0)); say(fchmod(closed, 0600)); say(fchown(closed, -1, -1));
    say(futimens(closed, 0)); say(flock(closed, LOCK_EX | LOCK_NB)); say(ioctl(closed, FIONREAD, buffer));
    say(fstatfs(closed, (void *)buffer)); say(fchdir(closed)); say(syscall(SYS_getdents64, closed, buffer, 100));
    say(mmap(0, 4096, PROT_READ, MAP_SHARED, closed, 0) == MAP_FAILED ? -1 : 0); say(sendfile(closed, 0, 0, 1));
    say(sendfile(1, closed, 0, 1)); say(splice(closed, 0, 1, 0, 1, 0)); say(copy_file_range(closed, 0, closed, 0, 1, 0));
    say(fallocate(closed, 0, 0, 1)); say(posix_fadvise(closed, 0, 0, 0)); say(syncfs(closed)); say(readahead(closed, 0, 1));
    say(fgetxattr(closed, "user.x", buffer, 1)); say(fsetxattr(closed, "user.x", "v", 1, 0));
    say(inotify_add_watch(closed, "a", IN_MODIFY)); say(listen(closed, 1)); say(accept(closed, 0, 0));
    say(connect(closed, (void *)buffer, 10)); say(bind(closed, (void *)buffer, 10)); say(send(closed, buffer, 1, 0));
    say(recv(closed, buffer, 1, 0)); say(getsockname(closed, (void *)buffer, &length));
    say(getsockopt(closed, 1, 1, buffer, &length)); say(shutdown(closed, 0)); say(dup(closed)); say(dup2(closed, 50));
    say(dup3(closed, 50, 0)); say(fcntl(closed, F_GETFL)); say(fcntl(closed, F_DUPFD, 0)); say(close(closed));
    /* Of these arguments Linux says EINVAL whatever is open. */
    say(dup3(closed, closed, 0)); say(dup3(closed, 50, 0x40000000)); say(pread(closed, buffer, 1, -1));
    say(pwritev(closed, &io, 1, -1)); say(preadv2(closed, &io, 1, -2, 0)); say(ftruncate(closed, -1));
    say(epoll_wait(closed, (void *)buffer, 1, 0)); say(syscall(SYS_execveat, closed, "", 0, 0, AT_EMPTY_PATH));
    sprintf(buffer, "/proc/self/fd/%d", closed);
    say(access(buffer, F_OK)); say(readlink(buffer, buffer + 200, 100)); say(open(buffer, O_RDONLY)); say(stat(buffer, &status));
    /* The last numbers are those that are hidden, in a tree. */
    for (int number = 1015; number < 1024; number++) { say(write(number, "x", 1)); say(fstat(number, &status)); }
    DIR *list = opendir("/proc/self/fd");
    int found = 0;
    while (readdir(list)) found++;
    printf("%d numbers\n", found);
"#;

const WAITED_FOR: &str = r#"
    int first = open("a", O_RDWR), closed = open("a", O_RDWR), many = epoll_create1(0);
    close(closed);
    struct pollfd asked[] = {{closed, POLLIN, 0}, {first, POLLIN, 0}, {-1, POLLIN, 7}};
    struct timespec while_ = {1, 0};
    struct timeval as_long = {1, 0};
    struct epoll_event event = {0};
    fd_set set;
    say(poll(asked, 3, 1000)); printf("%x %x %x\n", asked[0].revents, asked[1].revents, asked[2].revents);
    say(poll(asked, 1, -1)); say(ppoll(asked, 2, &while_, 0)); printf("%x %x\n", asked[0].revents, asked[1].revents);
    say(poll(asked + 1, 1, 0)); say(poll(0, 1, 0)); say(poll(0, 0, 0));
    FD_ZERO(&set); FD_SET(first, &set);
    say(select(closed + 1, &set, 0, 0, &as_long)); say(pselect(closed + 1, 0, &set, 0, &while_, 0));
    FD_SET(closed, &set);
    say(select(closed + 1, &set, 0, 0, &as_long)); say(pselect(closed + 1, 0, &set, 0, &while_, 0));
    FD_ZERO(&set); FD_SET(closed, &set);
    say(select(closed, &set, 0, 0, &(struct timeval){0})); say(select(-1, &set, 0, 0, &(struct timeval){0}));
    say(epoll_ctl(many, EPOLL_CTL_ADD, closed, &event)); say(epoll_ctl(many, EPOLL_CTL_ADD, first, &event));
    say(epoll_ctl(closed, EPOLL_CTL_ADD, first, &event));
    /* The kernel looks no further than its table of numbers reaches. */
    dup2(first, 1000); close(1000);
    for (int number = 1015; number < 1024; number++) {
        FD_ZERO(&set); FD_SET(number, &set);
        say(select(1024, &set, 0, 0, &(struct timeval){0}));
    }
    say(syscall(SYS_select, 1024, -1L, 0, 0, &(struct timeval){0}));
"#;

/// The lowest number that is free is given, whoever had it before.
const GIVEN: &str = r#"
    int first = open("a", O_RDONLY), second = open("a", O_RDONLY);
    close(first);
    int copy = fcntl(1, F_DUPFD, 0);
    printf("%d %d\n", first == copy, fcntl(copy, F_GETFD));
    close(copy); close(second);
    copy = fcntl(1, F_DUPFD_CLOEXEC, first);
    printf("%d %d\n", first == copy, fcntl(copy, F_GETFD));
    int ends[2], third = open("a", O_RDONLY);
    close(copy);
    close(open("a", O_RDONLY));
    pipe(ends);
    printf("%d %d\n", ends[0] == first, ends[1] - third);
    close(ends[0]); close(ends[1]); close(third);
    copy = fcntl(1, F_DUPFD, first);
    int next = fcntl(1, F_DUPFD, second);
    printf("%d %d\n", next - second, fcntl(1, F_DUPFD, second + 5) - second);
    say(fcntl(1, F_DUPFD, -1)); say(fcntl(1, F_DUPFD, 1 << 20));
    /* Closing any number of a file gives up the locks that the process has of it. */
    struct flock lock = {.l_type = F_WRLCK};
    int locked = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    say(fcntl(locked, F_SETLK, &lock));
    for (int round = 0; round < 2; round++) {
        int lower = open("a", O_RDONLY);
        int third = open("a", O_RDONLY);
        close(third); close(lower);
        printf("%d\n", (round ? dup(locked) : fcntl(locked, F_DUPFD, 0)) - lower);
    }
    fflush(stdout);
    if (fork() == 0) { fcntl(locked, F_GETLK, &lock); printf("%d\n", lock.l_type); fflush(stdout); _exit(0); }
    wait(0);
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    struct mmsghdr messages[3] = {0};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    for (int index = 0; index < 3; index++) { messages[index].msg_hdr.msg_iov = &io; messages[index].msg_hdr.msg_iovlen = 1; }
    messages[1].msg_hdr.msg_control = control;
    messages[1].msg_hdr.msg_controllen = sizeof control;
    struct cmsghdr *part = CMSG_FIRSTHDR(&messages[1].msg_hdr);
    part->cmsg_level = SOL_SOCKET; part->cmsg_type = SCM_RIGHTS; part->cmsg_len = CMSG_LEN(sizeof(int));
    int closed = open("a", O_RDONLY);
    close(closed);
    *(int *)CMSG_DATA(part) = closed;
    say(sendmmsg(pair[0], messages, 3, 0)); say(recv(pair[1], buffer, 9, MSG_DONTWAIT)); say(recv(pair[1], buffer, 9, MSG_DONTWAIT));
    say(sendmmsg(pair[0], messages + 1, 2, 0)); say(recv(pair[1], buffer, 9, MSG_DONTWAIT));
"#;

/// What a program has closed is free for all calls that give a number: of three, and of all that the limit allows.
const AT_THE_LIMIT: &str = r#"
    int numbers[64], count, closed, pair[2], listening = socket(AF_UNIX, SOCK_STREAM, 0), more[2], terminal = posix_openpt(O_RDWR);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t name_bytes = sizeof name;
    sigset_t none;
    sigemptyset(&none);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 1024});
    bind(listening, (void *)&name, sizeof name.sun_family); listen(listening, 9);
    getsockname(listening, (void *)&name, &name_bytes);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, more);
    int way = dup(1), to = socket(AF_UNIX, SOCK_STREAM, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(to, (void *)&name, name_bytes); connect(other, (void *)&name, name_bytes);
    int watching = signalfd(-1, &none, 0);
    unlockpt(terminal);
    for (closed = 3; closed <= 64; closed += 61) {
        gives(syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); gives(accept4(listening, 0, 0, SOCK_CLOEXEC));
        gives(epoll_create1(EPOLL_CLOEXEC)); gives(eventfd(0, 0)); gives(eventfd(0, EFD_CLOEXEC)); gives(syscall(SYS_eventfd, 0));
        gives(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)); gives(signalfd(-1, &none, SFD_CLOEXEC)); gives(inotify_init1(IN_CLOEXEC));
        gives(memfd_create("m", MFD_CLOEXEC)); gives(memfd_create("m", 0)); gives(syscall(SYS_userfaultfd, O_CLOEXEC | 1));
        gives(syscall(SYS_fanotify_init, 1, 0)); gives(syscall(SYS_pidfd_open, getpid(), 0)); gives(syscall(SYS_fsopen, "tmpfs", 1));
        gives(syscall(SYS_open_tree, AT_FDCWD, "/dev", O_CLOEXEC)); gives(syscall(433, AT_FDCWD, "/dev/shm", 1));
        gives(syscall(444, (unsigned long[]){1}, 8, 0)); gives(syscall(SYS_mq_open, "limit", O_CREAT | O_RDWR, 0600, 0L));
        syscall(SYS_mq_unlink, "limit"); gives(dup(way)); gives(fcntl(way, F_DUPFD_CLOEXEC, 0)); gives(fcntl(way, F_DUPFD, 20));
        gives(open("/dev/null", O_RDONLY)); gives(open("/dev/null", O_RDONLY | O_CLOEXEC)); gives(open("/proc/self/fd", O_RDONLY));
        gives(open("/proc/self/fd", O_RDONLY | O_CLOEXEC)); gives(open("a", O_RDONLY)); gives(creat("d/made", 0644));
        say(once_closed(signalfd(watching, &none, 0)) - watching);
        gives_two(pipe2(pair, O_CLOEXEC)); gives_two(pipe(pair)); gives_two(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        gives_two(receive(more, way, pair));
        gives_two(({ pair[1] = -1; struct clone_args how = {.flags = CLONE_PIDFD, .pidfd = (unsigned long)pair, .exit_signal = SIGCHLD};
            long child = syscall(SYS_clone3, &how, sizeof how); if (child == 0) _exit(0); child > 0 ? waitpid(child, 0, 0) * 0 : child; }));
    }
    closed = 64;
    gives(ioctl(terminal, 0x5441, O_RDWR | O_NOCTTY));
    /* Who is executed is read by a number, too. */
    for (count = 0; (numbers[count] = open("a", O_RDONLY | O_CLOEXEC)) >= 0; count++);
    while (count > 0) close(numbers[--count]);
    fflush(stdout);
    execl("/bin/echo", "echo", "executed", (char *)0);
    printf("%d\n", errno);
"#;

/// A limit that falls below what is open, and rises.
const LIMITS: &str = r#"
    int files[100], index, last, number;
    struct rlimit old = {0};
    for (index = 0; index < 100; index++) files[index] = open("a", O_RDWR);
    for (index = 50; index < 98; index++) close(files[index]);
    say(setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 1024}));
    for (last = -1; (number = open("a", O_RDONLY)) >= 0; last = number);
    printf("%d %d\n", last, errno);
    say(dup(files[0])); say(dup2(files[0], 70)); say(dup2(1, 70)); say(dup2(files[0], 80)); say(fcntl(files[0], F_DUPFD, 70));
    say(fcntl(1, F_DUPFD, 70)); say(fcntl(files[0], F_DUPFD, 63)); say(fcntl(files[0], F_DUPFD, 1 << 20));
    say(read(files[99], buffer, 1)); say(close(files[99])); say(open("a", O_RDONLY)); say(open("/dev/null", O_RDONLY));
    say(dup2(files[98], files[99])); say(dup2(files[98], files[98]) - files[98]);
    say(close(last)); say(open("/dev/null", O_RDONLY)); say(open("a", O_RDONLY)); say(close(last)); say(open("a", O_RDONLY));
    say(prlimit(0, RLIMIT_NOFILE, 0, &old)); printf("%ld\n", (long)old.rlim_cur);
    say(prlimit(getpid(), RLIMIT_NOFILE, &(struct rlimit){66, 1024}, 0)); say(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
    say(setrlimit(RLIMIT_NOFILE, (void *)1));
    for (last = -1; (number = open("a", O_RDONLY)) >= 0; last = number);
    printf("%d %d\n", last, errno);
    /* By another process. */
    fflush(stdout);
    if (fork() == 0) _exit(prlimit(getppid(), RLIMIT_NOFILE, &(struct rlimit){70, 1024}, 0) != 0);
    wait(&number);
    printf("%d\n", number);
    say(fcntl(files[0], F_DUPFD, 67)); say(dup2(files[0], 68));
    for (last = -1; (number = open("a", O_RDONLY)) >= 0; last = number);
    printf("%d %d\n", last, errno);
    run(_exit(open("a", O_RDONLY) + 99));
"#;

/// Owners of files, and room that files take.
const TOLD: &str = r#"
    int file = open("a", O_RDWR), copy = dup(file), handle = open("a", O_PATH), directory = open("d", O_RDONLY), status_of;
    struct f_owner_ex owner = {9, 9};
    long bytes = -1;
    say(fcntl(file, F_GETOWN_EX, &owner)); printf("%d %d\n", owner.type, owner.pid);
    say(fcntl(file, F_GETOWN)); say(fcntl(file, F_GETSIG)); say(fcntl(file, F_SETOWN, getpid()));
    printf("%d\n", fcntl(file, F_GETOWN) == getpid());
    say(fcntl(copy, F_GETOWN_EX, &owner)); printf("%d %d\n", owner.type, owner.pid == getpid());
    owner.type = F_OWNER_PGRP; owner.pid = getpgrp();
    say(fcntl(file, F_SETOWN_EX, &owner)); printf("%d\n", syscall(SYS_fcntl, file, F_GETOWN) == -getpgrp() || errno == getpgrp());
    owner.type = F_OWNER_TID; owner.pid = getpid();
    say(fcntl(file, F_SETOWN_EX, &owner)); owner.type = 9; say(fcntl(file, F_SETOWN_EX, &owner));
    owner.type = F_OWNER_PID; owner.pid = 1 << 29; say(fcntl(file, F_SETOWN_EX, &owner)); say(fcntl(file, F_SETOWN_EX, (void *)1));
    say(fcntl(file, F_GETOWN_EX, (void *)1)); say(fcntl(file, F_SETOWN, 1 << 29)); say(fcntl(file, F_SETOWN, 1 << 31));
    say(fcntl(file, F_GETOWN_EX, &owner)); printf("%d %d\n", owner.type, owner.pid == getpid());
    say(fcntl(file, F_SETSIG, 65)); say(fcntl(file, F_SETSIG, SIGUSR1)); say(fcntl(copy, F_GETSIG)); say(fcntl(handle, F_GETOWN));
    say(fcntl(handle, F_SETOWN_EX, &owner)); say(fcntl(directory, F_SETOWN, 0)); say(fcntl(directory, F_GETOWN));
    /* Its child has the same description, and has ended when it is asked for. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) { fcntl(file, F_SETOWN, getpid()); _exit(0); }
    waitpid(child, &status_of, 0);
    say(fcntl(file, F_GETOWN)); say(fcntl(file, F_GETSIG)); say(fcntl(file, F_SETOWN, 0)); say(fcntl(file, F_GETOWN_EX, &owner));
    printf("%d %d\n", owner.type, owner.pid);
    int other = open("a", O_RDWR);
    say(fcntl(other, F_GETSIG));
    say(ioctl(file, FIOQSIZE, &bytes)); printf("%ld\n", bytes); say(ioctl(directory, FIOQSIZE, &bytes)); printf("%ld\n", bytes);
    say(ioctl(handle, FIOQSIZE, &bytes)); say(ioctl(file, FIOQSIZE, 1)); say(ftruncate(file, 100000)); say(pwrite(file, "x", 1, 50000));
    say(ioctl(file, FIOQSIZE, &bytes)); printf("%ld\n", bytes);
"#;

/// What is left of the time is written back, whatever came.
const TIMES: &str = r#"
    int pair[2], first = open("a", O_RDONLY), closed = open("a", O_RDONLY), sent;
    fd_set set, only;
    struct timeval time;
    struct timespec exact;
    struct { const sigset_t *mask; size_t bytes; } masked = {0, 8};
    struct sigaction action = {.sa_handler = handler};
    sigset_t none, all;
    pipe(pair); close(closed); sigemptyset(&none); sigfillset(&all);
    sigaction(SIGALRM, &action, 0);
    FD_ZERO(&only); FD_SET(pair[0], &only);
#define left(call) ({ set = only; say(call); printf("%d\n", time.tv_sec == 0 && time.tv_usec > 0 && time.tv_usec < 900000); })
#define left_exactly(call) ({ set = only; say(call); printf("%d\n", exact.tv_sec == 0 && exact.tv_nsec > 0 && exact.tv_nsec < 900000000); })
    time = (struct timeval){0, 20000};
    set = only; say(select(pair[0] + 1, &set, 0, 0, &time)); printf("%ld %ld\n", (long)time.tv_sec, (long)time.tv_usec);
    exact = (struct timespec){0, 20000000};
    set = only; say(syscall(SYS_pselect6, pair[0] + 1, &set, 0L, 0L, &exact, 0L)); printf("%ld %ld\n", (long)exact.tv_sec, exact.tv_nsec);
    for (sent = 0; sent < 3; sent++) {
        if (fork() == 0) {
            usleep(200000);
            if (sent == 0) write(pair[1], "x", 1); else kill(getppid(), SIGALRM);
            _exit(0);
        }
        time = (struct timeval){1, 0}; exact = (struct timespec){1, 0};
        masked.mask = &none;
        if (sent < 2) left(select(pair[0] + 1, &set, 0, 0, &time));
        else left_exactly(syscall(SYS_pselect6, pair[0] + 1, &set, 0L, 0L, &exact, &masked));
        if (sent == 0) read(pair[0], buffer, 1);
        wait(0);
    }
    FD_SET(closed, &only);
    time = (struct timeval){1, 0}; set = only; say(select(closed + 1, &set, 0, 0, &time)); printf("%d\n", time.tv_sec == 0);
    exact = (struct timespec){1, 0}; set = only; say(syscall(SYS_pselect6, closed + 1, &set, 0L, 0L, &exact, 0L)); printf("%d\n", exact.tv_sec == 0);
    time = (struct timeval){-1, 0}; set = only; say(syscall(SYS_select, closed + 1, &set, 0L, 0L, &time));
    time = (struct timeval){0, 1500000}; set = only; say(syscall(SYS_select, closed + 1, &set, 0L, 0L, &time)); printf("%ld\n", (long)time.tv_sec);
    time = (struct timeval){0, -1}; set = only; say(syscall(SYS_select, closed + 1, &set, 0L, 0L, &time));
    exact = (struct timespec){0, 1000000000}; set = only; say(syscall(SYS_pselect6, closed + 1, &set, 0L, 0L, &exact, 0L));
    set = only; say(syscall(SYS_select, closed + 1, &set, 0L, 0L, 1L));
    masked.bytes = 3; exact = (struct timespec){0, 0}; set = only; say(syscall(SYS_pselect6, closed + 1, &set, 0L, 0L, &exact, &masked));
    say(syscall(SYS_pselect6, closed + 1, &set, 0L, 0L, &exact, 1L));
    /* All signals are blocked in the handler, too, and calls of code that is made at run time are made. */
    FD_CLR(closed, &only);
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x27\0\0\0\x0f\x05\xc3", 8);
    made = (int (*)(void))code;
    sigdelset(&all, SIGALRM);
    masked.mask = &all; masked.bytes = 8; exact = (struct timespec){1, 0}; set = only;
    if (fork() == 0) { usleep(200000); kill(getppid(), SIGALRM); _exit(0); }
    say(syscall(SYS_pselect6, pair[0] + 1, &set, 0L, 0L, &exact, &masked)); printf("%d\n", called);
    wait(0);
"#;

/// Files that a number leads to, and what lies below directories that one leads to.
const BY_NUMBERS: &str = r#"
    int directory = open("d", O_RDONLY), file = open("a", O_RDONLY), closed = open("a", O_RDONLY);
    char *names[] = {"/proc/self/fd/70000", "/dev/fd/70000", "/dev/fd/65600", "/proc/self/fd/99999999", "/proc/self/fd/%d", "/dev/fd/0%d",
        "/dev/fd/%d/", "/dev/fd/%d/inner", "/proc/self/fd/%d/inner", "/proc/self/fd/%d//inner", "/proc/self/fd/%d/.hidden", "/dev/fd/%d/../a",
        "/dev/fd/%d/.", "/dev/fd/%d/..", "/dev/fd/%d/../d/./inner", "/dev/fd/%d/none", "/dev/fd/%d/inner/x", "/dev/fd/%dx", "/dev/fd/-1"};
    put("d/inner", "inner"); put("d/.hidden", "hidden"); close(closed);
    for (int index = 0; index < sizeof names / sizeof *names; index++)
        for (int which = 0; which < 3; which++) {
            int of = (int[]){directory, file, closed}[which];
            sprintf(buffer, names[index], of);
            printf("%s %d: ", names[index], which); memset(&status, 0, sizeof status);
            say(stat(buffer, &status)); printf("%o %ld\n", status.st_mode, S_ISREG(status.st_mode) ? (long)status.st_size : 0);
            say(access(buffer, R_OK)); say(open(buffer, O_RDONLY) < 0 ? -1 : 0);
        }
    sprintf(buffer, "/dev/fd/%d/made", directory);
    say(creat(buffer, 0644) < 0 ? -1 : 0); say(access("d/made", F_OK)); say(rename(buffer, "d/moved")); say(unlink("d/moved"));
"#;

/// What stands for the first argument of who runs a script.
const CALLED_BY: &str = r##"
    char *arguments[] = {"other", "one", 0}, *variables[] = {0};
    put("d/script", "#!/bin/sh\necho \"$0\" \"$@\"\n"); put("d/outer", "#!./d/script with one\n"); symlink("script", "d/link");
    int directory = open("d", O_RDONLY), script = open("d/script", O_RDONLY), gone = open("d", O_RDONLY | O_CLOEXEC);
    int handle = open("d", O_PATH);
    run(execve("d/script", arguments, variables)); run(execve("./d/../d/script", arguments, variables)); run(execve("d/link", arguments, variables));
    run(execve("d/outer", arguments, variables)); run(syscall(SYS_execveat, AT_FDCWD, "d/script", arguments, variables, 0));
    run(syscall(SYS_execveat, directory, "script", arguments, variables, 0)); run(syscall(SYS_execveat, handle, "script", arguments, variables, 0));
    run(syscall(SYS_execveat, directory, "./link", arguments, variables, 0)); run(syscall(SYS_execveat, gone, "script", arguments, variables, 0));
    run(syscall(SYS_execveat, directory, "../d/script", arguments, variables, 0)); run(fexecve(script, arguments, variables));
    chdir("d"); run(execve("script", arguments, variables)); run(execvp("./script", arguments)); setenv("PATH", ".:/bin", 1);
    run(execvp("script", arguments)); run(execve("../d/script", arguments, variables));
"##;

/// Variables, and what the kernel tells of the program: for set-id bits, too, that change nothing.
const IS_TOLD: &str = r##"
    char *arguments[] = {"called", "tells", 0}, *variables[] = {"LD_LIBRARY_PATH=/nowhere:$ORIGIN", "LD_BIND_NOW=1", "A=b", "A=c", 0}, *none[] = {0};
    copy("/proc/self/exe", "d/program");
    run(execve("d/program", arguments, variables)); run(execve("./d/../d/program", arguments, none));
    run(execve("/proc/self/exe", arguments, variables)); chmod("d/program", 06755); run(execve("d/program", arguments, variables));
"##;

const FLAGS: &str = r#"
    int wrong = 0x40000000, file = open("a", O_RDWR), directory = open("d", O_RDONLY), here = AT_FDCWD;
    struct statx more;
    say(fstatat(here, "a", &status, wrong)); say(statx(here, "a", wrong, STATX_ALL, &more));
    say(statx(here, "a", AT_STATX_SYNC_TYPE, STATX_ALL, &more)); say(statx(here, "a", 0, 0x80000000U, &more));
    say(linkat(here, "a", here, "b", wrong)); say(unlinkat(here, "a", wrong)); say(fchownat(here, "a", -1, -1, wrong));
    say(utimensat(here, "a", 0, wrong)); say(syscall(SYS_faccessat2, here, "a", R_OK, wrong)); say(access("a", F_OK));
    say(fstatat(here, "a", &status, AT_NO_AUTOMOUNT)); say(statx(here, "a", AT_STATX_FORCE_SYNC, STATX_ALL, &more));
    say(syscall(SYS_faccessat2, here, "a", R_OK, AT_EACCESS)); say(fchownat(here, "", -1, -1, AT_EMPTY_PATH));
    say(utimensat(here, "", 0, AT_EMPTY_PATH)); say(utimensat(here, "", 0, 0)); say(syscall(SYS_utimensat, file, 0, 0, 0));
    say(syscall(SYS_faccessat2, here, "", F_OK, AT_EMPTY_PATH)); say(syscall(SYS_faccessat2, file, "", W_OK, AT_EMPTY_PATH));
    say(syscall(SYS_faccessat2, file, "", 8, AT_EMPTY_PATH)); say(fstatat(here, "", &status, AT_EMPTY_PATH));
    say(preadv2(file, &io, 1, 0, 0x4000)); say(preadv2(file, &io, 1, 0, RWF_HIPRI)); say(sync_file_range(file, -1, 9, 0));
    say(sync_file_range(file, 0, 9, 99)); say(posix_fadvise(file, 0, 0, 99)); say(posix_fadvise(file, 0, 0, 3));
    say(readahead(directory, 0, 9)); say(readahead(file, 0, 9)); say(mmap(0, 4096, PROT_READ, 0, file, 0) == MAP_FAILED ? -1 : 0);
    int number = 0, blocks = 1;
    say(ioctl(file, FIONREAD, &number)); printf("%d\n", number); say(ioctl(directory, FIONREAD, &number));
    say(ioctl(file, FIONBIO, &blocks)); printf("%o\n", fcntl(file, F_GETFL)); say(ioctl(file, TCGETS, buffer));
    say(fcntl(file, F_GETOWN)); say(fcntl(file, F_GETPIPE_SZ)); say(fcntl(file, 9999));
    say(copy_file_range(file, 0, file, 0, 3, 0)); say(copy_file_range(directory, 0, file, 0, 3, 0));
    int appended = open("c", O_CREAT | O_RDWR | O_APPEND, 0644);
    say(copy_file_range(file, 0, appended, 0, 3, 0)); say(copy_file_range(file, &(off_t){0}, file, &(off_t){100}, 3, 0));
    say(copy_file_range(file, &(off_t){0}, file, &(off_t){200}, 1000, 0)); fstat(file, &status);
    printf("%ld\n", (long)status.st_size); say(copy_file_range(file, &(off_t){1000}, file, &(off_t){1001}, 9, 0));
"#;

const HANDLES: &str = r#"
    int handle = open("a", O_PATH), link = open("l", O_PATH | O_NOFOLLOW), number = 0;
    say(lseek(handle, 0, SEEK_SET)); say(fsync(handle)); say(ioctl(handle, FIONREAD, &number)); say(fchmod(handle, 0600));
    say(fchown(handle, -1, -1)); say(futimens(handle, 0)); say(flock(handle, LOCK_EX)); say(fcntl(handle, F_SETFL, 0));
    say(fchownat(handle, "", -1, -1, AT_EMPTY_PATH)); say(utimensat(handle, "", 0, AT_EMPTY_PATH));
    say(fchownat(link, "", -1, -1, AT_EMPTY_PATH)); say(syscall(SYS_faccessat2, handle, "", R_OK, AT_EMPTY_PATH));
    say(fstat(handle, &status)); say(readlinkat(link, "", buffer, 9)); say(posix_fadvise(handle, 0, 0, 0));
"#;

const PARTLY_THERE: &str = r#"
    char *place = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(place + 4096, 4096);
    int file = open("many", O_CREAT | O_RDWR, 0644);
    memset(buffer, 'q', 6000);
    say(write(file, buffer, 6000)); say(pread(file, place + 96, 6000, 0)); say(pread(file, place + 4090, 10, 0));
    say(pread(file, place + 4096, 10, 0)); say(pwrite(file, place + 4090, 10, 0)); say(pwrite(file, place, 8192, 0));
    struct iovec three[] = {{buffer, 3}, {place + 4090, 10}, {buffer, 3}};
    say(preadv(file, three, 3, 0)); say(pwritev(file, three, 3, 10000)); fstat(file, &status); printf("%ld\n", (long)status.st_size);
    three[1].iov_len = -1;
    say(preadv(file, three, 3, 0)); say(preadv(file, three, 0, 0)); say(preadv(file, three, -1, 0));
"#;

const PIPES: &str = r#"
    struct timespec times[] = {{5, 6}, {7, 8}};
    mkfifo("p", 0640);
    int pipe = open("p", O_RDWR | O_NONBLOCK);
    say(fchmod(pipe, 0604)); stat("p", &status); printf("%o\n", status.st_mode); fstat(pipe, &status); printf("%o\n", status.st_mode);
    say(futimens(pipe, times)); stat("p", &status); printf("%ld %ld\n", (long)status.st_atime, (long)status.st_mtime);
    say(utimensat(pipe, "", times + 1, AT_EMPTY_PATH) < 0 ? 0 : 0); say(fchown(pipe, -1, getegid()));
    say(fchownat(pipe, "", geteuid(), -1, AT_EMPTY_PATH)); say(fchmod(1000, 0600)); say(ftruncate(pipe, 0));
    say(write(pipe, "words", 5)); say(read(pipe, buffer, 9)); say(unlink("p")); say(fchmod(pipe, 0600)); fstat(pipe, &status);
    printf("%o %ld\n", status.st_mode, (long)status.st_nlink);
"#;

/// By descriptors and links; of what is open for writing, or has been mapped so.
const EXECUTED: &str = r##"
    char *arguments[] = {"program", "nothing", 0}, *variables[] = {0};
    copy("/proc/self/exe", "d/program");
    put("d/script", "#!/bin/sh\nexit 9\n"); put("d/outer", "#!./d/inner one\n"); put("d/inner", "#!/bin/sh\necho $1 ${2##*/} $3; exit 8\n");
    put("d/none", "#!/none/none\n"); put("d/empty", "#!\n"); symlink("program", "d/link");
    int directory = open("d", O_RDONLY), program = open("d/program", O_RDONLY), kept = open("d/program", O_RDONLY | O_CLOEXEC);
    int handle = open("d/program", O_PATH | O_CLOEXEC), script = open("d/script", O_RDONLY), gone = open("d/script", O_RDONLY | O_CLOEXEC);
    run(execve("d/program", arguments, variables)); run(execve("d/link", arguments, variables));
    run(syscall(SYS_execveat, directory, "program", arguments, variables, 0));
    run(syscall(SYS_execveat, directory, "script", arguments, variables, 0));
    run(syscall(SYS_execveat, directory, "absent", arguments, variables, 0));
    run(syscall(SYS_execveat, directory, "link", arguments, variables, AT_SYMLINK_NOFOLLOW));
    run(syscall(SYS_execveat, directory, "program", arguments, variables, 0x40000000));
    run(fexecve(program, arguments, variables)); run(fexecve(kept, arguments, variables)); run(fexecve(handle, arguments, variables));
    char *fails[] = {"program", "fails", 0};
    run(fexecve(program, fails, variables));
    run(fexecve(script, arguments, variables)); run(fexecve(gone, arguments, variables));
    run(execve("d/outer", arguments, variables)); run(execve("d/none", arguments, variables)); run(execve("d/empty", arguments, variables));
    run(execve("d", arguments, variables)); run(execve("a", arguments, variables)); run(execve("", arguments, variables));
    int written = open("d/program", O_WRONLY);
    run(execve("d/program", arguments, variables)); run(execve("d/link", arguments, variables)); run(fexecve(program, arguments, variables));
    close(written);
    run(execve("d/program", arguments, variables));
    written = open("d/script", O_RDWR);
    run(execve("d/script", arguments, variables));
    close(written);
    written = open("d/program", O_RDWR);
    char *mapped = mmap(0, 4096, PROT_READ, MAP_SHARED, written, 0);
    close(written);
    run(execve("d/program", arguments, variables));
    munmap(mapped, 4096);
    run(execve("d/program", arguments, variables));
    /* By a child that inherits it, and by one that has another process's word for it. */
    pid_t other = fork();
    if (other == 0) { open("d/program", O_WRONLY); raise(SIGSTOP); _exit(0); }
    waitpid(other, 0, WUNTRACED);
    run(execve("d/program", arguments, variables));
    kill(other, SIGCONT);
    waitpid(other, 0, 0);
    run(execve("d/program", arguments, variables));
    /* By one that is killed, and may not be buried yet. */
    for (int round = 0; round < 10; round++) {
        if ((other = fork()) == 0) {
            mmap(0, 4096, PROT_READ, MAP_SHARED, open("d/program", O_RDWR), 0);
            raise(SIGKILL);
        }
        waitpid(other, 0, 0);
        run(execve("d/program", arguments, variables));
    }
    chmod("d/script", 0644);
    run(execve("d/script", arguments, variables));
    sprintf(buffer, "/proc/self/fd/%d", program);
    run(execve(buffer, arguments, variables));
"##;

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>
#define say(call) ({ errno = 0; long made = call; printf("%s: %ld, %d\n", #call, made, made < 0 ? errno : 0); })
#define run(call) ({ \
    int ended; \
    fflush(stdout); \
    pid_t child = fork(); \
    if (child == 0) { call; printf("%d\n", errno); fflush(stdout); _exit(1); } \
    waitpid(child, &ended, 0); \
    printf("%s: %x\n", #call, ended); \
})
/* A handler, and a call of code that is made at run time. */
static volatile int called;
static int (*made)(void);
static void handler(int signal) { called += made ? made() == getpid() : 1; }
/* What a call gives once so many files were opened and closed: its numbers, and whether exec closes them. */
#define once_closed(call) ({ \
    for (count = 0; count < closed && (numbers[count] = open("a", O_RDONLY)) >= 0; count++); \
    while (count > 0) close(numbers[--count]); \
    errno = 0; \
    call; \
})
#define gives(call) ({ \
    long made = once_closed(call); \
    printf("%d closed, %s: %ld, %d, %d\n", closed, #call, made, made < 0 ? errno : 0, made < 0 ? 0 : fcntl(made, F_GETFD)); \
    if (made >= 0) close(made); \
})
#define gives_two(call) ({ \
    long made = once_closed(call); \
    printf("%d closed, %s: %ld, %d", closed, #call, made, made < 0 ? errno : 0); \
    for (int index = 0; index < 2 && made >= 0; index++) { \
        printf(", %d %d", pair[index], pair[index] < 0 ? 0 : fcntl(pair[index], F_GETFD)); \
        if (pair[index] >= 0) close(pair[index]); \
    } \
    printf("\n"); \
})
/* Sends two numbers in a message, and receives it. */
static long receive(int *between, int number, int *pair) {
    char control[CMSG_SPACE(2 * sizeof(int))] = {0}, byte = 'x';
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET; part->cmsg_type = SCM_RIGHTS; part->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(part), (int[]){number, number}, 2 * sizeof(int));
    if (sendmsg(between[0], &message, 0) != 1) return -1;
    memset(control, 0xff, sizeof control);
    if (recvmsg(between[1], &message, MSG_CMSG_CLOEXEC) != 1) return -1;
    memcpy(pair, CMSG_DATA(part), 2 * sizeof(int));
    return message.msg_flags & MSG_CTRUNC;
}
static void put(const char *name, const char *text) {
    int file = open(name, O_CREAT | O_WRONLY, 0755);
    write(file, text, strlen(text));
    close(file);
}
static void copy(const char *from, const char *to) {
    char bytes[65536];
    int source = open(from, O_RDONLY), target = open(to, O_CREAT | O_WRONLY, 0755);
    for (int done; (done = read(source, bytes, sizeof bytes)) > 0;) write(target, bytes, done);
    close(source);
    close(target);
}
int main(int count, char **words) {
    char buffer[8192] = "";
    struct stat status;
    struct iovec io = {buffer, 1};
    socklen_t length = sizeof(int);
    if (strcmp(words[1], "nothing") == 0) {
        /* Which program it is, if it has a name, and whether it can be opened. */
        int done = readlink("/proc/self/exe", buffer, sizeof buffer - 1), file = open("/proc/self/exe", O_RDONLY);
        struct stat other;
        printf("%d %d\n", done > 0, fstat(file, &other) == 0 && other.st_size > 0);
        return 7;
    }
    if (strcmp(words[1], "tells") == 0) {
        unsigned long asked[] = {AT_SECURE, AT_UID, AT_EUID, AT_GID, AT_EGID, AT_PAGESZ, AT_FLAGS, AT_CLKTCK, AT_PHENT, AT_PHNUM};
        for (int index = 0; index < sizeof asked / sizeof *asked; index++) printf("%lu ", getauxval(asked[index]));
        printf("%d %d %d\n", getauxval(AT_BASE) != 0, getauxval(AT_RANDOM) != 0, getauxval(AT_SYSINFO_EHDR) != 0);
        for (char **variable = environ; *variable; variable++) puts(*variable);
        printf("%d %s %s\n", count, words[0], words[1]);
        return 0;
    }
    if (strcmp(words[1], "fails") == 0) {
        /* What it runs is what it was, also where the next program has no name either. */
        static char long_one[200000];
        memset(long_one, 'x', sizeof long_one - 1);
        char *too_long[] = {"program", long_one, 0}, *none[] = {0};
        copy("/proc/self/exe", "d/longer");
        int longer = open("d/longer", O_WRONLY | O_APPEND);
        write(longer, "more", 4);
        close(longer);
        struct stat before, after;
        fstat(open("/proc/self/exe", O_RDONLY), &before);
        say(fexecve(open("d/longer", O_RDONLY), too_long, none));
        fstat(open("/proc/self/exe", O_RDONLY), &after);
        printf("%d\n", before.st_size > 0 && before.st_size == after.st_size);
        return 0;
    }
    put("a", "some words");
    chmod("a", 0644);
    mkdir("d", 0755);
    symlink("a", "l");
    PARTS
    return 0;
}
"#;

/// What the program says in a directory.
fn said(mut command: Command, part: &str) -> String {
    let output = command.arg(part).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}{}", text(&output.stdout), text(&output.stderr), output.status)
}

#[test]
fn odd_calls_give_what_they_give_on_tmpfs() {
    let parts = PARTS.map(|(name, code)| format!("if (strcmp(words[1], \"{name}\") == 0) {{ {code} }}\n"));
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, &PROGRAM.replace("PARTS", &parts.concat()), &[]) else { return };
    let mut wrong = Vec::new();
    for (part, _) in PARTS {
        let (hidden, tmpfs) = (Scratch::new(), Scratch::below(Path::new("/dev/shm")));
        let mut there = Command::new(&program);
        there.current_dir(&tmpfs.0);
        let here = run_in_tree(&hidden.0, &["--size", "16M"], program.to_str().expect("plain letters"));
        let (ours, theirs) = (said(here, part), said(there, part));
        let differs = |(ours, theirs): (&str, &str)| (ours != theirs).then(|| format!("{part}: {ours} / {theirs}"));
        wrong.extend(ours.lines().zip(theirs.lines()).filter_map(differs));
        if ours.lines().count() != theirs.lines().count() {
            wrong.push(format!("{part}: {ours} / {theirs}"));
        }
    }
    assert!(wrong.is_empty(), "left is the tree: {wrong:#?}");
}
