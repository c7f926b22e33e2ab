//! Programs that do what few do, in a tree of `scalefs run`: each is answered as the table below says, and files of the tree work as
//! before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Scratch, compiled, refusal, run_in_tree};

/// What is asked for, and what the program says of it; then it says whether files of the tree still work, which is 1.
const ODD: [(&str, &str); 23] = [
    // A handler of the signal by which the kernel hands calls to us is kept, and never called.
    ("own handler of SIGSYS", "0 1 0"),
    ("filters of calls", "22 22"),
    ("another dispatch", "22"),
    ("the register gs", "1"),
    ("shadow stacks", "95"),
    ("code made at run time", "0"),
    ("a call across two pages", "1"),
    ("a jump behind a call", "77"),
    ("all numbers closed", "0 0"),
    ("few numbers", "24"),
    ("another root", "1"),
    ("numbers of processes of its own", "1"),
    ("mounts of its own", "2"),
    ("descriptors in common", "22 22"),
    // ETXTBSY, as the status of who could not execute it.
    ("a program that is written", "6656"),
    // It says so itself, and that files of the tree work.
    ("a relative program", "1 1 1\n"),
    ("io_uring", "38 38"),
    ("memory of another process", "5"),
    ("a shorter memory of the instance", "0 1"),
    ("its own program", "1 1"),
    ("a placeholder that is read", "9 9"),
    ("addresses of the instance", "1"),
    // Files of others do not come into a core file.
    ("a core file", "1"),
];

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int called;
static void handler(int signal) { called++; }
static int failed(long result) { return result < 0 ? errno : 0; }
static int works(void) {
    struct stat status;
    int file = open("works", O_CREAT | O_RDWR, 0644);
    int is_well = file >= 0 && write(file, "words", 5) == 5 && fstat(file, &status) == 0 && status.st_size == 5;
    return is_well && close(file) == 0 && unlink("works") == 0;
}
static const unsigned char makes[] = {0xb8, 83, 0, 0, 0, 0x0f, 0x05, 0xc3};
static int is(const char *what, const char *name) { return strcmp(what, name) == 0; }
int main(int count, char **words) {
    const char *what = words[1];
    if (is(what, "nothing")) return 0;
    if (is(what, "own handler of SIGSYS")) {
        struct sigaction action = {.sa_handler = handler}, old;
        sigset_t all;
        printf("%d ", failed(sigaction(SIGSYS, &action, 0)));
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, 0);
        for (int round = 0; round < 50; round++) works();
        sigaction(SIGSYS, 0, &old);
        kill(getpid(), SIGSYS);
        printf("%d %d", old.sa_handler == handler, called);
    } else if (is(what, "filters of calls")) {
        printf("%d %d", failed(prctl(PR_SET_SECCOMP, 2, 0, 0, 0)), failed(syscall(SYS_seccomp, 0, 0, 0)));
    } else if (is(what, "another dispatch")) {
        printf("%d", failed(prctl(59, 0, 0, 0, 0)));
    } else if (is(what, "the register gs")) {
        printf("%d", failed(syscall(SYS_arch_prctl, 0x1001, 0)));
    } else if (is(what, "code made at run time")) {
        unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(code, makes, sizeof makes);
        long made = ((long (*)(const char *, long))code)("made", 0755);
        printf("%ld", made ? made : rmdir("made"));
    } else if (is(what, "a call across two pages")) {
        /* mov $39, %eax; syscall; ret */
        unsigned char bytes[8192] = {0};
        memcpy(bytes + 4090, "\xb8\x27\0\0\0\x0f\x05\xc3", 8);
        int file = open("code", O_CREAT | O_RDWR, 0644);
        write(file, bytes, sizeof bytes);
        unsigned char *code = mmap(0, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        printf("%d", ((int (*)(void))(code + 4090))() == getpid());
    } else if (is(what, "a jump behind a call")) {
        /* mov $39, %eax; syscall; cmp $-4095, %rax; ret: with a jump to the comparison before it. */
        unsigned char bytes[4096] = {0};
        memcpy(bytes + 64, "\xb8\x27\0\0\0\x0f\x05\x48\x3d\x01\xf0\xff\xff\xc3", 14);
        memcpy(bytes + 32, "\xb8\x4d\0\0\0\xeb\x20", 7);
        int file = open("code", O_CREAT | O_RDWR, 0644);
        write(file, bytes, sizeof bytes);
        unsigned char *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        printf("%d", ((int (*)(void))(code + 32))());
    } else if (is(what, "all numbers closed")) {
        int file = open("f", O_CREAT | O_RDWR, 0644);
        for (int number = 3; number < 2000; number++) close(number);
        int first = failed(syscall(SYS_close_range, 3, ~0U, 0));
        printf("%d %d", first, open("f", O_RDONLY) - file);
    } else if (is(what, "few numbers")) {
        struct rlimit limit = {64, 64};
        int last = 0, number;
        setrlimit(RLIMIT_NOFILE, &limit);
        while ((number = open("f", O_CREAT | O_RDWR, 0644)) >= 0) last = number;
        printf("%d", errno);
        for (number = 3; number <= last; number++) close(number);
    } else if (is(what, "another root")) {
        printf("%d", failed(chroot(".")));
    } else if (is(what, "numbers of processes of its own")) {
        printf("%d", failed(unshare(CLONE_NEWPID)));
    } else if (is(what, "descriptors in common")) {
        int first = failed(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
        printf("%d %d", first, failed(syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0)));
    } else if (is(what, "mounts of its own")) {
        /* The directory is the tree's, and the kernel has none of that name. */
        mkdir("d", 0755);
        int is_done = unshare(CLONE_NEWNS) == 0;
        printf("%d", is_done ? failed(mount("none", "d", "tmpfs", 0, "")) : ENOENT);
    } else if (is(what, "a program that is written") || is(what, "a relative program")) {
        char *arguments[] = {"./copy", what[2] == 'p' ? "nothing" : "its own program", 0}, buffer[4096];
        int from = open("/proc/self/exe", O_RDONLY), to = open("copy", O_CREAT | O_WRONLY, 0755), status;
        for (int bytes; (bytes = read(from, buffer, sizeof buffer)) > 0;) write(to, buffer, bytes);
        if (what[2] == 'r') close(to);
        fflush(stdout);
        if (fork() == 0) { execv("./copy", arguments); _exit(errno); }
        wait(&status);
        if (what[2] == 'p') printf("%d", status);
    } else if (is(what, "shadow stacks")) {
        printf("%d", failed(syscall(SYS_arch_prctl, 0x5001, 1)));
    } else if (is(what, "io_uring")) {
        printf("%d %d", failed(syscall(425, 1, 0)), failed(syscall(427, 1, 0, 0, 0)));
    } else if (is(what, "memory of another process")) {
        char from[] = "words", to[8] = "";
        struct iovec here = {from, 5}, there = {to, 5};
        printf("%zd", process_vm_writev(getpid(), &here, 1, &there, 1, 0));
    } else if (is(what, "a shorter memory of the instance")) {
        int done = 0, refused = 0;
        for (int number = 3; number < 1024; number++) {
            char path[64], name[64] = "";
            /* By its own number it is hidden, and by another way it can be had. */
            snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), number);
            if (syscall(SYS_readlinkat, AT_FDCWD, path, name, 63) > 0 && strstr(name, "memfd:scalefs")) {
                done += ftruncate(number, 4096) == 0;
                int file = open(path, O_RDWR);
                done += ftruncate(file, 4096) == 0;
                refused |= file >= 0 && errno == EPERM;
            }
        }
        printf("%d %d", done, refused);
    } else if (is(what, "its own program")) {
        char path[4096] = "";
        int length = readlink("/proc/self/exe", path, 4095);
        struct stat one, other;
        int file = open("/proc/self/exe", O_RDONLY);
        printf("%d %d", length > 0 && path[0] == '/', stat(path, &one) == 0 && fstat(file, &other) == 0 && one.st_ino == other.st_ino);
    } else if (is(what, "a placeholder that is read")) {
        int file = open("f", O_CREAT | O_RDWR, 0644), copy;
        close(file);
        char letter;
        copy = failed(read(file, &letter, 1));
        printf("%d %d", copy, failed(dup(file)));
    } else if (is(what, "addresses of the instance")) {
        void *place = (void *)0x620000000000;
        printf("%d", mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
    }
    if (is(what, "a core file")) {
        char line[512];
        int is_it = 0, is_left_out = 0;
        FILE *maps = fopen("/proc/self/smaps", "r");
        while (fgets(line, sizeof line, maps)) {
            if (strncmp(line, "620000000000-", 13) == 0) is_it = 1;
            if (is_it && strncmp(line, "VmFlags:", 8) == 0) {
                is_left_out = strstr(line, " dd") != 0;
                break;
            }
        }
        printf("%d", is_left_out);
    }
    printf(" %d\n", works());
}
"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let hidden = Scratch::new();
    run_in_tree(&hidden.0, &["--size", "16M"], program.to_str().expect("plain letters"))
        .args(arguments)
        .output()
        .expect("it starts")
}

