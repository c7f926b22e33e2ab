//! `scalefs run`: what programs see of the tree is what they see of tmpfs, whatever they do with processes, descriptors and signals;
//! what is refused and how it is said; and that nothing is left, who is killed.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod looked_after;
#[cfg(feature = "planted-faults")]
mod planted;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{INTERRUPTED, Numbers, OWNERS, Scratch, UNLOCKING, WAITING, compiled, refusal, run_in_tree};

const SMALL: &[&str] = &["--size", "16M"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn in_tree(options: &[&str], program: &str, arguments: &[&str]) -> Output {
    let hidden = Scratch::new();
    run_in_tree(&hidden.0, options, program).args(arguments).output().expect("the program starts")
}

/// What a script of the shell prints, here and in a directory of tmpfs: its path in either is left out.
fn same_as_on_tmpfs(script: &str) {
    same_as_on_tmpfs_by("sh", script);
}

fn same_as_on_tmpfs_by(shell: &str, script: &str) {
    let (hidden, tmpfs) = (Scratch::new(), Scratch::below(Path::new("/dev/shm")));
    let mut there = Command::new(shell);
    there.current_dir(&tmpfs.0);
    let mut said = Vec::new();
    for (mut command, place) in [(run_in_tree(&hidden.0, SMALL, shell), &hidden.0), (there, &tmpfs.0)] {
        let output = command.args(["-c", script]).env("LC_ALL", "C").output().expect("there is a shell");
        let both = format!("{}{}{:?}", text(&output.stdout), text(&output.stderr), output.status.code());
        said.push(both.replace(place.to_str().expect("plain letters"), "TOP"));
    }
    assert_eq!(said[0], said[1], "left is the tree");
}

#[test]
fn small_programs_see_what_they_see_on_tmpfs() {
    same_as_on_tmpfs(
        "echo one > a; cat a; echo two >> a; cat < a | tr a-z A-Z; mkdir -p d/e; cp a d/b; mv d/b d/c; ls -R
        ln -s a l; readlink l; ln a h; stat -c '%n %s %h %F' a l h; (cd d; pwd; ls ..); rm -r d; cat none; cat /none
        for i in 1 2 3; do echo $i; done > n; wc -l < n; head -c 3 /etc/hostname | wc -c; rmdir n; mkdir n
        cat ./../../../../../../../../etc/hostname | wc -l; touch -d 2001-02-03T04:05:06Z t; stat -c %Y t; truncate -s 5 t
        dd if=t bs=2 skip=1 2> /dev/null | od -An -c; chmod 640 t; stat -c %a t; umask 077; echo > u; stat -c %a u
        seq 1 3000 > big; sort -rn big | head -1; tail -c 5 big; sed -i s/9/x/ big; grep -c x big; find . -type f | sort",
    );
}

#[test]
fn scripts_pipes_and_children_work_as_on_tmpfs() {
    same_as_on_tmpfs(
        r#"printf '#!/bin/sh\necho "$0 $1"; exit 3\n' > s; chmod +x s; ./s x; echo $?; cp /bin/echo e; ./e copied; ./n; echo $?
        printf '#!/bin/sh -e\nfalse\necho no\n' > f; chmod +x f; ./f; echo $?; chmod -x f; ./f; echo $?; mkdir x; ./x; echo $?
        (echo a; (echo b; sleep 0.01; echo c) | cat; echo d) | cat > p; cat p; exec 5> five; echo to five >&5; sh -c 'echo child >&5'
        exec 5>&-; cat five; exec 6< five; read first <&6; echo "$first"; sh -c 'cat <&6'; (exit 7); echo $?
        x=$(cat five); echo "$x"; trap 'echo trapped' USR1; kill -USR1 $$; sh -c 'kill -9 $$'; echo $?; (sleep 0.01 &) ; wait; xargs -n1 echo < five"#,
    );
}

/// The C library's `fchmodat` makes this call since 2.39; a host's kernel has it since 6.6, so that none is asked here.
#[test]
fn permissions_of_a_symbolic_link_are_not_those_of_its_target() {
    let program = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def chmod(directory, path, mode, flags):
    return ctypes.get_errno() if libc.syscall(452, directory, path, mode, flags) else 0
f = os.open("f", os.O_CREAT | os.O_RDWR, 0o644); os.symlink("f", "l")
print(chmod(-100, b"l", 0o777, 0x100), oct(os.stat("f").st_mode & 0o7777), chmod(-100, b"f", 0o640, 0x100), chmod(-100, b"l", 0o600, 1))
print(oct(os.stat("f").st_mode & 0o7777), chmod(f, b"", 0o604, 0x1000), chmod(-100, b"l", 0o601, 0), oct(os.stat("f").st_mode & 0o7777))
"#;
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("not tested: python3 is not installed");
        return;
    }
    let output = in_tree(SMALL, "python3", &["-c", program]);
    assert_eq!(text(&output.stdout), "95 0o644 0 22\n0o640 0 0 0o601\n", "{}", text(&output.stderr));
}

