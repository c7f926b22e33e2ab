//! What it costs to try a command: processor time of commands alone, and tried and committed, in turns.
//!
//! `cargo bench -p try-program --bench tried`; it takes root, /dev/fuse, git, make and gcc.
#![cfg_attr(not(target_os = "linux"), allow(unused))]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use nix::sys::resource::{UsageWho, getrusage};
#[cfg(target_os = "linux")]
use nix::sys::time::TimeValLike;

const ROUNDS: usize = 7;
const PREPARE: &str = r#"
    export HOME=$PWD; git config --global user.email a@b.c; git config --global user.name A; git config --global gc.auto 0
    git init -q repo; cd repo; for d in $(seq 10); do mkdir d$d; for f in $(seq 20); do seq $f 400 > d$d/f$f; done; done
    git add .; git commit -qm 0; cd ..; mkdir make; cd make
    for i in $(seq 20); do printf '#include <stdio.h>\nint f%s(void){return printf("x");}\n' $i > f$i.c; done
    printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\tgcc -O1 -c -o $@ $<\n' > Makefile"#;
/// Name, what is done before each round, the command.
const COMMANDS: [(&str, &str, &str); 4] = [
    ("true", "true", "true"),
    ("grep -r in 200 files", "true", "grep -rc 77 repo/d* > counts"),
    ("git commit -a in 200 files", "echo x >> repo/d1/f1", "cd repo; git commit -qam x"),
    ("make of 20 C files", "rm -f make/*.o", "cd make; make -s"),
];

/// Processor time in microseconds of a command with all its children.
#[cfg(target_os = "linux")]
fn processor_us(command: &mut Command) -> i64 {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("it is known");
        usage.user_time().num_microseconds() + usage.system_time().num_microseconds()
    };
    let before = used();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success(), "{command:?}");
    used() - before
}

#[cfg(target_os = "linux")]
fn main() {
    let folder = std::env::temp_dir().join(format!("try-bench-{}", std::process::id()));
    fs::create_dir(&folder).expect("a new folder");
    let in_folder = |mut command: Command| {
        command
            .current_dir(&folder)
            .env("HOME", &folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("TRY_SHELL", "/bin/sh");
        command
    };
    let sh = |script: &str| {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", script]);
        in_folder(command)
    };
    assert!(sh(PREPARE).status().expect("there is a shell").success());
    for (name, before, script) in COMMANDS {
        let (mut alone, mut tried) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            assert!(sh(before).status().expect("there is a shell").success());
            alone.push(processor_us(&mut sh(script)));
            assert!(sh(before).status().expect("there is a shell").success());
            let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_commutant-try")));
            command.args(["-y", script]);
            tried.push(processor_us(&mut in_folder(command)));
        }
        alone.sort_unstable();
        tried.sort_unstable();
        let shown = |times: &[i64]| {
            let ms = |time: i64| time as f64 / 1000.0;
            format!("{:.1} ms ({:.1} to {:.1})", ms(times[ROUNDS / 2]), ms(times[0]), ms(times[ROUNDS - 1]))
        };
        let ratio = tried[ROUNDS / 2] as f64 / alone[ROUNDS / 2] as f64;
        println!("{name}: alone {}, tried and committed {}, {ratio:.2} times", shown(&alone), shown(&tried));
    }
    fs::remove_dir_all(&folder).expect("ours");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