#[test]
fn odd_programs_are_answered() {
    let scratch = Scratch::new();
    for options in [&[][..], &["-static"]] {
        let Some(program) = compiled(&scratch.0, PROGRAM, options) else { continue };
        let mut wrong = Vec::new();
        for (what, expected) in ODD {
            let output = run(&program, &[what]);
            let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
            if said != format!("{expected} 1\n") {
                wrong.push(format!("{what}: expected {expected:?}, got {said:?}, {}", output.status));
            }
        }
        assert!(wrong.is_empty(), "{options:?}: {wrong:#?}");
    }
}

/// A library that `LD_PRELOAD` names comes before the others.
#[test]
fn libraries_that_come_first_are_loaded() {
    let scratch = Scratch::new();
    let source = "int getppid(void) { return 4711; }";
    let Some(library) = compiled(&scratch.0, source, &["-shared", "-fPIC"]) else { return };
    let library = library.with_file_name("library.so");
    fs::rename(scratch.path("program"), &library).expect("ours");
    let source = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d\\n\", getppid()); }";
    let Some(program) = compiled(&scratch.0, source, &[]) else { return };
    // For the program alone.
    let variable = format!("LD_PRELOAD={}", library.display());
    let output = run(Path::new("env"), &[&variable, program.to_str().expect("plain letters")]);
    assert_eq!(text(&output.stdout), "4711\n", "{}", text(&output.stderr));
}