/// The working directory by no path, and by a number of its own: `fstatat` and `statx` with AT_EMPTY_PATH.
#[test]
fn the_working_directory_has_a_status_without_a_path() {
    let program = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True); words = (ctypes.c_ulong * 32)(); r, w = os.pipe(); null = os.open("/dev/null", 0)
def numbers(directory): return [libc.syscall(262, directory, b"", words, 0x1000), words[1], libc.syscall(332, directory, b"", 0x1000, 0x7ff, words), words[4]]
def of(status): return [0, status.st_ino] * 2
for place in ".", "/":
    os.chdir(place); print(numbers(-100) == of(os.stat(".")), numbers(null) == of(os.fstat(null)), numbers(r) == of(os.fstat(r)), numbers(os.open(".", 0)) == of(os.stat(".")))
print(libc.syscall(262, -100, b"", words, 0), libc.syscall(262, 999, b"", words, 0x1000))"#;
    same_as_on_tmpfs(&format!("command -v python3 > /dev/null || exit 0; python3 -c '{program}'"));
}

/// A library that the user puts before others is for programs. An heir that took its predecessor for dead by such a `getppid` had an
/// heir at once, which did the same.
#[test]
fn libraries_that_come_first_are_for_programs_alone() {
    let scratch = Scratch::new();
    let source = "int getppid(void) { return 4711; }";
    let Some(library) = compiled(&scratch.0, source, &["-shared", "-fPIC"]) else { return };
    let hidden = Scratch::new();
    let mut command = run_in_tree(&hidden.0, SMALL, "sh");
    let script = "sleep 0.3; grep -a -l '^.proc.self.exe' /proc/[0-9]*/cmdline 2> /dev/null | while read file; do \
        grep -a -q LD_PRELOAD=\"$LD_PRELOAD\" ${file%cmdline}environ && echo $file; done; echo done";
    let output = command.args(["-c", script]).env("LD_PRELOAD", &library).output().expect("it starts");
    assert_eq!(text(&output.stdout), "done\n", "{}", text(&output.stderr));
}

/// Numbers, flags and inheritance, in the words of a program that looks at them closely.
const DESCRIPTORS: &str = r#"
import fcntl, os, subprocess, sys
def say(*words): print(*words, flush=True)
a = os.open("a", os.O_CREAT | os.O_RDWR); b = os.open("b", os.O_CREAT | os.O_WRONLY | os.O_APPEND); n = os.open("/dev/null", os.O_RDWR)
say(a, b, n); os.close(a); m = os.open("/dev/null", os.O_RDONLY); c = os.open("a", os.O_RDONLY); say(m, c)
say(os.dup(b), os.dup2(b, 40), fcntl.fcntl(b, fcntl.F_DUPFD, 30), fcntl.fcntl(n, fcntl.F_DUPFD, 30), os.pipe())
say(fcntl.fcntl(b, fcntl.F_GETFL) & 0o3003, fcntl.fcntl(c, fcntl.F_GETFL) & 3, os.get_inheritable(b), os.get_inheritable(40))
os.dup2(n, 40); os.write(40, b"lost"); os.dup2(b, n); os.write(n, b"kept"); say(os.fstat(c).st_size, os.fstat(40).st_size, os.fstat(n).st_size)
for number in (200, 1000000): 
    try: os.fstat(number)
    except OSError as error: say(number, error.errno)
