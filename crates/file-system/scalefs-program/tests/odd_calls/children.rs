//! Children of a process of several threads, which open and close files meanwhile.

use super::said;
use crate::support::{Scratch, compiled, run_in_tree};

/// Threads open and close files while another one makes children, which have the numbers of one moment.
const FORKS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile int over;
static void *open_and_close(void *name) {
    while (!over) {
        int first = open(name, O_CREAT | O_RDWR, 0644), second = open(name, O_RDWR);
        close(first);
        close(second);
    }
    return 0;
}
int main(void) {
    char *names[] = {"a", "b", "c"}, *arguments[] = {"true", 0};
    pthread_t threads[3];
    int wrong = 0, status;
    for (int index = 0; index < 3; index++) pthread_create(&threads[index], 0, open_and_close, names[index]);
    for (int round = 0; round < 60; round++) {
        pid_t child;
        if (round % 2) {
            wrong += posix_spawnp(&child, "true", 0, 0, arguments, environ) != 0;
        } else if ((child = fork()) == 0) {
            int wrong = 0;
            for (int file = 0; file < 20; file++) wrong += open("d", O_CREAT | O_RDWR, 0644) < 0;
            _exit(wrong);
        }
        waitpid(child, &status, 0);
        wrong += status != 0;
    }
    over = 1;
    for (int index = 0; index < 3; index++) pthread_join(threads[index], 0);
    printf("%d\n", wrong);
}
"#;

/// A thread closes files and opens another one while a child is being made, if that takes long enough.
#[cfg(feature = "planted-faults")]
const IN_THE_MIDDLE: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static sem_t begins, done;
static int first, second;
static void *change(void *nothing) {
    for (;;) {
        sem_wait(&begins);
        usleep(100000);
        close(first);
        close(second);
        first = open("c", O_CREAT | O_RDWR, 0644);
        sem_post(&done);
    }
}
int main(void) {
    pthread_t thread;
    char *arguments[] = {"sh", "-c", "exec 3> d && exec 4> d && echo x >&4", 0};
    int status, wrong = 0;
    sem_init(&begins, 0, 0); sem_init(&done, 0, 0);
    pthread_create(&thread, 0, change, 0);
    for (int round = 0; round < 2; round++) {
        pid_t child;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        for (int number = 40; number < 44; number++) posix_spawn_file_actions_addopen(&actions, number, "d", O_CREAT | O_RDWR, 0644);
        first = open("a", O_CREAT | O_RDWR, 0644);
        second = open("b", O_CREAT | O_RDWR, 0644);
        sem_post(&begins);
        if (round) {
            wrong += posix_spawnp(&child, "sh", &actions, 0, arguments, environ) != 0;
        } else if ((child = fork()) == 0) {
            int wrong = 0, last = 2;
            for (int file = 0; file < 20; file++) {
                int number = open("d", O_CREAT | O_RDWR, 0644);
                wrong += number <= last || write(number, "x", 1) != 1;
                last = number;
            }
            _exit(wrong);
        }
        waitpid(child, &status, 0);
        wrong += status != 0;
        sem_wait(&done);
        close(first);
    }
    printf("%d\n", wrong);
}
"#;

/// With a fault.
pub(super) fn said_by(source: &str, fault: &str) -> Option<String> {
    let scratch = Scratch::new();
    let program = compiled(&scratch.0, source, &["-pthread"])?;
    let hidden = Scratch::new();
    let mut command = run_in_tree(&hidden.0, &["--size", "16M"], program.to_str().expect("plain letters"));
    command.env("COMMUTANT_PLANTED_FAULT", fault);
    Some(said(command, ""))
}

/// By chance: many threads, many children.
#[test]
fn children_have_the_numbers_that_their_process_has() {
    let Some(said) = said_by(FORKS, "") else { return };
    assert_eq!(said, "0\nexit status: 0");
}

/// Each child is made while another thread is known to change numbers.
#[cfg(feature = "planted-faults")]
#[test]
fn a_child_that_is_made_slowly_has_the_numbers_that_its_process_has() {
    let Some(said) = said_by(IN_THE_MIDDLE, "shim: a child is made slowly") else { return };
    assert_eq!(said, "0\nexit status: 0");
    let fault = "shim: a child has its parent's numbers, and not those of its process";
    assert_ne!(said_by(IN_THE_MIDDLE, fault).as_deref(), Some("0\nexit status: 0"), "missed");
}