/// A tracer of calls sees the loader, and the program runs under it.
#[test]
fn a_tracer_does_not_change_what_a_program_does() {
    if Command::new("strace").arg("--version").output().is_err() {
        eprintln!("not tested: strace is not installed");
        return;
    }
    let output = run(Path::new("strace"), &["-f", "-o", "/dev/null", "sh", "-c", "echo words > f; cat f"]);
    assert_eq!(text(&output.stdout), "words\n", "{}", text(&output.stderr));
}

/// A debugger that is started in a tree, or with one, runs a program to its end.
#[test]
fn a_debugger_does_not_change_what_a_program_does() {
    if Command::new("gdb").arg("--version").output().is_err() {
        eprintln!("not tested: gdb is not installed");
        return;
    }
    let scratch = Scratch::new();
    let source = "#include <stdio.h>\nint main(void) { FILE *made = fopen(\"made\", \"w\"); fputs(\"words\", made); fclose(made); return 3; }";
    let Some(program) = compiled(&scratch.0, source, &[]) else { return };
    let program = program.to_str().expect("plain letters");
    let script = "timeout 100 gdb -batch -nx -ex 'handle SIGSYS nostop noprint pass' -ex run \"$0\" < /dev/null | grep -o 'exited with code [0-9]*'; cat made";
    let output = run(Path::new("sh"), &["-c", script, program]);
    assert_eq!(text(&output.stdout), "exited with code 03\nwords", "{}", text(&output.stderr));
    let hidden = Scratch::new();
    let run = format!("{} run --size 16M --at {} -- {program}", env!("CARGO_BIN_EXE_scalefs"), hidden.0.display());
    let script =
        format!("timeout 100 gdb -batch -nx -ex run --args {run} < /dev/null | grep -o 'exited with code [0-9]*'");
    let output = Command::new("sh").args(["-c", &script]).output().expect("there is a shell");
    assert_eq!(text(&output.stdout), "exited with code 03\n", "{}", text(&output.stderr));
}