os.write(b, b"one two three"); os.lseek(b, 0, 0); os.write(b, b"!"); r = os.open("b", os.O_RDONLY); say(os.read(r, 100), os.lseek(r, -3, 2), os.read(r, 9), os.pread(r, 3, 4))
k = os.fork()
if k == 0:
    say(os.lseek(r, 0, 1)); os.lseek(r, 5, 0); os._exit(9)
say(os.waitpid(k, 0)[1], os.lseek(r, 0, 1), os.readv(r, [bytearray(2), bytearray(3)]), os.lseek(r, 0, 1))
os.set_inheritable(r, True); say(subprocess.run(["cat"], stdin=r, stdout=subprocess.PIPE).stdout)
say(subprocess.run(["sh", "-c", "cat <&%d; echo $?" % c], capture_output=True, text=True, close_fds=False).stdout)
say(subprocess.run(["sh", "-c", "ls /proc/self/fd | wc -l"], capture_output=True, text=True).stdout)
try: subprocess.run(["./none"])
except FileNotFoundError as error: say(error.errno)
os.closerange(3, 60); say(os.open("a", os.O_RDONLY), sorted(os.listdir(".")), os.path.realpath("."), os.getcwd())
fcntl.lockf(3, fcntl.LOCK_SH); w = os.open("b", os.O_RDWR); fcntl.lockf(w, fcntl.LOCK_EX, 10, 5)
if os.fork() == 0:
    for start, length in ((0, 5), (5, 1), (14, 0), (20, 3)):
        try: fcntl.lockf(w, fcntl.LOCK_EX | fcntl.LOCK_NB, length or 1, start); say("free", start)
        except OSError as error: say(error.errno, start)
    os._exit(0)
os.wait(); os.unlink("b"); say(os.fstat(w).st_nlink, os.read(w, 3)); os.chdir("/"); say(os.getcwd(), os.path.exists("a")); os.chdir(sys.argv[1]); say(os.path.exists("a"))
d = os.open(".", os.O_RDONLY); os.mkdir("e"); os.chdir("e"); say(os.path.exists("../a"), os.stat("a", dir_fd=d).st_size, sorted(os.listdir(d))); os.fchdir(d); os.rmdir("e")
"#;

#[test]
fn descriptors_are_numbered_and_inherited_as_on_tmpfs() {
    let program = DESCRIPTORS.replace('\'', "'\\''");
    same_as_on_tmpfs(&format!(
        "command -v python3 > /dev/null || exit 0; \"$(readlink -f \"$(command -v /usr/bin/python3 || command -v python3)\")\" -c '{program}' \"$PWD\""
    ));
}

/// Parts of ranges, and ranges far apart: what is still locked stays so when others are unlocked or weakened.
const RANGES: &str = r#"
import fcntl, os, time
f = os.open("f", os.O_CREAT | os.O_RDWR); far = 1 << 16
def lock(kind, length, start): fcntl.lockf(f, kind, length, start)
def ask(*places):
    if os.fork() == 0:
        for kind, start in places:
            try: lock(kind | fcntl.LOCK_NB, 1, start); print("free", start, flush=True); lock(fcntl.LOCK_UN, 1, start)
            except OSError as error: print(error.errno, start, flush=True)
        os._exit(0)
    os.wait()
EX, SH, UN = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_UN
lock(EX, 1, 0); lock(EX, 1, far); lock(UN, 1, far); ask((EX, 0), (SH, 0)); lock(UN, 1, 0); ask((EX, 0), (EX, far))
lock(EX, 1, 7); lock(SH, 1, 7 + far); ask((EX, 7), (SH, 7)); lock(UN, 1, 7); ask((SH, 7), (EX, 7 + far), (SH, 7 + far)); lock(UN, 1, 7 + far)
lock(EX, 100, 0); lock(UN, 10, 10); ask((EX, 15), (EX, 9), (EX, 20), (EX, 99), (EX, 100)); lock(SH, 50, 30); ask((SH, 40), (EX, 40), (SH, 85))
lock(EX, 1, 50 + 3 * far); lock(UN, 0, far); ask((EX, 50), (SH, 85), (SH, 40)); lock(UN, 0, 0); ask((EX, 50), (EX, 0), (EX, 50 + 3 * far))
lock(EX, 0, 0); lock(UN, 0, far); ask((EX, 50), (EX, far - 1)); lock(UN, 0, 0)
r, w = os.pipe()
if os.fork() == 0:
    lock(EX, 1, 5); os.write(w, b"x"); time.sleep(0.1); os._exit(0)
