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

/// By chance.
#[test]
fn what_is_opened_while_all_is_closed_has_a_number_of_its_own() {
    let Some(said) = said_by(&format!("{GIVES_BACK}{CLOSED}"), "") else { return };
    assert_eq!(said, "0 1\nexit status: 0");
}