/// A program that is to lie where the instance does.
#[test]
fn a_program_at_the_addresses_of_the_instance_is_not_mapped_over_it() {
    let scratch = Scratch::new();
    let source = r#"void _start(void) { __asm__("mov $60, %eax; xor %edi, %edi; syscall"); }"#;
    let options = ["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext-segment=0x620000000000"];
    let Some(program) = compiled(&scratch.0, source, &options) else { return };
    let said = refusal(&run(Path::new("sh"), &["-c", "exec \"$0\"", program.to_str().expect("plain letters")]));
    assert!(said.ends_with(": its addresses are taken\n"), "{said}");
}

/// As the kernel says it of such a processor.
#[cfg(feature = "planted-faults")]
#[test]
fn a_processor_that_sets_no_gs_is_refused() {
    let hidden = Scratch::new();
    let mut command = run_in_tree(&hidden.0, &["--size", "16M"], "true");
    let output = command.env("COMMUTANT_PLANTED_FAULT", "shim: the processor lets no one set gs").output();
    let said = refusal(&output.expect("it starts"));
    assert!(said.contains("fsgsbase") && said.contains("scalefs mount"), "{said}");
}

/// A tree in a tree has the same addresses.
#[test]
fn a_tree_in_a_tree_is_refused() {
    let script = "mkdir inner; exec \"$0\" run --size 16M --at inner -- true";
    let said = refusal(&run(Path::new("sh"), &["-c", script, env!("CARGO_BIN_EXE_scalefs")]));
    assert!(said.contains("are taken in this process"), "{said}");
}

/// The loader alone, with memory that is no instance's, or that of another build.
#[test]
fn memory_that_is_not_this_builds_is_refused() {
    const LOADER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loader"));
    let scratch = Scratch::new();
    let loader = scratch.path("loader");
    fs::write(&loader, LOADER).expect("ours");
    fs::set_permissions(&loader, fs::Permissions::from_mode(0o755)).expect("ours");
    let said = |seat: &str, memory: &[u8], bytes: u64| {
        let file = fs::File::create(scratch.path("memory")).expect("ours");
        std::os::unix::fs::FileExt::write_all_at(&file, memory, 0).expect("ours");
        file.set_len(bytes).expect("ours");
        let script = format!("exec \"$0\" 3<> '{}'", scratch.path("memory").display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(&loader).env("SCALEFS_SEAT", seat).env("SCALEFS_SEAT2", "");
        let output = command.output().expect("there is a shell");
        assert_eq!(output.status.code(), Some(126));
        refusal(&output)
    };
    let magic = 0x5ca1_ef5e_0000_0001_u64.to_le_bytes();
    for (seat, first, bytes, expected) in [
        ("0", &[][..], 0, "by `scalefs run`, not by hand"),
        ("0,77", &[], 0, "its number was closed"),
        ("0,3", &[], 0, "is too short"),
        ("0,3", &[], 1 << 20, "is too short"),
        ("0,3", &[], 128 << 20, "there is no instance"),
        ("0,3", &magic, 128 << 20, "another build of scalefs made the instance"),
    ] {
        let said = said(seat, first, bytes);
        assert!(said.contains(expected), "{seat}, {bytes} bytes: {said}");
    }
}

/// Directories that cannot be the tree's.
#[test]
fn places_that_cannot_be_are_refused() {
    let scratch = Scratch::new();
    fs::write(scratch.path("file"), "").expect("ours");
    for (at, expected) in [("file", "is no directory"), ("none", "does not exist"), ("file/below", "Not a directory")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
        command.args(["run", "--size", "16M", "--at"]).arg(scratch.path(at)).args(["--", "true"]);
        let said = refusal(&command.output().expect("it starts"));
        assert!(said.contains(at) && said.contains(expected), "{said}");
    }
}
