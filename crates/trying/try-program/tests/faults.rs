//! Faults that are planted in the program: for each there is a scenario that ends well, and does not with the fault.
#![cfg(target_os = "linux")]

mod support;

use std::fs;

use support::{Bench, can_try};

/// What a scenario looks at: whether the program did right.
type Scenario = fn(&Bench) -> bool;

fn lines(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.path(name)).unwrap_or_default()
}

fn committed(bench: &Bench) -> bool {
    bench.commit()["outcome"] == "committed"
}

fn refused(bench: &Bench) -> bool {
    bench.commit()["outcome"] == "refused"
}

fn run_to_merge(bench: &Bench, script: &str) {
    let output = bench.run(["--merge", "-N", bench.changes().to_str().expect("text"), script]);
    assert!(output.status.success(), "{script}");
}

/// Commits while others do something at a place; whether that was refused.
fn refused_beside(bench: &Bench, at: &str, others: &str) -> bool {
    let others = format!("cd {}; {others}", bench.path("").display());
    let mut command = bench.command(["commit", bench.changes().to_str().expect("text")]);
    command.env(format!("COMMUTANT_TRY_RUN_AT_{at}"), others).output().expect("it starts").status.code() == Some(1)
}

/// Commits until a place, recovers; whether all is there, or nothing.
fn recovered_whole(bench: &Bench, end: u32) -> bool {
    bench.sh("echo 0 > a; echo 0 > b; echo 0 > c");
    bench.run_script("echo 1 > a; echo 1 > b; echo 1 > c");
    let changes = bench.changes();
    let changes = changes.to_str().expect("text");
    let mut command = bench.command(["commit", changes]);
    command.env("COMMUTANT_TRY_END_AT", end.to_string()).output().expect("it starts");
    bench.run(["recover", changes]);
    let all = ["a", "b", "c"].map(|name| lines(bench, name));
    all == ["0\n", "0\n", "0\n"] || all == ["1\n", "1\n", "1\n"]
}

const SCENARIOS: [(&str, Scenario); 17] = [
    ("try-program: a record keeps the last look at a place", |bench| {
        bench.sh("echo x > old; mkdir folder");
        bench.run_script("mv old new; mv new folder/newer; ls folder; cat folder/newer");
        committed(bench) && lines(bench, "folder/newer") == "x\n" && !bench.path("old").exists()
    }),
    ("try-program: a stat counts as a copy", |bench| {
        bench.sh("echo x > file");
        bench.run_script("stat file > seen");
        bench.sh("ln file other");
        refused(bench)
    }),
    ("try-program: what is replaced may be of any version", |bench| {
        bench.sh("echo x > file");
        bench.run_script("echo mine > new; python3 -I -c 'import os; os.replace(\"new\", \"file\")'");
        bench.sh("echo theirs > file");
        refused(bench)
    }),
    ("try-program: others may give a written file another name", |bench| {
        bench.sh("echo x > file");
        bench.run_script("echo more >> file");
        bench.sh("ln file other");
        refused(bench)
    }),
    ("try-program: absence is not asked again", |bench| {
        bench.run_script("test -e switch || echo off > result");
        bench.sh("echo on > switch");
        refused(bench)
    }),
    ("try-program: nothing is asked after staging", |bench| {
        bench.sh("echo x > read");
        bench.run_script("cat read > written");
        refused_beside(bench, "CHECK", "echo y > read")
    }),
    ("try-program: a recovery forgets what was decided", |bench| recovered_whole(bench, 8)),
    ("try-program: steps come before the decision", |bench| recovered_whole(bench, 8)),
    ("try-program: what was taken is not looked into", |bench| {
        bench.sh("mkdir folder; echo x > folder/x");
        bench.run_script("rm -r folder");
        refused_beside(bench, "PUBLICATION", "echo y > folder/y") && lines(bench, "folder/y") == "y\n"
    }),
    ("try-program: an exchange is not undone", |bench| {
        bench.sh("echo a > a; echo z > z");
        bench.run_script("echo 1 > a; echo 1 > z");
        refused_beside(bench, "PUBLICATION", "echo theirs > z") && lines(bench, "a") == "a\n"
    }),
    ("try-program: what cannot be put back goes", |bench| {
        bench.sh("echo a > a; echo z > z");
        bench.run_script("echo 1 > a; echo 1 > z");
        let changes = bench.changes();
        let changes = changes.to_str().expect("text");
        bench.command(["commit", changes]).env("COMMUTANT_TRY_END_AT", "6").output().expect("it starts");
        bench.sh("echo theirs > new; mv new a; echo theirs > z");
        bench.run(["recover", changes]);
        fs::read_to_string(bench.changes().join("stage/0")).is_ok_and(|kept| kept == "a\n")
    }),
    ("try-program: an exchange takes whatever is there", |bench| {
        bench.sh("echo x > file");
        bench.run_script("echo mine > file");
        refused_beside(bench, "PUBLICATION", "echo theirs > file") && lines(bench, "file") == "theirs\n"
    }),
    ("try-program: links in the way are followed", |bench| {
        bench.sh("mkdir -p sub/deep");
        fs::create_dir_all(bench.folder().join("outside/deep")).expect("a new folder");
        bench.run_script("echo x > sub/deep/made");
        refused_beside(bench, "PUBLICATION", "mv sub away; ln -s ../outside sub");
        !bench.folder().join("outside/deep/made").exists()
    }),
    ("try-program: a layer of anyone is committed", |bench| {
        bench.run_script("cp /bin/true made; chmod u+s made");
        std::os::unix::fs::chown(bench.changes(), Some(65_534), None).expect("root may");
        bench.run(["commit", bench.changes().to_str().expect("text")]);
        !bench.path("made").exists()
    }),
    ("try-program: the command's bytes win", |bench| {
        bench.sh("printf abc > file");
        run_to_merge(bench, "sed -i s/b/B/ file");
        bench.sh("printf aXc > file");
        bench.commit_with(&["--merge"])["outcome"] == "refused" && lines(bench, "file") == "aXc"
    }),
    ("try-program: a file that was read in part is whole", |bench| {
        bench.sh("seq 10000 > file");
        // One page, and nothing ahead of it.
        let read = "import os; file = os.open(\"file\", 0); os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM); \
                    open(\"new\", \"wb\").write(b\"A\" + os.read(file, 4096)[1:])";
        run_to_merge(bench, &format!("python3 -I -c '{read}'; mv new file"));
        bench.sh("echo theirs >> file");
        bench.commit_with(&["--merge"])["outcome"] == "refused" && lines(bench, "file").ends_with("theirs\n")
    }),
    ("try-program: a record without its end is whole", |bench| {
        bench.run_script("echo x > made");
        let record = bench.changes().join("records/1");
        let text = fs::read_to_string(&record).expect("it is there");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("end ")).collect();
        fs::write(&record, format!("{}\n", lines.join("\n"))).expect("ours");
        bench.run(["commit", bench.changes().to_str().expect("text")]);
        !bench.path("made").exists()
    }),
];

#[test]
fn planted_faults_are_found() {
    if !can_try() {
        return;
    }
    for (fault, scenario) in SCENARIOS {
        assert!(scenario(&Bench::new()), "without {fault}");
        let mut bench = Bench::new();
        bench.planted = Some(fault);
        assert!(!scenario(&bench), "{fault} was missed");
    }
}
