//! Programs that people have, tried and committed: what they leave is what they would have left alone; what fails leaves no trace.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::process::Command;

use support::{Bench, can_try, document, has, said};

/// Runs a script with -y in one folder and without in another, after the same preparation; both must be the same then.
fn leaves_the_same(programs: &[&str], before: &str, script: &str) {
    if !can_try() || !programs.iter().all(|program| has(program)) {
        return;
    }
    let (tried, alone) = (Bench::new(), Bench::new());
    tried.sh(before);
    alone.sh(before);
    let output = tried.run(["-y", &format!("set -e; {script}")]);
    assert!(output.status.success(), "{}", said(&output));
    alone.sh(script);
    assert_eq!(tried.left(), alone.left());
}

const GIT: &str = "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE=2001-02-03T04:05:06Z GIT_COMMITTER_DATE=2001-02-03T04:05:06Z
    git config --global user.email a@b.c; git config --global user.name A; git config --global gc.auto 0; git config --global core.trustctime false";

#[test]
fn git_commits() {
    // The index holds inode numbers and times, which differ between any two folders.
    leaves_the_same(
        &["git"],
        &format!("{GIT}; git init -q one; cd one; seq 100 > f; mkdir d; seq 5 > d/g; git add .; git commit -qm 1"),
        &format!(
            "{GIT}; cd one; echo x >> f; git mv d/g d/h; git add .; git commit -qm 2; git log --stat > log; rm .git/index .git/logs/HEAD"
        ),
    );
}

#[test]
fn of_two_git_commits_the_second_comes_after_the_first() {
    if !can_try() || !has("git") {
        return;
    }
    let bench = Bench::new();
    bench.sh(&format!("{GIT}; git init -q .; seq 100 > f; seq 100 > g; git add f g; git commit -qm 0"));
    let other = format!(
        "cd {}; test -e .git/once || {{ : > .git/once; {GIT}; echo theirs >> g; git add g; git commit -qm theirs; }}",
        bench.path("").display()
    );
    let script = format!("{GIT}; echo ours >> f; git add f; git commit -qm ours");
    let mut command = bench.command(["-y", "--json", "--retry", "2", &script]);
    let output = command.env("COMMUTANT_TRY_RUN_AT_CHECK", other).output().expect("it starts");
    let document = document(&output);
    assert_eq!((&document["outcome"], &document["attempts"]), (&"committed".into(), &2.into()), "{}", said(&output));
    bench.sh("export HOME=$PWD; test \"$(git log --format=%s | tr '\\n' ' ')\" = 'ours theirs 0 '; git fsck --strict; test -z \"$(git status --short -uno)\"");
}

#[test]
fn make_builds_and_installs() {
    leaves_the_same(
        &["make", "gcc"],
        r#"mkdir src; printf 'int f(void){return 42;}\n' > src/f.c; printf 'int f(void); int main(void){return f() - 42;}\n' > src/main.c
        printf 'program: src/f.o src/main.o\n\tgcc -o $@ $^\nsrc/%%.o: src/%%.c\n\tgcc -c -o $@ $<\ninstall: program\n\tinstall -D -m 755 program out/bin/program\n\tinstall -D -m 644 src/f.c out/share/f.c\n' > Makefile"#,
        "make -s; make -s install; ./out/bin/program; touch -d 2001-01-01 src/f.o; make -s",
    );
}

