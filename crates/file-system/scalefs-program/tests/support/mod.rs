//! A mounted ScaleFS for a test, taken away whatever happens.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The program.
pub fn scalefs(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scalefs")).args(arguments).output().expect("the program starts")
}

/// What a command said when it was refused, in one line.
pub fn refusal(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was done: {said}");
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    assert!(said.starts_with("scalefs: "), "{said}");
    said
}

/// Whether ScaleFS can be mounted here; where not, a test says why it looks at nothing.
pub fn can_mount() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    let has_device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    if !(is_root && has_device) {
        eprintln!(
            "not tested: it takes root and /dev/fuse, and here is only {}",
            if is_root { "root" } else { "a user" }
        );
    }
    is_root && has_device
}

/// A directory of a test's own, removed with this.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        Scratch::below(&std::env::temp_dir())
    }

    pub fn below(above: &Path) -> Scratch {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = above.join(format!("scalefs-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a new directory");
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A mounted ScaleFS.
pub struct Mounted {
    // Unmounted before its directory is removed.
    pub point: PathBuf,
    pub scratch: Scratch,
}

impl Mounted {
    pub fn new(options: &[&str]) -> Mounted {
        Mounted::with_environment(options, &[])
    }

    pub fn with_environment(options: &[&str], environment: &[(&str, &str)]) -> Mounted {
        let scratch = Scratch::new();
        let point = scratch.path("mount");
        fs::create_dir(&point).expect("a new directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
        command.arg("mount").args(options).arg(&point).envs(environment.iter().copied());
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Mounted { point, scratch }
    }

    pub fn place(&self) -> &str {
        self.point.to_str().expect("plain letters")
    }

    /// Unmounts what nobody uses. A child that another test starts at this moment has all our descriptors until it is a program of
    /// its own, so "in use" is believed after half a minute only.
    pub fn unmount(&self) -> Output {
        let mut output = self.unmount_once();
        for _ in 0..3000 {
            if !String::from_utf8_lossy(&output.stderr).contains("is in use") {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            output = self.unmount_once();
        }
        output
    }

    /// Tries to unmount.
    pub fn unmount_once(&self) -> Output {
        scalefs(&["unmount", self.place()])
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if is_mounted(&self.point) {
            let _ = scalefs(&["unmount", "--lazy", self.place()]);
        }
    }
}

/// Whether something of ours is mounted there.
pub fn is_mounted(point: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    let place = point.to_str().expect("plain letters");
    mounts.lines().any(|line| line.split(' ').nth(4) == Some(place))
}

/// The process that serves a mount.
pub fn server_of(point: &Path) -> i32 {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    let place = point.to_str().expect("plain letters");
    let line = mounts.lines().find(|line| line.split(' ').nth(4) == Some(place)).expect("it is mounted");
    let source = line.split("scalefs:").nth(1).expect("it is ours");
    source.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Numbers that follow from a seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        // Steele, Lea and Flood: "Fast splittable pseudorandom number generators", 2014.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}

/// Whether programs can be run in a tree here; where not, a test says why it looks at nothing.
pub fn can_run() -> bool {
    let can = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    if !can {
        eprintln!("not tested: scalefs run takes Linux on x86-64");
    }
    can
}

/// A program that is to be run with a directory that is a ScaleFS.
pub fn run_in_tree(top: &Path, options: &[&str], program: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
    command.arg("run").args(options).arg("--at").arg(top).arg("--").arg(program);
    command
}

/// A timer interrupts calls; its handler makes files, or leaves by a jump.
pub const INTERRUPTED: &str = r#"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int fired, wrong, jumps;
static sigjmp_buf back;
static void handler(int signal) {
    char name[32];
    sprintf(name, "s%d", ++fired % 50);
    int file = open(name, O_CREAT | O_RDWR, 0644);
    if (file < 0 || write(file, "x", 1) != 1 || close(file)) wrong++;
    unlink(name);
    if (jumps) siglongjmp(back, signal);
}
int main(int count, char **arguments) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 200}, {0, 200}};
    struct stat status;
    volatile long done = 0;
    jumps = count > 1;
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &timer, 0);
    sigsetjmp(back, 1);
    while (done < 15000) {
        char name[32];
        sprintf(name, "f%ld", done++ % 7);
        int file = open(name, O_CREAT | O_RDWR, 0644);
        if (file < 0 || stat(name, &status) || close(file) || unlink(name)) wrong++;
    }
    timer.it_value.tv_usec = timer.it_interval.tv_usec = 0;
    setitimer(ITIMER_REAL, &timer, 0);
    printf("%d %d\n", fired > 5, wrong);
}
"#;

/// A timer interrupts calls that wait, for a pipe and for a lock; its handler gives the kernel paths and locks of its own.
pub const WAITING: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int fired, wrong;
static int other;
static void handler(int signal) {
    struct stat status;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 9, .l_len = 1};
    fired++;
    for (int round = 0; round < 5; round++)
        if (stat("away", &status) || fcntl(other, F_SETLKW, &lock)) wrong++;
    int file = open("away", O_RDONLY);
    if (file < 0 || close(file)) wrong++;
}
int main(int count, char **arguments) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 10000}, {0, 10000}};
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 1};
    char letter = '?';
    int ready[2];
    if (count < 2 || symlink(arguments[1], "pipe") || symlink("/etc/passwd", "away") || pipe(ready)) return 1;
    other = open("other", O_CREAT | O_RDWR, 0644);
    int file = open("file", O_CREAT | O_RDWR, 0644);
    pid_t child = fork();
    if (child == 0) {
        alarm(3);
        int wrong = fcntl(file, F_SETLK, &lock);
        write(ready[1], "r", 1);
        usleep(150000);
        int pipe = open(arguments[1], O_WRONLY);
        wrong |= write(pipe, "p", 1) != 1;
        usleep(150000);
        _exit(wrong != 0);
    }
    read(ready[0], &letter, 1);
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &timer, 0);
    int pipe = open("pipe", O_RDONLY);
    int has_read = read(pipe, &letter, 1);
    int has_locked = fcntl(file, F_SETLKW, &lock);
    timer.it_value.tv_usec = timer.it_interval.tv_usec = 0;
    setitimer(ITIMER_REAL, &timer, 0);
    int status;
    wait(&status);
    if (fork() == 0) {
        lock.l_type = F_WRLCK;
        fcntl(file, F_GETLK, &lock);
        _exit(lock.l_type == F_WRLCK);
    }
    int held;
    wait(&held);
    printf("%d %c %d %d %d %d %d\n", has_read, letter, has_locked, held != 0, status, fired > 9, wrong);
}
"#;