os.read(r, 1); lock(EX, 1, 5); os.wait(); lock(UN, 1, 5 + far); ask((EX, 5)); os.close(os.open("f", 0)); ask((EX, 5))
for n in range(300): lock(EX, 1, n)
for n in range(0, 300, 2): lock(UN, 1, n)
ask((EX, 0), (EX, 1), (EX, 298), (EX, 299)); lock(UN, 300, 0); ask((EX, 1), (EX, 299))
"#;

#[test]
fn ranges_are_locked_until_they_are_unlocked() {
    same_as_on_tmpfs(&format!("command -v python3 > /dev/null || exit 0; python3 -c '{RANGES}'"));
}

#[test]
fn locks_are_of_processes_descriptions_and_files_as_on_tmpfs() {
    same_as_on_tmpfs(&format!("command -v python3 > /dev/null || exit 0; python3 -c '{OWNERS}'"));
}

#[test]
fn a_lock_that_was_waited_for_stays_when_a_thread_unlocks_others() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, UNLOCKING, &["-pthread"]) else { return };
    let output = in_tree(SMALL, program.to_str().expect("plain letters"), &[]);
    assert_eq!(text(&output.stdout), "0\n", "{}", text(&output.stderr));
}

#[test]
fn a_signal_in_a_call_is_delivered_at_its_end() {
    let scratch = Scratch::new();
    for options in [&["-pthread"][..], &["-static"]] {
        let Some(program) = compiled(&scratch.0, INTERRUPTED, options) else { continue };
        for arguments in [&[][..], &["jumps"]] {
            let output = in_tree(SMALL, program.to_str().expect("plain letters"), arguments);
            assert_eq!(text(&output.stdout), "1 0\n", "{options:?} {arguments:?}: {}", text(&output.stderr));
        }
    }
}

/// What the kernel was given for a call that waits stays as it is, whatever a handler asks for until the call goes on.
#[test]
fn a_signal_of_real_time_that_ends_a_program_has_its_exit_code() {
    if !support::can_run() {
        return;
    }
    let output = in_tree(&[], "sh", &["-c", "kill -34 $$"]);
    assert_eq!(output.status.code(), Some(162), "{}", text(&output.stderr));
}

#[test]
fn a_call_that_waits_is_restarted_as_it_was() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, WAITING, &[]) else { return };
    let pipe = scratch.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("our directory");
    let arguments = [pipe.to_str().expect("plain letters")];
    let output = in_tree(SMALL, program.to_str().expect("plain letters"), &arguments);
    assert_eq!(text(&output.stdout), "1 p 0 1 0 1 0\n", "{}", text(&output.stderr));
}

/// A library is first mapped as a whole, which can be more than its file has.
#[test]
fn code_is_mapped_beyond_the_end_of_its_file() {
    let scratch = Scratch::new();
    let source = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int count, char **arguments) {
    int file = open(arguments[1], O_RDONLY);
    char *code = mmap(0, 5 << 12, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    printf("%d %d\n", code != MAP_FAILED, code[4096]);
}
"#;
    let Some(program) = compiled(&scratch.0, source, &[]) else { return };
    let short = scratch.path("short");
    fs::write(&short, vec![b'7'; 4097]).expect("our directory");
    let arguments = [short.to_str().expect("plain letters")];
    let output = in_tree(SMALL, program.to_str().expect("plain letters"), &arguments);
    assert_eq!(text(&output.stdout), "1 55\n", "{}", text(&output.stderr));
}

