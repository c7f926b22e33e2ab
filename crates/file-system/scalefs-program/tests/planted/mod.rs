//! Faults that are planted in the shim and the supervisor, each of which a script must show: what it prints in a tree is not what it
//! prints on tmpfs, or it does not end. `cargo test -p scalefs-program --features planted-faults --test running planted`.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::support::{INTERRUPTED, Scratch, compiled, run_in_tree};

/// So long a script may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a script prints; nothing if it does not end.
fn said(mut command: Command, place: &Path, script: &str) -> Option<String> {
    command.args(["-c", script]).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.process_group(0).spawn().expect("there is a shell");
    let started = Instant::now();
    while running.try_wait().expect("ours").is_none() {
        if started.elapsed() > PATIENCE {
            // Who waits is not ended by the end of the supervisor.
            let _ = killpg(Pid::from_raw(running.id().cast_signed()), Signal::SIGKILL);
            let _ = running.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = running.wait_with_output().expect("ours");
    let both = [output.stdout, output.stderr].concat();
    let code = output.status.code();
    Some(format!("{}{code:?}", String::from_utf8_lossy(&both)).replace(place.to_str().expect("plain letters"), "TOP"))
}

/// Whether a script prints in a tree what it prints on tmpfs, with a fault.
fn is_same(fault: &str, script: &str) -> bool {
    let (hidden, tmpfs) = (Scratch::new(), Scratch::below(Path::new("/dev/shm")));
    let mut ours = run_in_tree(&hidden.0, &["--size", "2M"], "bash");
    ours.env("COMMUTANT_PLANTED_FAULT", fault);
    let mut theirs = Command::new("bash");
    theirs.current_dir(&tmpfs.0);
    said(ours, &hidden.0, script) == said(theirs, &tmpfs.0, script)
}

/// Each fault, and the script that shows it.
const FAULTS: [(&str, &str); 20] = [
    (
        "shim: exec closes nothing",
        "python3 -c 'import os; n = os.open(\"f\", os.O_CREAT | os.O_RDWR); os.execlp(\"sh\", \"sh\", \"-c\", \"echo x >&%d\" % n)'; cat f",
    ),
    (
        "shim: what the kernel opens stays where it is",
        "exec 3> f; exec 3>&-; python3 -c 'import os; a = os.open(\"f\", 0); os.close(a); print(os.open(\"/dev/null\", 0))'",
    ),
    (
        "shim: placeholders are never given back",
        "ulimit -n 64; python3 -c '
import os
f = []
try:
    while True: f.append(os.open(\"f\", 66))
except OSError: [os.close(n) for n in f]
print(os.pipe())'",
    ),
    (
        "shim: a limit that falls is not looked at",
        "python3 -c '
import os, resource
f = [os.open(\"f\", 66) for n in range(100)]
[os.close(n) for n in f]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try: print([os.open(\"f\", 66) for n in range(100)][-1])
except OSError as error: print(error.errno)'",
    ),
    (
        "shim: what dup2 replaces stays",
        "python3 -c 'import os; a = os.open(\"f\", 65); n = os.open(\"/dev/null\", 1); os.dup2(n, a); print(os.fstat(a).st_rdev > 0); os.close(a); print(os.open(\"f\", 0))'",
    ),
    ("shim: no one climbs out of the tree", "cat ../../../../../../../../etc/hostname | wc -l"),
    ("shim: links that lead out end in the tree", "ln -s /etc/hostname l; cat l | wc -l"),
    (
        "shim: buffers are not looked at",
        "python3 -c 'import ctypes, os; n = os.open(\"f\", 66); os.write(n, b\"x\"); os.lseek(n, 0, 0); c = ctypes.CDLL(None, use_errno=True); print(c.read(n, ctypes.c_void_p(16), 1), ctypes.get_errno())'",
    ),
    ("shim: a lock is given to everybody", LOCKED),
    (
        "shim: a child in its parent's memory knows no numbers",
        "python3 -c 'import os, subprocess; n = os.open(\"f\", 66); os.write(n, b\"words\"); os.lseek(n, 0, 0); print(subprocess.run([\"cat\"], stdin=n, stdout=subprocess.PIPE).stdout)'",
    ),
    ("shim: a full tree is not looked through", FULL),
    ("shim: a short write is the end", ONE_WRITE),
    ("shim: what was copied to no place is passed over", COPIED_TO_NO_PLACE),
    ("shim: programs that run are written", RUNNING),
    ("shim: what is written is executed", "cp /bin/true p; exec 3>> p; ./p; echo $?; exec 3>&-; ./p; echo $?"),
    ("shim: a placeholder is an open file", CLOSED),
    (
        "shim: flags are not looked at",
        "python3 -c 'import ctypes; open(\"f\", \"w\"); c = ctypes.CDLL(None); print(c.unlinkat(-100, b\"f\", 1 << 30))'",
    ),
    ("shim: a part of a buffer is none", HALF_A_BUFFER),
    (
        "shim: who changes an open pipe changes what stands for it",
        "python3 -c 'import os; os.mkfifo(\"p\"); os.fchmod(os.open(\"p\", os.O_RDWR), 0o604); print(oct(os.stat(\"p\").st_mode))'",
    ),
    (
        "shim: messages are not looked at",
        "python3 -c 'import os, socket; a, b = socket.socketpair(); f = os.open(\"f\", 66); os.close(os.dup(f))
try: socket.send_fds(a, [b\"x\"], [f + 1])
except OSError as error: print(error.errno)'",
    ),
];

const CLOSED: &str = r#"python3 -c '
import os
f = os.open("f", 66); os.close(f)
for call in os.fstat, os.fsync, lambda f: os.write(f, b"x"):
    try: print(call(f))
    except OSError as error: print(error.errno)'"#;

const HALF_A_BUFFER: &str = r#"python3 -c '
import ctypes, os
f = os.open("f", 66); os.write(f, b"x" * 100)
c = ctypes.CDLL(None); c.mmap.restype = ctypes.c_void_p
at = c.mmap(None, 8192, 3, 34, -1, 0); c.munmap(ctypes.c_void_p(at + 4096), 4096)
os.lseek(f, 0, 0); print(c.read(f, ctypes.c_void_p(at + 4086), 100))'"#;

/// By one process, whose cores still have what it gave up.
const ONE_WRITE: &str = r#"python3 -c '
import os
for n in range(60):
    f = os.open("f", 66); print(os.write(f, b"x" * 1900000)); os.close(f); os.unlink("f")'"#;

const RUNNING: &str =
    "cp /bin/sleep p; ./p 100 & sleep 0.5; (: > p) 2> /dev/null || echo busy; kill $!; wait 2> /dev/null; rm p";

/// As on a tmpfs that is full.
const COPIED_TO_NO_PLACE: &str = r#"python3 -c '
import os
s, d = os.open("s", 66), os.open("d", 66)
os.write(s, b"x" * 90000); os.lseek(s, 0, 0)
if os.statvfs(".").f_blocks < 1000:
    f = os.open("f", 66)
    for n in 65536, 1:
        try:
            while True: os.write(f, b"f" * n)
        except OSError: pass
    try: os.copy_file_range(s, d, 90000)
    except OSError as error: pass
print(os.lseek(s, 0, 1))'"#;

const FULL: &str = "for n in 1 2 3 4 5 6; do head -c 1900000 /dev/zero > f; stat -c %s f; rm f; done";

const LOCKED: &str = r#"python3 -c '
import fcntl, os
a = os.open("f", 66)
fcntl.lockf(a, fcntl.LOCK_EX)
def ask():
    if os.fork() == 0:
        try: fcntl.lockf(a, fcntl.LOCK_EX | fcntl.LOCK_NB); print("free", flush=True)
        except OSError as error: print(error.errno, flush=True)
        os._exit(0)
    os.wait()
ask(); os.close(os.open("f", 0)); ask()'"#;

#[test]
fn each_planted_fault_is_found() {
    let (mut missed, mut seen) = (Vec::new(), Vec::new());
    for (fault, script) in FAULTS {
        assert!(is_same("", script), "{fault}: without it {script} prints something else, too");
        if is_same(fault, script) { missed.push(fault) } else { seen.push(fault) }
    }
    println!("found: {seen:#?}");
    assert!(missed.is_empty(), "missed: {missed:#?}");
}

#[test]
fn a_handler_in_the_middle_of_a_call_is_found() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch.0, INTERRUPTED, &["-static"]) else { return };
    let script = program.to_str().expect("plain letters");
    assert!(is_same("", script));
    assert!(!is_same("shim: a handler runs in the middle of a call", script), "missed");
}

#[test]
fn who_is_killed_must_be_repaired() {
    // What a process had open that was killed is closed, and its room is free.
    let killed = r#"exec 2> /dev/null; python3 -c '
import os, time
number = os.open("f", 66)
os.write(number, b"x" * 1500000); os.unlink("f"); print(number, flush=True); time.sleep(100)' > ready &
        while ! test -s ready; do sleep 0.01; done; kill -9 $!; wait; sleep 0.2; head -c 1500000 /dev/zero > g; stat -c %s g"#;
    assert!(is_same("", killed));
    assert!(!is_same("run: no one repairs what the dead leave", killed), "missed");
}
