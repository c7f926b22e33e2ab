//! Files of a tree of `scalefs run` that programs map for all to see, and pipes and sockets that have names there: what programs see
//! is what they see on tmpfs. And programs that do what few do.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

mod odd_calls;
mod odd_programs;
mod support;

use std::path::Path;
use std::process::{Command, Output};

use shared_instance::{Mapped, Mappings, Seats};
use support::{Scratch, compiled, run_in_tree};

const SMALL: &[&str] = &["--size", "32M"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a script of bash prints, in a tree and on tmpfs, and with a fault if one is named.
fn said(script: &str, fault: Option<&str>) -> [String; 2] {
    let (hidden, tmpfs) = (Scratch::new(), Scratch::below(Path::new("/dev/shm")));
    let mut ours = run_in_tree(&hidden.0, SMALL, "timeout");
    let mut theirs = Command::new("timeout");
    theirs.current_dir(&tmpfs.0);
    if let Some(fault) = fault {
        ours.env("COMMUTANT_PLANTED_FAULT", fault);
    }
    let shown = |output: Output, place: &Path| {
        let all = format!("{}{}{:?}", text(&output.stdout), text(&output.stderr), output.status.code());
        all.replace(place.to_str().expect("plain letters"), "TOP")
    };
    let run = |mut command: Command| command.args(["60", "bash", "-c", script]).env("LC_ALL", "C").output();
    [(run(ours), &hidden.0), (run(theirs), &tmpfs.0)]
        .map(|(output, place)| shown(output.expect("there is a shell"), place))
}

fn same_as_on_tmpfs(script: &str) {
    let [ours, theirs] = said(script, None);
    assert_eq!(ours, theirs, "left is the tree");
}

/// A program of Python that maps files.
fn python(program: &str) -> String {
    let before = "import mmap, os, signal, subprocess, sys, time\nP = mmap.PAGESIZE\ndef say(*words): print(*words, flush=True)\n";
    format!("python3 -c '{before}{program}'")
}

/// Stores are seen by calls, by other processes, and by those that have mapped the file themselves; and stay.
const SEEN: &str = r#"
f = os.open("f", os.O_CREAT | os.O_RDWR); os.write(f, b"one " * 3000)
m = mmap.mmap(f, 12000); say(m[:8]); m[4:7] = b"two"; say(os.pread(f, 12, 0)); os.pwrite(f, b"six", 8); say(m[:12])
if os.fork() == 0:
    m[12:16] = b"ten "; n = mmap.mmap(os.open("f", os.O_RDWR), 12000); say(n[:16]); n[16:20] = b"all "; os._exit(0)
os.wait(); say(m[:24])
other = "import mmap, os; f = os.open(\"f\", os.O_RDWR); m = mmap.mmap(f, 0); print(len(m), m[16:20]); m[20:24] = b\"end \""
say(subprocess.run(["python3", "-c", other], capture_output=True, text=True).stdout); say(m[:28], m.flush())
r = mmap.mmap(f, 4096, access=mmap.ACCESS_READ, offset=P); m[P:P + 4] = b"page"; say(r[:8]); say(m.find(b"page"))
os.unlink("f"); os.close(f); m[0:4] = b"kept"; say(m[:8], r[:4]); m.close(); r.close()
g = os.open("g", os.O_CREAT | os.O_RDWR); os.ftruncate(g, 5 * P); m = mmap.mmap(g, 5 * P); m[3 * P] = 7; say(os.pread(g, 2, 3 * P), os.fstat(g).st_size)
m.resize(9 * P); m[8 * P] = 8; say(len(m), m[3 * P], os.pread(g, 1, 8 * P), os.fstat(g).st_size)
try: mmap.mmap(os.open("g", os.O_RDONLY), P)
except PermissionError as error: say(error.errno)
try: mmap.mmap(g, 3, offset=P * 100)
except ValueError as error: say(error)
s = os.open("s", os.O_CREAT | os.O_RDWR); os.write(s, b"short"); m = mmap.mmap(s, 5); m[0:2] = b"SH"; say(open("s").read())
"#;

/// What was cut off raises SIGBUS, in the process that cuts and in others; what has come since is there.
const CUT: &str = r#"
f = os.open("f", os.O_CREAT | os.O_RDWR); os.ftruncate(f, 4 * P)
def child(run):
    if os.fork() == 0:
        run(); os._exit(0)
    return os.WTERMSIG(os.wait()[1])
def cuts_itself():
    m = mmap.mmap(f, 4 * P); m[3 * P] = 1; os.ftruncate(f, P); m[0] = 5; say("first page", m[0]); m[P]
say(child(cuts_itself)); os.ftruncate(f, 4 * P)
r, w = os.pipe(); a, b = os.pipe()
def is_cut_by_another():
    m = mmap.mmap(f, 4 * P); m[3 * P] = 1; os.write(w, b"x"); os.read(a, 1); say("still", m[0]); m[2 * P] = 1; say("never")
if os.fork() == 0:
    is_cut_by_another(); os._exit(0)
os.read(r, 1); os.ftruncate(f, P); os.write(b, b"x"); say(os.WTERMSIG(os.wait()[1]))
def grows():
    m = mmap.mmap(f, P); os.ftruncate(f, 6 * P); n = mmap.mmap(f, 6 * P); os.ftruncate(f, 2 * P); os.ftruncate(f, 6 * P)
    say("zero", n[4 * P]); n[5 * P] = 9; say(os.pread(f, 1, 5 * P)); os.ftruncate(f, P); os.pwrite(f, b"z" * P, 3 * P); say(n[3 * P], n[2 * P])
say(child(grows))
def inherits():
    m = mmap.mmap(f, 4 * P); m[P] = 1
    if os.fork() == 0:
        os.write(w, b"x"); os.read(a, 1); say("child", m[0]); m[P] = 2; os._exit(0)
    os.read(r, 1); os.ftruncate(f, 5); os.write(b, b"x"); say(os.WTERMSIG(os.wait()[1]))
say(child(inherits))
# Another file has the pages soon: nothing of it is seen, and nothing stored to it.
g = os.open("g", os.O_CREAT | os.O_RDWR); os.ftruncate(g, 64 * P); m = mmap.mmap(g, 64 * P)
for page in range(64): m[page * P] = 1
def others(): os.ftruncate(g, 0); h = os.open("h", os.O_CREAT | os.O_RDWR); os.write(h, b"secret" * 65536); os.fsync(h)
for page in range(8): child(others)
seen = 0
for page in range(64):
    if os.fork() == 0:
        os._exit(m[page * P] != 0)
    seen += os.wait()[1] != signal.SIGBUS
say(seen)
"#;

/// Who has mapped a file begins another program, while it is cut again and again.
const BEGUN: &str = r#"
f = os.open("f", os.O_CREAT | os.O_RDWR); os.ftruncate(f, 4 * P); r, w = os.pipe(); ended = set()
for round in range(60):
    child = os.fork()
    if child == 0:
        m = mmap.mmap(f, 4 * P); m[3 * P] = 1; os.write(w, b"x"); os.execv("/bin/true", ["true"])
    os.read(r, 1); found = 0
    while found == 0:
        os.ftruncate(f, P); os.ftruncate(f, 4 * P); found, status = os.waitpid(child, os.WNOHANG)
    ended.add(status)
say(ended)
"#;

/// Who waits for all signals, by a call or by a number, does not hear of those that ask for what was cut off.
const WAITED: &str = r#"
import ctypes
libc = ctypes.CDLL(None); f = os.open("f", os.O_CREAT | os.O_RDWR); os.ftruncate(f, 4 * P); r, w = os.pipe()
def by_call(): return int(signal.sigwait(signal.valid_signals()))
def by_number(): return os.read(libc.signalfd(-1, (ctypes.c_ulong * 16)(*[2**64 - 1] * 16), 0), 128)[0]
for waits in by_call, by_number:
    child = os.fork()
    if child == 0:
        m = mmap.mmap(f, 4 * P); m[3 * P] = 1; signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        os.write(w, b"x"); say(waits()); os._exit(0)
    os.read(r, 1); time.sleep(0.2); os.ftruncate(f, P); os.ftruncate(f, 4 * P)
    os.kill(child, signal.SIGUSR1); say(os.waitpid(child, 0)[1])
"#;

/// Addresses of sockets, as long as they are, whole and cut, and without a zero byte at the end.
const ADDRESSES: &str = r#"
import ctypes, socket
libc = ctypes.CDLL(None)
def told(asks, s, room):
    bytes, length = ctypes.create_string_buffer(b"-" * 200), ctypes.c_int(room)
    say(asks(s.fileno(), bytes, ctypes.byref(length)), length.value, bytes.raw[:120])
s = socket.socket(socket.AF_UNIX); s.bind("n" * 70); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect("./" + "n" * 70)
for room in [110, 200, 30, 72, 3, 2, 0, -1]: told(libc.getsockname, s, room); told(libc.getpeername, c, room)
told(libc.getsockname, c, 110)
say(libc.getsockname(s.fileno(), 8, ctypes.byref(ctypes.c_int(9))), libc.getsockname(s.fileno(), None, ctypes.byref(ctypes.c_int(0))), libc.getpeername(s.fileno(), None, None))
t = socket.socket(socket.AF_UNIX); say(libc.bind(t.fileno(), ctypes.create_string_buffer(b"\1\0shorter"), 7)); told(libc.getsockname, t, 110)
i = socket.socket(); i.bind(("127.0.0.1", 0)); say(i.getsockname()[0]); say(sorted(len(n) for n in os.listdir(".")))
"#;

/// Parts of mappings are unmapped, protected, mapped over and moved.
const PARTS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define P 4096
static sigjmp_buf back;
static void handler(int signal) { siglongjmp(back, signal); }
static int ask(volatile char *at, int value) {
    int signal = sigsetjmp(back, 1);
    if (signal) return -signal;
    if (value) *at = value;
    return *at;
}
int main(void) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGBUS, &action, 0);
    sigaction(SIGSEGV, &action, 0);
    int file = open("f", O_CREAT | O_RDWR, 0644), other = open("o", O_CREAT | O_RDWR, 0644), reads = open("f", O_RDONLY);
    ftruncate(file, 16 * P);
    ftruncate(other, 16 * P);
    char *m = mmap(0, 16 * P, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int n = 0; n < 16; n++) m[n * P] = n + 1;
    printf("%d", munmap(m + 3 * P, 2 * P));
    for (int n = 0; n < 16; n += 1) printf(" %d", ask(m + n * P, 0));
    printf("\n%d", mprotect(m + 6 * P, 2 * P, PROT_READ));
    for (int n = 5; n < 9; n += 1) printf(" %d", ask(m + n * P, 50 + n));
    char *over = mmap(m + 10 * P, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other, P);
    printf("\n%d %d %d %d\n", over == m + 10 * P, ask(m + 10 * P, 77), ask(m + 12 * P, 0), ask(m + 9 * P, 0));
    char *plain = mmap(m + 13 * P, P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("%d %d\n", ask(plain, 0), ask(m + 14 * P, 0));
    ftruncate(file, 2 * P);
    for (int n = 0; n < 16; n++) printf(" %d", ask(m + n * P, 0));
    ftruncate(file, 16 * P);
    char letter = 0;
    pread(other, &letter, 1, P);
    printf("\n%d %d\n", letter, ask(m + 14 * P, 31));
    char *moved = mremap(m + 14 * P, 2 * P, 9 * P, MREMAP_MAYMOVE);
    printf("%d %d %d\n", moved != MAP_FAILED, ask(moved, 0), ask(moved + 8 * P, 0));
    char *shorter = mremap(m, 3 * P, P, 0);
    printf("%d %d %d\n", shorter == m, ask(m, 0), ask(m + P, 0));
    char *seen = mmap(0, P, PROT_READ, MAP_SHARED, reads, 0);
    printf("%d %d", ask(seen, 0), mprotect(seen, P, PROT_READ | PROT_WRITE));
    printf(" %d %d\n", errno == EACCES, ask(seen, 3));
    errno = 0;
    printf("%d", mmap(0, P, PROT_WRITE, MAP_SHARED, reads, 0) == MAP_FAILED);
    printf(" %d", errno == EACCES);
    printf(" %d", mmap(0, P, PROT_READ, MAP_SHARED, file, 100) == MAP_FAILED && errno == EINVAL);
    printf(" %d\n", mmap(0, P, PROT_READ, MAP_SHARED, open(".", O_RDONLY), 0) == MAP_FAILED && errno == ENODEV);
    /* What a call is given can have come since it was mapped, and the kernel reads what is there. */
    int grown = open("g", O_CREAT | O_RDWR, 0644), pipes[2];
    char *late = mmap(0, 2 * P, PROT_READ | PROT_WRITE, MAP_SHARED, grown, 0);
    ftruncate(grown, 2 * P);
    printf("%zd %d\n", pread(file, late + P, 1, 0), late[P]);
    pipe(pipes);
    memcpy(m, "words", 5);
    write(pipes[1], m, 5);
    char words[6] = "";
    printf("%zd %s %zd\n", read(pipes[0], words, 5), words, write(grown, m, 5));
    if (fork() == 0) { m[0] = 'W'; munmap(m, P); _exit(ask(late, 5) != 5); }
    int status;
    wait(&status);
    printf("%c %d %d\n", m[0], status, late[0]);
}
"#;