/// In libraries of many megabytes numbers and addresses look like calls: they stay as they are, and calls become jumps.
#[test]
fn what_looks_like_a_call_is_not_rewritten() {
    let scratch = Scratch::new();
    let source = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int count, char **arguments) {
    int file = open(arguments[1], O_RDONLY);
    unsigned char *code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    for (int at = 0; at < 3072; at += 1024) printf("%d ", code[at + 8] == 0x0f && code[at + 9] == 0x05);
}
"#;
    let Some(program) = compiled(&scratch.0, source, &[]) else { return };
    let mut code = vec![0x90; 4096];
    // mov 0x6c(%r13,%rbx,...), of which the call's bytes are a part; call *address(%rip); mov %r14, %rsi; syscall; cmp.
    code[..13].copy_from_slice(&[0x41, 0x8b, 0x54, 0x0f, 0x01, 0x45, 0x8b, 0x6c, 0x0f, 0x05, 0x4d, 0x39, 0xd1]);
    code[1024..1037].copy_from_slice(&[0x90, 0x48, 0x8b, 0x7c, 0x24, 0x20, 0xff, 0x15, 0x0f, 0x05, 0x83, 0xfe, 0xe9]);
    code[2048..2062]
        .copy_from_slice(&[0x90, 0x90, 0x4c, 0x89, 0xe7, 0x4c, 0x89, 0xf6, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x90]);
    let place = scratch.path("code");
    fs::write(&place, code).expect("our directory");
    let arguments = [place.to_str().expect("plain letters")];
    let output = in_tree(SMALL, program.to_str().expect("plain letters"), &arguments);
    assert_eq!(text(&output.stdout), "1 1 0 ", "{}", text(&output.stderr));
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let scratch = Scratch::new();
    let refused = |options: &[&str], program: &str| {
        let output = run_in_tree(&scratch.0, options, program).output().expect("the program starts");
        (output.status.code(), refusal(&output))
    };
    let (code, said) = refused(SMALL, "no-such-program");
    assert!(code == Some(127) && said.contains("there is no such program"), "{said}");
    let (code, said) = refused(SMALL, "./none");
    assert!(code == Some(127) && said.contains("there is no such program"), "{said}");
    let plain = scratch.path("plain");
    fs::write(&plain, "words").expect("our directory");
    let place = Scratch::new();
    let output = run_in_tree(&place.0, SMALL, plain.to_str().expect("plain letters")).output().expect("it starts");
    assert!(output.status.code() == Some(126) && refusal(&output).contains("may be executed"));
    // A program of 32 bits.
    let small = scratch.path("small");
    fs::write(&small, [b"\x7fELF\x01\x01\x01".as_slice(), &[0; 40]].concat()).expect("our directory");
    fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).expect("ours");
    let output = run_in_tree(&place.0, SMALL, small.to_str().expect("plain letters")).output().expect("it starts");
    assert!(output.status.code() == Some(126) && refusal(&output).contains("64 bits of x86-64"));
    let (_, said) = refused(&["--from", "/none"], "true");
    assert!(said.contains("--from /none"), "{said}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_scalefs")).args(["run", "--at", "/etc/hostname", "--", "true"]).output();
    assert!(refusal(&output.expect("it starts")).contains("is no directory"));
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 12; exec \"$0\" run --at \"$1\" -- true", env!("CARGO_BIN_EXE_scalefs")])
        .arg(&place.0)
        .output();
    assert!(refusal(&output.expect("it starts")).contains("raise it by ulimit -n"));
}

#[test]
fn inside_of_the_tree_too() {
    same_as_on_tmpfs(
        r"printf '\177ELF\001\001\001%060d' 0 > small; chmod +x small; ./small 2> /dev/null; echo $?; ./none 2> /dev/null; echo $?",
    );
    // Who is not who the set-id bits say has no such program; the system's would have it.
    let script = r#"cp /bin/true t; chmod 4755 t; ./t; echo $?; ulimit -n 16; for n in 3 4 5 6 7 8 9; do eval "exec $n> f$n" || echo full; done; ls"#;
    let output = in_tree(SMALL, "bash", &["-c", script]);
    assert_eq!(text(&output.stdout), "0\nf3\nf4\nf5\nf6\nf7\nf8\nf9\nt\n", "{}", text(&output.stderr));
}

