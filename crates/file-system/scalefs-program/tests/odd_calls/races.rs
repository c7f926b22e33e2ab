//! Threads that change numbers while the kernel gets placeholders back from another one.

use super::children::said_by;

/// What the programs have in common: a thread that lets the kernel have all placeholders, by asking for a message with room for
/// descriptors, after it has slept.
const GIVES_BACK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int sockets[2];
static void *give_back(void *nothing) {
    char byte, room[64];
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    usleep(100000);
    recvmsg(sockets[0], &message, MSG_DONTWAIT);
    return 0;
}
static int is_of_tree(int number) { struct stat status; return fstat(number, &status) == 0 && S_ISREG(status.st_mode); }
"#;

/// dup2 of a file of the tree to a number that has a placeholder.
#[cfg(feature = "planted-faults")]
const DUPLICATED: &str = r#"
int main(void) {
    pthread_t thread;
    int ends[2], file = open("f", O_CREAT | O_RDWR, 0644), number = open("f", O_RDWR);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    close(number);
    pthread_create(&thread, 0, give_back, 0);
    dup2(file, number);
    pthread_join(thread, 0);
    pipe(ends);
    printf("%d %d %d\n", is_of_tree(number), is_of_tree(ends[0]), is_of_tree(ends[1]));
}
"#;

/// dup2 to a number at which another thread is about to open a file, and to one that it has just closed.
#[cfg(feature = "planted-faults")]
const ON_ITS_WAY: &str = r#"
static void *open_other(void *nothing) { return (void *)(long)open("g", O_CREAT | O_RDWR, 0644); }
static void *close_number(void *number) { return (void *)(long)close((long)number); }
int main(void) {
    pthread_t thread;
    void *answer;
    int file = open("f", O_CREAT | O_RDWR, 0644), given;
    long number = file + 1;
    pthread_create(&thread, 0, open_other, 0);
    usleep(100000);
    given = dup2(file, number);
    pthread_join(thread, &answer);
    printf("%d %d %d ", given == number, (long)answer == number, is_of_tree(number));
    pthread_create(&thread, 0, close_number, (void *)number);
    usleep(100000);
    given = dup2(file, number);
    pthread_join(thread, &answer);
    printf("%d %d %d\n", given == number, (long)answer == 0, is_of_tree(number));
}
"#;

/// A child in its parent's memory.
#[cfg(feature = "planted-faults")]
const CHILD: &str = r#"
int main(void) {
    pthread_t thread;
    int number = open("f", O_CREAT | O_RDWR, 0644), status;
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    close(number);
    pthread_create(&thread, 0, give_back, 0);
    pid_t child = vfork();
    if (child == 0) {
        int ends[2], number = open("f", O_RDWR);
        pipe(ends);
        _exit(4 * is_of_tree(number) + 2 * is_of_tree(ends[0]) + is_of_tree(ends[1]));
    }
    waitpid(child, &status, 0);
    pthread_join(thread, 0);
    printf("%d\n", WEXITSTATUS(status));
}
"#;

/// The kernel refuses a number, and gets all back before the thread that was refused one hears of it.
#[cfg(feature = "planted-faults")]
const REFUSED: &str = r#"
int main(void) {
    pthread_t thread;
    int files[64], count = 0;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64});
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    while (count < 64 && (files[count] = open("f", O_CREAT | O_RDWR, 0644)) >= 0) count++;
    for (int index = 0; index < count; index++) close(files[index]);
    pthread_create(&thread, 0, give_back, 0);
    int given = eventfd(0, 0);
    pthread_join(thread, 0);
    printf("%d\n", given == files[0]);
}
"#;

/// A thread closes all numbers again and again: what is open at a number is what was opened there, or nothing.
const CLOSED: &str = r#"
static volatile int over;
static void *close_all(void *nothing) {
    while (!over) { close_range(4, ~0U, 0); usleep(1); }
    return 0;
}
int main(void) {
    pthread_t thread;
    int wrong = 0, kept = open("f", O_CREAT | O_RDWR, 0644);
    time_t end = time(0) + 3;
    pthread_create(&thread, 0, close_all, 0);
    while (time(0) < end) {
        int file = open("f", O_RDWR), other = open("/dev/null", O_RDWR);
        wrong += is_of_tree(other);
        close(file);
        close(other);
    }
    over = 1;
    pthread_join(thread, 0);
    printf("%d %d\n", wrong > 0, is_of_tree(kept));
}
"#;

#[cfg(feature = "planted-faults")]
#[test]
fn a_number_that_dup2_takes_is_not_given_back() {
    let program = format!("{GIVES_BACK}{DUPLICATED}");
    let Some(said) = said_by(&program, "shim: dup2 is slow") else { return };
    assert_eq!(said, "1 0 0\nexit status: 0");
    let fault = "shim: a number is given back while dup2 takes it";
    assert_ne!(said_by(&program, fault).as_deref(), Some("1 0 0\nexit status: 0"), "missed");
}

#[cfg(feature = "planted-faults")]
#[test]
fn dup2_waits_for_who_opens_or_closes_its_number() {
    let program = format!("{GIVES_BACK}{ON_ITS_WAY}");
    let Some(said) = said_by(&program, "shim: files are opened and closed slowly") else { return };
    assert_eq!(said, "1 1 1 1 1 1\nexit status: 0");
    let fault = "shim: dup2 does not wait for who opens or closes";
    assert_ne!(said_by(&program, fault).as_deref(), Some("1 1 1 1 1 1\nexit status: 0"), "missed");
}

#[cfg(feature = "planted-faults")]
#[test]
fn a_child_in_its_parents_memory_has_the_placeholders_that_the_kernel_has() {
    let program = format!("{GIVES_BACK}{CHILD}");
    let Some(said) = said_by(&program, "shim: a child in its parent's memory is made slowly") else { return };
    assert_eq!(said, "4\nexit status: 0");
    let fault = "shim: numbers change while a child in its parent's memory gets them";
    assert_ne!(said_by(&program, fault).as_deref(), Some("4\nexit status: 0"), "missed");
}

#[cfg(feature = "planted-faults")]
#[test]
fn who_was_refused_a_number_sees_what_others_gave_back() {
    let program = format!("{GIVES_BACK}{REFUSED}");
    let Some(said) = said_by(&program, "shim: a refusal is seen late") else { return };
    assert_eq!(said, "1\nexit status: 0");
    assert_ne!(
        said_by(&program, "shim: what others give back is not seen").as_deref(),
        Some("1\nexit status: 0"),
        "missed"
    );
}

/// By chance.
#[test]
fn what_is_opened_while_all_is_closed_has_a_number_of_its_own() {
    let Some(said) = said_by(&format!("{GIVES_BACK}{CLOSED}"), "") else { return };
    assert_eq!(said, "0 1\nexit status: 0");
}