const SQLITE: &str = r#"
command -v sqlite3 > /dev/null || exit 0
sqlite3 base "pragma journal_mode=wal; create table t (n integer primary key, x)"
for who in 1 2 3; do (for n in $(seq 12); do sqlite3 -cmd ".timeout 20000" base "begin immediate; insert into t (x) select hex(randomblob(3000)) from t limit 3; insert into t (x) values ($n); commit"; done) & done; wait
sqlite3 base "select count(*) > 36, sum(typeof(x) = 'integer') from t; pragma integrity_check; pragma wal_checkpoint(truncate)"; ls
sqlite3 base "pragma mmap_size=1000000; select count(*) > 36 from t; pragma journal_mode=delete"; ls
"#;

/// Pipes with names: who opens one waits for the other end, or does not; they poll and end as pipes do.
const PIPES: &str = r#"
import select, stat, threading
os.mkfifo("p"); os.mkfifo("closed", 0o200); say(stat.S_ISFIFO(os.stat("p").st_mode), oct(os.stat("p").st_mode & 0o777))
try: os.open("p", os.O_WRONLY | os.O_NONBLOCK)
except OSError as error: say(error.errno)
r = os.open("p", os.O_RDONLY | os.O_NONBLOCK); w = os.open("./p", os.O_WRONLY); os.write(w, b"words"); say(os.read(r, 9))
poll = select.poll(); poll.register(r, select.POLLIN); say(poll.poll(0)); os.write(w, b"x"); say(len(poll.poll(1000)), os.read(r, 1))
os.close(w); say(os.read(r, 1)); os.close(r)
said = subprocess.Popen(["sh", "-c", "cat p; echo end"], stdout=subprocess.PIPE, text=True)
with open("p", "w") as out: out.write("to cat\n")
say(said.communicate()[0]); os.rename("p", "q"); os.link("q", "l")
if os.fork() == 0:
    os.write(os.open("l", os.O_WRONLY), b"by another name"); os._exit(0)