const WHEEL: &str = r#"python3 - <<'END'
import zipfile
with zipfile.ZipFile("small-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr(zipfile.ZipInfo("small/__init__.py"), "answer = 42\n")
    wheel.writestr(zipfile.ZipInfo("small-1.0.dist-info/METADATA"), "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
    wheel.writestr(zipfile.ZipInfo("small-1.0.dist-info/WHEEL"), "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(zipfile.ZipInfo("small-1.0.dist-info/RECORD"), "small/__init__.py,,\n")
END"#;

#[test]
fn pip_installs() {
    let has_pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
    if !has_pip.is_ok_and(|asked| asked.status.success()) {
        eprintln!("not tested: python3 -m pip is not there");
        return;
    }
    leaves_the_same(
        &["python3"],
        WHEEL,
        "python3 -m pip install --quiet --root-user-action ignore --disable-pip-version-check --no-index --no-compile --target lib small-1.0-py3-none-any.whl
         PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=lib python3 -c 'import small; assert small.answer == 42'; rm lib/small-1.0.dist-info/RECORD lib/small-1.0.dist-info/direct_url.json",
    );
}

/// Two packages, of which the second one's script fails, and an empty system to install them in.
const PACKAGES: &str = r"
    mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates; touch root/var/lib/dpkg/status
    for name in good broken; do
        mkdir -p $name/DEBIAN $name/usr/share/$name
        printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.c>\nDescription: x\n' $name > $name/DEBIAN/control
        seq 1000 > $name/usr/share/$name/data; ln -s data $name/usr/share/$name/link
        printf '#!/bin/sh\nset -e\necho configured > $DPKG_ROOT/usr/share/%s/configured\n' $name > $name/DEBIAN/postinst
        chmod 755 $name/DEBIAN/postinst
    done
    echo 'exit 1' >> broken/DEBIAN/postinst
    for name in good broken; do dpkg-deb --build $name >/dev/null; rm -r $name; done";
const INSTALL: &str = "dpkg --root=$PWD/root --log=/dev/null --force-script-chrootless -i";

#[test]
fn dpkg_installs_a_package() {
    leaves_the_same(
        &["dpkg", "dpkg-deb"],
        &format!("export SOURCE_DATE_EPOCH=1000000000; {PACKAGES}"),
        &format!(
            "{INSTALL} good.deb >/dev/null; test -e root/usr/share/good/configured; rm -f root/var/lib/dpkg/status-old"
        ),
    );
}

#[test]
fn a_broken_package_leaves_no_trace() {
    if !can_try() || !has("dpkg-deb") {
        return;
    }
    let (tried, alone) = (Bench::new(), Bench::new());
    tried.sh(PACKAGES);
    let before = tried.left();
    let output = tried.run(["-y", &format!("{INSTALL} broken.deb")]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(tried.left(), before);
    // Without the program it stays half installed.
    alone.sh(&format!("{PACKAGES}; {INSTALL} broken.deb >/dev/null 2>&1 || test -e root/usr/share/broken/configured"));
    // And one that another has come before is refused, with what it would have overwritten.
    tried.run_script(&format!("{INSTALL} good.deb >/dev/null"));
    tried.sh("echo '# by hand' >> root/var/lib/dpkg/status");
    let document = tried.commit();
    assert_eq!(document["outcome"], "refused");
    assert!(support::conflicts(&document).contains(&"status".to_owned()), "{document}");
    assert!(!tried.path("root/usr/share/good").exists());
}

#[test]
fn deliveries_to_a_maildir_do_not_disturb_each_other() {
    if !can_try() {
        return;
    }
    let bench = Bench::new();
    bench.sh("mkdir -p mail/tmp mail/new mail/cur");
    let deliver =
        |name: &str| format!("echo message > mail/tmp/{name}; ln mail/tmp/{name} mail/new/{name}; rm mail/tmp/{name}");
    let others: Vec<String> = ["two", "three"]
        .iter()
        .map(|name| {
            let folder = bench.folder().join(name);
            fs::create_dir(&folder).expect("a new folder");
            let folder = folder.to_str().expect("text").to_owned();
            assert!(bench.run(["-N", &folder, &deliver(name)]).status.success());
            folder
        })
        .collect();
    bench.run_script(&deliver("one"));
    bench.sh(&deliver("by-hand"));
    assert_eq!(bench.commit()["outcome"], "committed");
    for folder in others {
        assert_eq!(document(&bench.run(["--json", "commit", &folder]))["outcome"], "committed");
    }
    assert_eq!(fs::read_dir(bench.path("mail/new")).expect("it is there").count(), 4);
    assert_eq!(fs::read_dir(bench.path("mail/tmp")).expect("it is there").count(), 0);
}
