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
    let (hidden, tmpfs) = (Scratch::new(), Scratch::below(Path::new("/dev/shm")));
    let mut there = Command::new("sh");
    there.current_dir(&tmpfs.0);
    let mut said = Vec::new();
    for (mut command, place) in [(run_in_tree(&hidden.0, SMALL, "sh"), &hidden.0), (there, &tmpfs.0)] {
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
        python3 -c 'import os, time
child = os.fork()
if child == 0:
    g = open("g", "w"); g.write("x" * 9000000); g.flush(); os.unlink("g"); open("ready", "w").close()
else:
    open("child", "w").write(str(child))
time.sleep(100)' & pids="$pids $!"
        while ! test -e ready -a -s child; do sleep 0.01; done; kill -9 $(cat child); sleep 0.3
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
    let started = Instant::now();
    kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGTERM).expect("it runs");
    assert_eq!(running.wait().expect("ours").code(), Some(128 + Signal::SIGTERM as i32));
    assert!(started.elapsed() < Duration::from_secs(10));
}