r = os.open("q", os.O_RDONLY); say(os.read(r, 99)); os.wait(); os.close(r)
started = []
def late(): started.append(1); time.sleep(0.05); open("q", "w").write("late")
other = threading.Thread(target=late); other.start(); say(open("q").read(), started); other.join()
os.unlink("q"); os.unlink("l")
try: os.open("q", os.O_RDONLY)
except OSError as error: say(error.errno)
os.mkfifo("q"); r = os.open("q", os.O_RDONLY | os.O_NONBLOCK); say(os.read(r, 1), os.fstat(r).st_size, sorted(os.listdir(".")))
"#;

/// Sockets with names, by streams and by messages.
const SOCKETS: &str = r#"
import socket, stat
U = socket.AF_UNIX; s = socket.socket(U); s.bind("s"); s.listen(1); say(s.getsockname(), stat.S_ISSOCK(os.stat("s").st_mode))
if os.fork() == 0:
    c = socket.socket(U); c.connect(os.path.abspath("s")); c.send(b"words"); say(c.recv(9), c.getpeername().endswith("/s") or c.getpeername()); os._exit(0)
a, _ = s.accept(); say(a.recv(9)); a.send(b"back"); os.wait()
def tried(call, *words):
    try: call(*words); say("done")
    except OSError as error: say(error.errno)