#[test]
fn a_full_tree_says_so_and_goes_on() {
    let script = "said=$(LC_ALL=C dd if=/dev/zero of=big bs=64k count=100 2>&1); echo \"$said\" | grep -c 'No space left'; rm big; echo small > file; cat file
        dd if=/dev/zero of=big bs=64k count=20 2> /dev/null; stat -c %s big";
    let output = in_tree(&["--size", "2M"], "sh", &["-c", script]);
    assert_eq!(text(&output.stdout), "1\nsmall\n1310720\n", "{}", text(&output.stderr));
}

/// Room that was given up just now is found in the middle of a call, too.
const LARGE: &str = r#"
import os
counts = set()
for n in range(60):
    f = os.open("f", os.O_CREAT | os.O_RDWR); counts.add(os.write(f, b"x" * 1900000)); os.close(f); os.unlink("f")
print(counts)
"#;

/// What is copied to where there is no room is not passed over.
const COPIED: &str = r#"
import os
def made(name): return os.open(name, os.O_CREAT | os.O_RDWR)
s, d, filler = made("s"), made("d"), made("filler"); os.write(s, b"abcd" * 50000); os.lseek(s, 0, 0)
for size in 65536, 1:
    try:
        while True: os.write(filler, b"f" * size)
    except OSError as error: print(error.errno)
def tried():
    try: print(os.copy_file_range(s, d, 200000))
    except OSError as error: print(error.errno)
    print(os.lseek(s, 0, 1), os.lseek(d, 0, 1), os.fstat(d).st_size)
tried(); os.ftruncate(filler, os.fstat(filler).st_size - 5 * 4096 - 1); tried(); os.unlink("filler"); os.close(filler)
while os.copy_file_range(s, d, 200000): pass
print(os.pread(d, 200000, 0) == b"abcd" * 50000)
"#;

#[test]
fn writes_are_as_long_as_there_is_room() {
    let output = in_tree(&["--size", "2M"], "python3", &["-c", LARGE]);
    assert_eq!(text(&output.stdout), "{1900000}\n", "{}", text(&output.stderr));
}

#[test]
fn what_finds_no_room_is_not_passed_over() {
    let output = in_tree(&["--size", "2M"], "python3", &["-c", COPIED]);
    let said = text(&output.stdout);
    assert!(said.starts_with("28\n28\n28\n0 0 0\n") && said.ends_with("\nTrue\n"), "{said}{}", text(&output.stderr));
}

/// Descriptors of the tree do not go with messages, which is said; those of the kernel do.
const MESSAGES: &str = r#"
import os, socket
a, b = socket.socketpair(); f = os.open("f", os.O_CREAT | os.O_RDWR); n = os.open("/dev/null", os.O_RDWR); os.write(f, b"words")
def tried(*numbers):
    try: print("sent", socket.send_fds(a, [b"x"], numbers))
    except OSError as error: print(error.errno); return
    _, got, _, _ = socket.recv_fds(b, 9, 9); print([os.pread(number, 9, 0) for number in got])
tried(n); tried(f); tried(n, f); tried(200); closed = os.dup(f); os.close(closed); tried(closed); a.send(b"plain"); print(b.recv(9), os.pread(f, 9, 0))
"#;

#[test]
fn descriptors_of_the_tree_do_not_go_with_messages() {
    let output = in_tree(SMALL, "python3", &["-c", MESSAGES]);
    assert_eq!(text(&output.stdout), "sent 1\n[b'']\n95\n95\n9\n9\nb'plain' b'words'\n", "{}", text(&output.stderr));
}

/// A program of the tree that runs is not written; once it has ended, or is another program's, it is.
const BUSY: &str = r#"
cp "$(readlink -f /bin/sleep)" program; cp program second; ./program 100 & exec 3> log
until grep -q sleep /proc/$!/cmdline 2> /dev/null || grep -q program /proc/$!/cmdline; do sleep 0.01; done; sleep 0.2
(: >> program) 2>> log || echo busy; (: > program) 2>> log || echo busy; truncate -s 5 program 2>> log || echo busy; head -c 1 program | wc -c; chmod 700 program
mv program other; (: > other) 2>> log || echo busy; cp second other 2>> log || echo busy; (: >> second) && echo free; ln other name; (: >> name) 2>> log || echo busy
kill $!; wait $! 2>> log; (: >> other) && echo free; ./second 0; (: > second) && echo free; grep -c 'Text file busy' log; rm *
"#;