/// One thread waits for a lock while another unlocks a byte far from it.
pub const UNLOCKING: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int file;
static volatile int over;
static int ask(int command, int kind, int start) {
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = start, .l_len = 1};
    return fcntl(file, command, &lock);
}
static void *unlock(void *nothing) {
    while (!over) ask(F_SETLK, F_UNLCK, 5 + 65536);
    return nothing;
}
int main(void) {
    int wrong = 0, ready[2], status;
    char letter;
    pthread_t other;
    file = open("file", O_CREAT | O_RDWR, 0644);
    if (pipe(ready) || pthread_create(&other, 0, unlock, 0)) return 1;
    for (int round = 0; round < 30; round++) {
        if (fork() == 0) {
            int wrong = ask(F_SETLK, F_WRLCK, 5);
            write(ready[1], "r", 1);
            usleep(3000);
            _exit(wrong != 0);
        }
        read(ready[0], &letter, 1);
        wrong += ask(F_SETLKW, F_WRLCK, 5) != 0;
        wait(&status);
        wrong += status != 0;
        if (fork() == 0) _exit(ask(F_SETLK, F_WRLCK, 5) == 0);
        wait(&status);
        wrong += status != 0;
        wrong += ask(F_SETLK, F_UNLCK, 5) != 0;
    }
    over = 1;
    pthread_join(other, 0);
    printf("%d\n", wrong);
}
"#;

/// Locks of whole files and of descriptions, a circle of two that wait, and what a program that `exec` begins still has locked.
pub const OWNERS: &str = r#"
import fcntl, os, struct, time
f = os.open("f", os.O_CREAT | os.O_RDWR); g = os.open("f", os.O_RDWR)
EX, SH, UN, NB = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN, fcntl.LOCK_NB
def said(what, call, *arguments):
    try: call(*arguments); print(what, "done", flush=True)
    except OSError as error: print(what, error.errno, flush=True)
def child(run):
    if os.fork() == 0:
        run(); os._exit(0)
def ofd(descriptor, kind, start, length, command=37):
    answer = fcntl.fcntl(descriptor, command, struct.pack("hhqqi4x", kind, 0, start, length, 0))
    print(struct.unpack("hhqqi4x", answer), flush=True)
fcntl.flock(f, EX); said(1, fcntl.flock, g, SH | NB); h = os.dup(f); os.close(f); said(2, fcntl.flock, g, SH | NB)
fcntl.flock(h, SH); said(3, fcntl.flock, g, SH | NB); said(4, fcntl.flock, h, EX | NB); said(5, fcntl.flock, g, EX | NB)
said(6, fcntl.flock, h, EX | NB); said(7, fcntl.flock, g, 3)
child(lambda: fcntl.flock(g, UN)); os.wait(); said(8, fcntl.flock, h, EX | NB)
child(lambda: (time.sleep(0.1), fcntl.flock(h, UN))); fcntl.flock(g, EX); os.wait(); said(9, fcntl.flock, h, SH | NB)
os.close(g); said(10, fcntl.flock, h, SH | NB); g = os.open("f", os.O_RDWR)
ofd(g, fcntl.F_WRLCK, 10, 5); said(11, fcntl.lockf, h, EX | NB, 1, 12); said(12, fcntl.lockf, h, EX | NB, 1, 15); ofd(h, fcntl.F_RDLCK, 0, 0, 36)
os.close(g); said(13, fcntl.lockf, h, EX | NB, 1, 12); fcntl.lockf(h, UN)
r, w = os.pipe()
def waits(): fcntl.lockf(h, EX, 1, 1); os.write(w, b"x"); said("child", fcntl.lockf, h, EX, 1, 0)
fcntl.lockf(h, EX, 1, 0); child(waits); os.read(r, 1); time.sleep(0.3); said(14, fcntl.lockf, h, EX, 1, 1); fcntl.lockf(h, UN); os.wait()
os.set_inheritable(h, True)
def begins(): fcntl.lockf(h, EX, 1, 50); os.write(w, b"x"); os.execvp("sleep", ["sleep", "0.4"])
child(begins); os.read(r, 1); time.sleep(0.2); said(15, fcntl.lockf, h, EX | NB, 1, 50); os.wait(); said(16, fcntl.lockf, h, EX | NB, 1, 50)
"#;

/// A program of C; nothing, and why, where it cannot be built.
pub fn compiled(place: &Path, source: &str, options: &[&str]) -> Option<PathBuf> {
    let (text, program) = (place.join("program.c"), place.join("program"));
    fs::write(&text, source).expect("our directory");
    let built =
        Command::new("gcc").args(["-O1", "-o"]).arg(&program).arg(&text).args(options).stderr(Stdio::null()).status();
    let is_there = built.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("not tested: gcc {options:?} does not build programs here");
    }
    is_there.then_some(program)
}