tried(socket.socket(U).bind, "s"); tried(socket.socket(U).connect, "none"); open("f", "w").close(); tried(socket.socket(U).connect, "f")
tried(socket.socket(U).bind, "none/s"); tried(s.bind, "again"); say(os.path.exists("again")); os.mknod("m", 0o140600); tried(socket.socket(U).connect, "m")
d = socket.socket(U, socket.SOCK_DGRAM); d.bind(os.path.abspath("d")); e = socket.socket(U, socket.SOCK_DGRAM); say(e.sendto(b"letter", "d"), d.recv(99))
os.rename("d", "moved"); say(e.sendto(b"again", "moved"), d.recv(99)); d.close(); tried(e.sendto, b"x", "moved")
s.close(); tried(socket.socket(U).connect, "s"); os.unlink("s"); n = socket.socket(U); n.bind("s"); n.listen(1); c = socket.socket(U); c.connect("s"); say("new")
tried(socket.socket(U).bind, "x" * 107); tried(os.open, "s", os.O_RDWR); h = socket.socket(U); h.bind("\0hidden-%d" % os.getpid()); say(len(h.getsockname()) > 8)
p, q = socket.socketpair(); p.send(b"pair"); say(q.recv(9)); say(sorted(os.listdir(".")))
"#;

/// What the status of an open pipe says, under whatever name and in whatever program.
const OPEN_PIPES: &str = r#"
import stat
os.mkfifo("p", 0o640); f = os.open("p", os.O_RDWR); named = os.stat("p")
def words(status): return [getattr(status, "st_" + word) for word in ("mode", "ino", "dev", "nlink", "uid", "gid", "size")]
def is_it(): return words(os.fstat(f)) == words(named), os.stat(f).st_ino == named.st_ino, oct(os.fstat(f).st_mode)
say(is_it(), os.readlink("/proc/self/fd/%d" % f).startswith(os.getcwd() + "/"))
os.rename("p", "q"); say(is_it()); os.chmod("q", 0o600); say(is_it())
child = "import os; print(os.fstat(0).st_ino, os.fstat(0).st_nlink)"; both = [f, os.dup(f)]
said = subprocess.run(["python3", "-c", child], stdin=both[1], capture_output=True, text=True).stdout.split(); say(said[0] == str(named.st_ino), said[1])
os.unlink("q"); say(os.fstat(f).st_nlink, os.fstat(both[1]).st_ino == named.st_ino)
r, w = os.pipe(); say(stat.S_ISFIFO(os.fstat(r).st_mode), os.fstat(r).st_dev != named.st_dev, os.readlink("/proc/self/fd/%d" % r)[:5])
for n in range(200): os.mkfifo("p%d" % n); os.close(os.open("p%d" % n, os.O_RDWR))
g = os.open("p7", os.O_RDWR); say(os.fstat(g).st_ino == os.stat("p7").st_ino)
"#;