#[test]
fn a_program_that_runs_is_not_written() {
    same_as_on_tmpfs_by("bash", BUSY);
}

/// Where a supervisor and its heir are killed at once, what stands in the kernel for pipes stays for those who live on; the next tree
/// removes it once no one does.
#[test]
fn what_the_killed_leave_in_the_kernel_goes_with_the_next_tree() {
    let (hidden, places) = (Scratch::new(), Scratch::new());
    let left = || fs::read_dir(&places.0).expect("ours").count();
    let in_places = |program: &str| {
        let mut command = run_in_tree(&hidden.0, SMALL, program);
        command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", &places.0);
        command
    };
    let run_another = || assert!(in_places("true").status().expect("it starts").success());
    let mut running = in_places("sleep").arg("100").stderr(Stdio::null()).spawn().expect("it starts");
    let supervisor = running.id().cast_signed();
    let children = || {
        let list = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).expect("Linux");
        let numbers = list.split_whitespace().map(|number| number.parse::<i32>().expect("a number"));
        let is_heir = |child: &i32| {
            fs::read(format!("/proc/{child}/cmdline")).is_ok_and(|words| text(&words).contains("run-heir"))
        };
        numbers.partition::<Vec<i32>, _>(is_heir)
    };
    while children().0.is_empty() || children().1.is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    let (heirs, programs) = children();
    run_another();
    assert_eq!(left(), 1, "it is used");
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        heirs.iter().chain([&supervisor]).for_each(|process| kill(Pid::from_raw(*process), signal).expect("it runs"));
    }
    running.wait().expect("ours");
    run_another();
    assert_eq!(left(), 1, "a program is there");
    programs.iter().for_each(|process| kill(Pid::from_raw(*process), Signal::SIGKILL).expect("it runs"));
    let started = Instant::now();
    while left() > 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "it stays");
        run_another();
    }
}

#[test]
fn what_is_copied_in_and_out_is_the_same() {
    let (from, top) = (Scratch::new(), Scratch::new());
    fs::create_dir(from.path("d")).expect("ours");
    fs::write(from.path("d/file"), "Dear Bob").expect("ours");
    std::os::unix::fs::symlink("/etc/hostname", from.path("out")).expect("ours");
    std::os::unix::fs::symlink("d", from.path("in")).expect("ours");
    let to = from.path("result");
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
    command.args(["run", "--size", "16M", "--at"]).arg(&top.0).arg("--from").arg(&from.0).arg("--to").arg(&to);
    let output = command
        .args(["--", "sh", "-c", "cat in/file; cat out | wc -l; echo more > d/more"])
        .output()
        .expect("it starts");
    assert_eq!(text(&output.stdout), "Dear Bob1\n", "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(to.join("d/more")).expect("copied"), "more\n");
    assert_eq!(fs::read_link(to.join("out")).expect("copied"), Path::new("/etc/hostname"));
}

#[test]
fn the_code_of_the_program_is_told() {
    for (script, code) in [("exit 5", 5), ("kill -TERM $$", 128 + 15), ("kill -KILL $$", 128 + 9), ("true", 0)] {
        assert_eq!(in_tree(SMALL, "sh", &["-c", script]).status.code(), Some(code), "{script}");
    }
}

/// More processes than the supervisor may have files open: none is missed that is killed, and the tree is copied out.
#[test]
fn more_processes_than_open_files() {
    let (hidden, results) = (Scratch::new(), Scratch::new());
    let to = results.path("result");
    // What the last of many had open is closed when it is killed, though its parent has not asked for it: there is room again.
    let script = r#"pids=; for n in $(seq 40); do sleep 100 & pids="$pids $!"; done
        python3 -c 'import os, signal, time
child = os.fork()
if child == 0:
    try: g = open("g", "w"); g.write("x" * 9000000); g.flush(); os.unlink("g"); open("ready", "w").close()
    except BaseException: os.kill(os.getppid(), signal.SIGTERM); raise
else:
    open("child", "w").write(str(child))
time.sleep(100)' & pids="$pids $!"
        while ! test -e ready -a -s child; do kill -0 $! || { kill $pids; exit 1; }; sleep 0.01; done
        kill -9 $(cat child); sleep 0.3
        head -c 9000000 /dev/zero > h 2> said; stat -c %s h; cat said; kill $pids; rm h; ulimit -n"#;
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 24; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_scalefs"),
        "run",
        "--size",
        "16M",
        "--at",
    ]);
    command.arg(&hidden.0).arg("--to").arg(&to).args(["--", "bash", "-c", script]);
    let output = command.output().expect("it starts");
    assert_eq!(text(&output.stdout), "9000000\n24\n", "{}", text(&output.stderr));
    assert!(output.status.success() && to.join("ready").exists(), "{}", text(&output.stderr));
}

