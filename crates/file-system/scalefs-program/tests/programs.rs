//! Programs that people have, in a ScaleFS that is mounted or seen by `scalefs run`, and on tmpfs: what they print and leave is the
//! same.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::Command;

use support::{Mounted, OWNERS, Scratch, can_mount, can_run, run_in_tree};

/// What is left: kind, mode, size, target and contents of everything, by name.
const LEFT: &str = r"find . \( -type d -printf '%P %y %m\n' \) -o \( -type l -printf '%P %l\n' \) -o \
    \( -printf '%P %y %m %s ' -exec sha256sum {} \; \) | LC_ALL=C sort";

/// What a script prints in an empty directory, with what it leaves there.
fn run(mut command: Command, script: &str, directory: &Path) -> String {
    command.args(["-euc", &format!("{script}\n{LEFT}")]).current_dir(directory);
    command.env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C").env("TZ", "UTC");
    let output = command.output().expect("there is a shell");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "in {}: {said}\n{complained}", directory.display());
    said.into_owned()
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let is_there = found.expect("there is a shell").status.success();
    if !is_there {
        eprintln!("not tested: {program} is not installed");
    }
    is_there
}

fn same_as_on_tmpfs(programs: &[&str], script: &str) {
    same_in_a_mount(programs, script);
    same_in_a_tree(programs, script);
}

fn on_tmpfs(script: &str) -> String {
    run(Command::new("sh"), script, &Scratch::below(Path::new("/dev/shm")).0)
}

fn same_in_a_mount(programs: &[&str], script: &str) {
    if !can_mount() || !programs.iter().all(|program| has(program)) {
        return;
    }
    let mounted = Mounted::new(&["--size", "256M"]);
    let ours = run(Command::new("sh"), script, &Scratch::below(&mounted.point).0);
    assert_eq!(ours, on_tmpfs(script), "left is ScaleFS, mounted");
}

fn same_in_a_tree(programs: &[&str], script: &str) {
    if !can_run() || !programs.iter().all(|program| has(program)) {
        return;
    }
    let hidden = Scratch::new();
    let ours = run(run_in_tree(&hidden.0, &["--size", "256M"], "sh"), script, &hidden.0);
    assert_eq!(ours, on_tmpfs(script), "left is ScaleFS, seen by scalefs run");
    assert_eq!(std::fs::read_dir(&hidden.0).expect("our directory").count(), 0, "what is hidden stays as it was");
}

#[test]
fn tar_packs_and_unpacks() {
    let script = "mkdir -p in/a/b out; seq 1 5000 > in/a/numbers; ln in/a/numbers in/b; ln -s a/numbers in/link
        chmod 751 in/a; chmod u+s in/b; touch -d 2001-02-03T04:05:06 in/a/b
        tar --sort=name -cf t.tar -C in .; tar -xpf t.tar -C out; tar -df t.tar -C out; stat -c %y out/a/b
        # It holds times.
        rm t.tar";
    same_as_on_tmpfs(&["tar"], script);
}

#[test]
fn git_commits_clones_and_collects() {
    let script = "export GIT_AUTHOR_DATE=2001-02-03T04:05:06Z GIT_COMMITTER_DATE=2001-02-03T04:05:06Z
        git init -q one; cd one; git config user.email a@b.c; git config user.name A
        for n in 1 2 3 4 5; do mkdir -p d$n; seq 1 $n > d$n/f; git add .; git commit -qm $n; done
        git mv d1 e1; git commit -qam moved; git rm -q d2/f; git commit -qm removed; git status --short
        git log --format=%H; git gc -q; git fsck; cd ..; git clone -q one two; diff -r one/e1 two/e1
        # What these write depends on times.
        rm -rf one/.git two/.git";
    same_as_on_tmpfs(&["git"], script);
}

#[test]
fn a_small_project_is_built() {
    let script = r#"for n in 1 2 3; do printf 'int f%s(void) { return %s; }\n' $n $n > f$n.c; done
        printf 'int f1(void), f2(void), f3(void);\nint main(void) { return f1() + f2() + f3() - 6; }\n' > main.c
        printf 'objects = main.o f1.o f2.o f3.o\nprogram: $(objects)\n\tgcc -o $@ $(objects)\n%%.o: %%.c\n\tgcc -O1 -c -o $@ $<\n' > Makefile
        make -j2 > /dev/null; ./program; make -q; touch f1.c; make | wc -l"#;
    same_as_on_tmpfs(&["gcc", "make"], script);
}

#[test]
fn python_makes_an_environment_and_a_data_base() {
    let script = r#"python3 -m venv --without-pip env
        env/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
        cat > work.py <<'END'
import mmap, os, sqlite3, tempfile
for journal in ("delete", "wal"):
    base = sqlite3.connect("base-" + journal)
    print(base.execute("pragma journal_mode = " + journal).fetchone())
    base.execute("create table numbers (number integer primary key, text text)")
    with base:
        base.executemany("insert into numbers values (?, ?)", ((n, "x" * (n % 97)) for n in range(3000)))
    try:
        with base:
            base.execute("delete from numbers")
            raise KeyError
    except KeyError:
        pass
    print(base.execute("select count(*), sum(length(text)) from numbers").fetchone())
    print(base.execute("pragma integrity_check").fetchone())
    base.close()
with open("mapped", "wb+") as file:
    file.truncate(10000)
    with mmap.mmap(file.fileno(), 10000) as view:
        view[5000:5003] = b"abc"
        view.flush()
        file.seek(4999)
        print(file.read(5))
with tempfile.TemporaryFile(dir=".") as file:
    file.write(b"1")
    print(os.fstat(file.fileno()).st_nlink)
END
        python3 work.py; rm -rf env"#;
    same_in_a_mount(&["python3"], script);
    // No program can store to a file by memory there, which the journal with the name of wal needs, too.
    let script = script.replace("\"delete\", \"wal\"", "\"delete\",").replace("view[5000:5003]", "# view[5000:5003]");
    let script = script
        .replace("10000) as view", "10000, access=mmap.ACCESS_READ) as view")
        .replace("view.flush()", "print(view[0])");
    same_in_a_tree(&["python3"], &script);
}

#[test]
fn rsync_finds_nothing_to_do_the_second_time() {
    let script = "mkdir in; seq 1 1000 > in/a; ln -s a in/b; rsync -a in/ out/; rsync -ai in/ out/";
    same_as_on_tmpfs(&["rsync"], script);
}

/// By FUSE the kernel keeps locks: it is not asked to leave them to us.
#[test]
fn locks_in_a_mount_are_as_on_tmpfs() {
    same_in_a_mount(&["python3"], &format!("python3 -c '{OWNERS}'"));
}