#[test]
fn pipes_have_names() {
    same_as_on_tmpfs(&python(PIPES));
}

#[test]
fn an_open_pipe_has_the_status_of_its_name() {
    same_as_on_tmpfs(&python(OPEN_PIPES));
}

/// A hole that is mapped takes a page once it is asked for.
#[test]
fn holes_that_are_mapped_take_no_room() {
    let program = r#"
f = os.open("f", os.O_CREAT | os.O_RDWR); os.ftruncate(f, 3000 * P); os.pwrite(f, b"x", 7 * P); os.pwrite(f, b"y", 2900 * P)
free = lambda: os.statvfs(".").f_bfree
before = free(); m = mmap.mmap(f, 3000 * P); say(before - free(), m[7 * P], m[2900 * P], before - free())
m[9 * P] = 5; say(os.pread(f, 1, 9 * P), before - free())
n = mmap.mmap(f, 10 * P); n.resize(3000 * P); say(before - free(), n[9 * P], n[2900 * P])"#;
    assert_eq!(said(&python(program), None)[0], "0 120 121 0\nb'\\x05' 1\n1 5 121\nSome(0)");
}

/// A descriptor that only stands for a file, one that is not open for reading, and one of a directory.
#[test]
fn what_cannot_be_mapped_says_why() {
    let program = r#"
import ctypes
open("f", "wb").write(b"x" * 5000); libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_long
for flags in 1, 2:
    for file in os.open("f", os.O_PATH), os.open("f", os.O_WRONLY), os.open(".", 0):
        say(libc.mmap(None, ctypes.c_size_t(4096), 1, flags, file, ctypes.c_long(0)), ctypes.get_errno())"#;
    same_as_on_tmpfs(&python(program));
}

/// A child of `vfork` stores to what its parent has mapped, where its parent has not yet: the file has got that since.
const BORROWED: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int file = open("f", O_CREAT | O_RDWR, 0644), status;
    ftruncate(file, 4096);
    volatile char *pages = mmap(0, 40960, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ftruncate(file, 40960);
    if (vfork() == 0) { pages[5 * 4096] = 7; pages[9 * 4096] = 8; _exit(pages[5 * 4096]); }
    wait(&status);
    printf("%d %d %d\n", status, pages[5 * 4096], pages[9 * 4096]);
}
"#;