/// A program that opens files first of all has the numbers that a low limit leaves: none of them is taken for the kernel's.
#[test]
fn a_low_limit_of_open_files_leaves_the_numbers_below() {
    let script = "ulimit -n 24; exec sh -c 'exec 3> a 4> b 5> c 6> d; ls; ulimit -n'";
    let output = in_tree(SMALL, "sh", &["-c", script]);
    assert_eq!(text(&output.stdout), "a\nb\nc\nd\n24\n", "{}", text(&output.stderr));
}

/// The supervisor may have as many files open as the system allows; the program as many as it was given.
#[test]
fn the_limit_of_open_files_is_raised_for_the_supervisor_alone() {
    let hidden = Scratch::new();
    let script = "read -r a b c soft hard rest < <(grep 'Max open files' /proc/$PPID/limits)
        if [ $soft = $hard ]; then echo all; else echo $soft of $hard; fi; ulimit -Sn";
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -Sn 100; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_scalefs"),
        "run",
        "--size",
        "16M",
        "--at",
    ]);
    let output = command.arg(&hidden.0).args(["--", "bash", "-c", script]).output().expect("it starts");
    assert_eq!(text(&output.stdout), "all\n100\n", "{}", text(&output.stderr));
}

/// Processes change one directory and are killed at random moments; those that are left find it whole, and wait for no one.
#[test]
fn whoever_is_killed_leaves_the_tree_whole() {
    let hidden = Scratch::new();
    let work =
        "i=0; while :; do i=$((i+1)); echo $i > $0-$((i%5)); mv $0-$((i%5)) m$0-$((i%5)); rm -f m$0-$((i%5)); done";
    let script = format!(
        "mkdir k; cd k; for round in 1 2 3 4 5; do pids=; for v in a b c d; do sh -c '{work}' $v & pids=\"$pids $!\"; done
        sleep 0.0$round; kill -9 $pids; wait $pids 2> /dev/null; echo probe > probe; ls > names; rm probe names; done
        rm -f *; cd ..; rmdir k && echo whole"
    );
    let output = run_in_tree(&hidden.0, SMALL, "bash").args(["-c", &script]).output().expect("it starts");
    assert_eq!(text(&output.stdout), "whole\n", "{}", text(&output.stderr));
}

/// The first child of a process, once it has one.
fn child_of(process: u32) -> i32 {
    loop {
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).expect("Linux");
        if let Some(child) = children.split_whitespace().next() {
            return child.parse().expect("a number");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The whole tree of processes is killed from outside, one by one: the program ends, and nothing is left of it.
#[test]
fn nothing_is_left_however_it_ends() {
    let mut numbers = Numbers(7);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let hidden = Scratch::new();
        let mut command = run_in_tree(&hidden.0, SMALL, "sh");
        command.args(["-c", "while :; do echo x > f; rm f; done"]).stderr(Stdio::null());
        let mut running = command.spawn().expect("it starts");
        let child = child_of(running.id());
        thread::sleep(Duration::from_millis(50 + numbers.below(100)));
        kill(Pid::from_raw(child), signal).expect("it runs");
        let status = running.wait().expect("ours");
        assert_eq!((status.code(), status.signal()), (Some(128 + signal as i32), None));
    }
    // A signal to us is one to the program.
    let hidden = Scratch::new();
    let mut running = run_in_tree(&hidden.0, SMALL, "sleep").arg("100").spawn().expect("it starts");
    child_of(running.id());
    kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGTERM).expect("it runs");
    // It would end by itself with 0.
    assert_eq!(running.wait().expect("ours").code(), Some(128 + Signal::SIGTERM as i32));
}