/// Another process cuts what a child of `vfork` has in its parent's memory, which waits for it.
const BORROWED_AND_CUT: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int file = open("f", O_CREAT | O_RDWR, 0644), ready[2], done[2], status;
    char letter;
    ftruncate(file, 16384);
    volatile char *pages = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pages[3 * 4096] = 5;
    if (pipe(ready) || pipe(done)) return 1;
    if (fork() == 0) { read(ready[0], &letter, 1); ftruncate(file, 4096); write(done[1], "x", 1); _exit(0); }
    pid_t child = vfork();
    if (child == 0) { write(ready[1], "x", 1); while (read(done[0], &letter, 1) != 1); _exit(pages[3 * 4096]); }
    waitpid(child, &status, 0);
    printf("%d %d\n", WTERMSIG(status), WEXITSTATUS(status));
}
"#;

#[test]
fn what_was_cut_off_is_gone_from_borrowed_memory() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, BORROWED_AND_CUT, &[]) else { return };
    let program = program.to_str().expect("plain letters");
    same_as_on_tmpfs(program);
    #[cfg(feature = "planted-faults")]
    {
        let [ours, theirs] = said(program, Some("shim: who borrows memory is not asked"));
        assert_ne!(ours, theirs, "missed");
    }
}

/// The same of a child whose parent was killed: it is alone in that memory.
const BORROWED_FROM_THE_DEAD: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static int told[2];
static void handler(int signal) { write(told[1], "b", 1); _exit(0); }
int main(void) {
    int file = open("f", O_CREAT | O_RDWR, 0644), ready[2], done[2];
    char letter;
    ftruncate(file, 16384);
    if (pipe(ready) || pipe(done) || pipe(told)) return 1;
    pid_t parent = fork();
    if (parent == 0) {
        volatile char *pages = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        pages[3 * 4096] = 'a';
        signal(SIGBUS, handler);
        if (vfork() == 0) {
            write(ready[1], "x", 1);
            while (read(done[0], &letter, 1) != 1);
            letter = pages[3 * 4096];
            write(told[1], &letter, 1);
            _exit(0);
        }
    }
    read(ready[0], &letter, 1);
    kill(parent, SIGKILL);
    waitpid(parent, 0, 0);
    ftruncate(file, 4096);
    write(done[1], "x", 1);
    read(told[0], &letter, 1);
    printf("%c\n", letter);
}
"#;

#[test]
fn what_was_cut_off_is_gone_from_the_memory_of_the_dead() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, BORROWED_FROM_THE_DEAD, &[]) else { return };
    let program = program.to_str().expect("plain letters");
    same_as_on_tmpfs(program);
    #[cfg(feature = "planted-faults")]
    {
        let [ours, theirs] = said(program, Some("shim: who borrows memory is not asked"));
        assert_ne!(ours, theirs, "missed");
    }
}

#[test]
fn a_child_in_its_parents_memory_has_what_that_has_mapped() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, BORROWED, &[]) else { return };
    let program = program.to_str().expect("plain letters");
    same_as_on_tmpfs(program);
    #[cfg(feature = "planted-faults")]
    {
        let [ours, theirs] = said(program, Some("shim: a child does not know what its parent has mapped"));
        assert_ne!(ours, theirs, "missed");
    }
}

#[test]
fn sockets_have_names() {
    same_as_on_tmpfs(&python(SOCKETS));
}

/// A process that becomes another user is one in the tree, too, and so are the programs that it starts.
#[test]
fn rights_are_those_of_who_acts() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not tested: it takes root");
        return;
    }
    let program = r#"
os.chmod(".", 0o755); open("mine", "w").close(); os.chmod("mine", 0o600); os.mkdir("all"); os.chmod("all", 0o777)
def tried(call, *words):
    try: return call(*words)
    except OSError as error: return error.errno
def status(): return oct(os.umask(0o22)), [(n, os.stat(n).st_uid, os.stat(n).st_gid) for n in sorted(os.listdir("all"), key=str) for n in ["all/" + n]]
def user():
    os.setgroups([7]); os.setgid(5); os.setuid(1000); open("all/theirs", "w").close()
    say(tried(os.open, "mine", 0), tried(os.mkdir, "d"), tried(os.chown, "all/theirs", 0, 0), tried(os.chmod, "mine", 0o777), tried(os.chown, "all/theirs", -1, 7))
    say(subprocess.run(["sh", "-c", "cat mine 2>&1; touch all/program; id -u"], capture_output=True, text=True).stdout)
if os.fork() == 0:
    user(); os._exit(0)
os.wait(); say(status())
os.seteuid(1000); say(tried(os.open, "mine", 0)); os.seteuid(0); f = tried(os.open, "mine", 0); say(f > 2)
if os.fork() == 0:
    os.setresuid(1000, 1000, 0); say(tried(os.unlink, "mine"), tried(os.utime, "mine", (1, 1))); os._exit(0)
os.wait(); say(sorted(os.listdir(".")))
"#;
    same_as_on_tmpfs(&python(program));
}

#[test]
fn what_is_stored_is_seen_by_all() {
    same_as_on_tmpfs(&python(SEEN));
}

#[test]
fn what_was_cut_off_is_gone() {
    same_as_on_tmpfs(&python(CUT));
}

#[test]
fn who_begins_another_program_is_not_asked_for_what_it_had_mapped() {
    same_as_on_tmpfs(&python(BEGUN));
}

/// `mremap` of a length of 0 asks for the same pages at further addresses, of which nothing would tell who cuts the file.
#[test]
fn the_same_pages_are_not_mapped_once_more() {
    let program = r#"
import ctypes
libc = ctypes.CDLL(None, use_errno=True); libc.mremap.restype = ctypes.c_long
f = os.open("f", os.O_CREAT | os.O_RDWR); os.ftruncate(f, 4 * P); m = mmap.mmap(f, 4 * P)
at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)) + P)
say(libc.mremap(at, ctypes.c_size_t(0), ctypes.c_size_t(2 * P), 1), ctypes.get_errno(), m[P])"#;
    let [ours, theirs] = said(&python(program), None);
    assert_eq!(ours, "-1 22 0\nSome(0)");
    assert_ne!(ours, theirs, "tmpfs has it");
}

/// A parent that forks before it has taken away what was cut off: the child has it, too, and is asked as well.
#[test]
fn a_child_is_asked_for_what_its_parent_has_not_given_back() {
    let (seats, all) = (zeros::<Seats>(), zeros::<Mappings>());
    let [parent, child] = [0, 1].map(|_| seats.take(None).expect("there is room").1);
    let mapped = Mapped { file: 5, first: 2, address: 4096, pages: 9, rights: 3, may_write: true };
    for _ in 0..2 {
        all.make(parent).expect("there is room").set(mapped);
    }
    all.of(parent).next().expect("one of two").ask_to_take_away(4);
    assert!(all.copy(parent, child));
    let asked: Vec<_> = all.of(child).map(|mapping| (mapping.mapped(), mapping.asked())).collect();
    assert_eq!(asked, [(Some(mapped), Some(4)), (Some(mapped), None)]);
}

/// An entry that is given up and made again is not what another thread has found pages for, and who has seen the end of a process gives
/// up what was its alone.
#[test]
fn an_entry_that_is_made_again_is_another_one() {
    let (seats, all) = (zeros::<Seats>(), zeros::<Mappings>());
    let [dead, other] = [0, 1].map(|_| seats.take(None).expect("there is room").1);
    let mapped = Mapped { file: 5, first: 2, address: 4096, pages: 9, rights: 3, may_write: true };
    let entry = all.make(dead).expect("there is room");
    entry.set(mapped);
    let cuts = entry.cuts();
    entry.clear_of(dead);
    let again = all.make(other).expect("there is room");
    again.set(mapped);
    assert!(std::ptr::eq(entry, again), "the first that is free");
    assert_ne!(entry.cuts(), cuts);
    // Another one has seen the same end.
    entry.clear_of(dead);
    assert_eq!((entry.owner(), entry.mapped()), (Some(other), Some(mapped)));
    all.release_unless(|owner| owner == other);
    assert_eq!(all.of(other).count(), 1);
    all.release_unless(|_| false);
    assert_eq!((all.of(other).count(), entry.mapped()), (0, None));
}

/// A thread asks for a page, and before it is put in its place another one unmaps the file, cuts it, and maps it again; a further file has
/// the page by then.
#[cfg(feature = "planted-faults")]
const MAPPED_AGAIN: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile char *at;
static int file, spare;
static void *change(void *nothing) {
    static char secret[1 << 16];
    memset(secret, 's', sizeof secret);
    usleep(100000);
    munmap((void *)at, 4096);
    ftruncate(file, 0);
    int other = open("other", O_CREAT | O_RDWR, 0644);
    while (write(other, secret, sizeof secret) > 0);
    /* Room for a page of its own. */
    ftruncate(spare, 0);
    ftruncate(file, 4096);
    mmap((void *)at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    return 0;
}
int main(void) {
    pthread_t thread;
    file = open("file", O_CREAT | O_RDWR, 0644);
    spare = open("spare", O_CREAT | O_RDWR, 0644);
    for (int page = 0; page < 64; page++) pwrite(spare, "spare", 5, 4096 * page);
    at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pwrite(file, "words", 5, 0);
    pthread_create(&thread, 0, change, 0);
    char first = *at;
    pthread_join(thread, 0);
    printf("%d %d\n", first == 's', *at == 's');
}
"#;

#[cfg(feature = "planted-faults")]
#[test]
fn a_page_is_not_put_into_a_mapping_that_came_later() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, MAPPED_AGAIN, &["-pthread"]) else { return };
    let printed = |fault: &str| {
        let hidden = Scratch::new();
        let mut command = run_in_tree(&hidden.0, &["--size", "2M"], "timeout");
        let output = command.arg("60").arg(&program).env("COMMUTANT_PLANTED_FAULT", fault).output();
        text(&output.expect("it starts").stdout)
    };
    assert_eq!(printed("shim: pages are put slowly"), "0 0\n");
    assert_ne!(printed("shim: pages are put for what was mapped before"), "0 0\n", "missed");
}

/// A table as it lies in new memory.
#[allow(unsafe_code, reason = "tables are never made as values")]
fn zeros<T>() -> Box<T> {
    // SAFETY: called for tables of atomic numbers alone, of which zeros are values.
    unsafe { Box::from_raw(std::alloc::alloc_zeroed(std::alloc::Layout::new::<T>()).cast()) }
}

#[test]
fn who_waits_for_all_signals_does_not_hear_of_cuts() {
    same_as_on_tmpfs(&python(WAITED));
}

#[test]
fn addresses_of_sockets_are_those_that_were_asked_for() {
    same_as_on_tmpfs(&python(ADDRESSES));
}

#[test]
fn parts_of_mappings_go_and_move() {
    let scratch = Scratch::new();
    for options in [&["-static"][..], &["-pthread"]] {
        let Some(program) = compiled(&scratch.0, PARTS, options) else { continue };
        same_as_on_tmpfs(program.to_str().expect("plain letters"));
    }
}

#[test]
fn data_bases_with_an_index_of_their_journal_in_memory() {
    same_as_on_tmpfs(SQLITE);
}

/// A tree is whole while files are mapped, and after who had mapped them was killed.
#[test]
fn who_is_killed_gives_up_what_it_had_mapped() {
    let program = r#"
f = os.open("f", os.O_CREAT | os.O_RDWR); os.ftruncate(f, 2000 * P); m = mmap.mmap(f, 2000 * P)
for page in range(2000): m[page * P] = 1
os.unlink("f"); os.close(f); open("ready", "w").close(); time.sleep(100)"#;
    // Two of them have no room side by side.
    let script = format!(
        "for round in 1 2 3; do {} & while ! test -e ready; do sleep 0.01; done; rm ready; kill -9 $!; wait $! 2> /dev/null; sleep 0.2; done
        head -c 12000000 /dev/zero > g; stat -c %s g",
        python(program)
    );
    let hidden = Scratch::new();
    let output = run_in_tree(&hidden.0, &["--size", "16M"], "bash").args(["-c", &script]).output().expect("it starts");
    assert_eq!(text(&output.stdout), "12000000\n", "{}", text(&output.stderr));
}

#[cfg(feature = "planted-faults")]
#[test]
fn each_planted_fault_of_mappings_is_found() {
    let faults = [
        ("shim: what was cut off stays mapped", CUT),
        ("shim: what others have mapped is not asked back", CUT),
        ("shim: no one asks a child for what was cut off", CUT),
        ("shim: what a file has got since it was mapped is not there", CUT),
        ("shim: an open pipe has the status of what stands for it", OPEN_PIPES),
    ];
    let missed: Vec<&str> = faults
        .into_iter()
        .filter(|(fault, program)| {
            let [ours, theirs] = said(&python(program), Some(fault));
            ours == theirs
        })
        .map(|(fault, _)| fault)
        .collect();
    assert!(missed.is_empty(), "missed: {missed:#?}");
}
