//! Scripts of the SibylFS project (Ridge, Sheets, Tuerk, Giugliano, Madhavapeddy, Sewell: SOSP 2015), run on ScaleFS, crate
//! `plain` and the host's tmpfs: each call must give the same, and the trees in the end be the same.
//!
//! `SIBYLFS_SCRIPTS=folder` reads all scripts below a folder, `SIBYLFS_PART=i/n` each n-th of them. Without it some of our own are
//! run. What is not the same is printed; it must be listed in docs/notes/sibylfs.md.

mod host;
mod operations;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use percpu::OwnerId;
use plain::Plain;
use scalefs::{Credentials, OwnedConfig, OwnedScaleFs, Process};
use sync::Spin;

use operations::Held;
use read::{Line, Script, Word};

use crate::host::{Host, with_host};

/// What a call gives, as text, or an error number.
pub type Outcome = Result<String, i32>;

/// What a script does on one system: an outcome for each line, and at last the tree.
type Run = (Vec<Outcome>, Vec<String>);

/// User, group and groups of a process that a line begins.
fn who(script: &Script, line: &Line) -> (u32, u32, Vec<u32>) {
    let value = |place: usize| match line.words.get(place) {
        Some(Word::Numbered(_, value)) => *value as u32,
        _ => 0,
    };
    (value(0), value(1), script.groups.get(&value(0)).cloned().unwrap_or_default())
}

fn credentials(script: &Script, line: &Line) -> Credentials {
    let (user, group, groups) = who(script, line);
    Credentials::new(user, group, &groups).expect("few groups")
}

/// Whether all that a script asks for is offered: known flags, and no descriptor that lets neither read nor write.
fn is_offered(script: &Script) -> bool {
    let is_known = |line: &Line| match line.words.get(1) {
        Some(Word::Flags(flags)) => {
            flags.iter().all(|flag| operations::flag(flag).is_some())
                && operations::access(operations::flags(line).1).is_some()
        }
        _ => true,
    };
    script.lines.iter().all(is_known)
}

fn on_scalefs(script: &Script) -> Run {
    let config = OwnedConfig { core_count: 1, page_count: 256, metadata_bytes: 4 << 20, ..OwnedConfig::default() };
    let instance = OwnedScaleFs::create(config).unwrap();
    let core = instance.claim(0, OwnerId::new(1).unwrap()).unwrap();
    let fs = instance.file_system();
    let begin = |credentials| Process::new(fs, &core, credentials).unwrap();
    let mut processes = BTreeMap::from([(1, (begin(Credentials::SUPERUSER), Held::default()))]);
    operations::occupy(&fs.enter(&core, &processes[&1].0, &Spin));
    let mut outcomes = Vec::new();
    for line in &script.lines {
        if line.call == "create" {
            let process = begin(credentials(script, line));
            operations::occupy(&fs.enter(&core, &process, &Spin));
            processes.insert(line.process, (process, Held::default()));
            outcomes.push(Ok(String::new()));
            continue;
        }
        let Some((process, held)) = processes.get_mut(&line.process) else {
            outcomes.push(Ok("no process".into()));
            continue;
        };
        if line.call == "umask" {
            outcomes.push(Ok(process.context().set_umask(operations::mode(line, 0)).to_string()));
        } else {
            outcomes.push(operations::call(&fs.enter(&core, process, &Spin), held, line));
        }
        fs.maintain(&core, &Spin);
    }
    let all = begin(Credentials::SUPERUSER);
    let tree = operations::tree(&fs.enter(&core, &all, &Spin));
    all.exit(fs, &core, &Spin);
    for (_, (process, _)) in processes {
        process.exit(fs, &core, &Spin);
    }
    (outcomes, tree)
}

fn on_plain(script: &Script) -> Run {
    let plain = Plain::default();
    let begin = |credentials| plain::Process::new(&plain, credentials);
    let mut processes = BTreeMap::from([(1, (begin(Credentials::SUPERUSER), Held::default()))]);
    operations::occupy(&plain.begin(&processes[&1].0));
    let mut outcomes = Vec::new();
    for line in &script.lines {
        if line.call == "create" {
            let process = begin(credentials(script, line));
            operations::occupy(&plain.begin(&process));
            processes.insert(line.process, (process, Held::default()));
            outcomes.push(Ok(String::new()));
            continue;
        }
        outcomes.push(match processes.get_mut(&line.process) {
            None => Ok("no process".into()),
            Some((process, _)) if line.call == "umask" => Ok(process.set_umask(operations::mode(line, 0)).to_string()),
            Some((process, held)) => operations::call(&plain.begin(process), held, line),
        });
    }
    let tree = operations::tree(&plain.begin(&begin(Credentials::SUPERUSER)));
    (outcomes, tree)
}

/// What differs, a line for each system and call.
fn differences(script: &Script) -> Vec<String> {
    let expected = host::run(script);
    let mut told = Vec::new();
    for (name, run) in [("scalefs", on_scalefs(script)), ("plain", on_plain(script))] {
        for ((line, outcome), expected) in script.lines.iter().zip(&run.0).zip(&expected.0) {
            if outcome != expected {
                told.push(format!("line {}: {}: {name} {outcome:?}, tmpfs {expected:?}", line.number, line.call));
            }
        }
        if run.1 != expected.1 {
            let here = run.1.iter().filter(|entry| !expected.1.contains(entry)).collect::<Vec<_>>();
            let there = expected.1.iter().filter(|entry| !run.1.contains(entry)).collect::<Vec<_>>();
            told.push(format!("the tree: {name} {here:?}, tmpfs {there:?}"));
        }
    }
    told
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// Runs the scripts of a folder; how many scripts and calls, and what differs, with the script's name.
fn run_folder(folder: &Path, (part, parts): (usize, usize)) -> (usize, usize, Vec<String>) {
    let mut files = Vec::new();
    files_below(folder, &mut files);
    files.sort();
    let texts: Vec<(PathBuf, String)> = files
        .into_iter()
        .skip(part - 1)
        .step_by(parts)
        .map(|file| (file.clone(), String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned()))
        // Words about scripts lie among them.
        .filter(|(_, text)| text.starts_with("@type script"))
        .collect();
    let run = |host: &Host| {
        assert!(host.can_use_root(), "only the superuser can be several users");
        let (mut count, mut calls, mut told) = (0, 0, Vec::new());
        for (file, text) in &texts {
            let Some(script) = read::script(text).filter(is_offered) else {
                told.push(format!("{}: not run", file.display()));
                continue;
            };
            told.extend(differences(&script).into_iter().map(|what| format!("{}: {what}", file.display())));
            (count, calls) = (count + 1, calls + script.lines.len());
        }
        (count, calls, told)
    };
    with_host(None, run).expect("no limit is asked for")
}

#[test]
fn scripts_of_a_folder_give_the_same_as_on_tmpfs() {
    let Some(folder) = std::env::var_os("SIBYLFS_SCRIPTS") else { return };
    let part = std::env::var("SIBYLFS_PART").unwrap_or_else(|_| "1/1".into());
    let (part, parts) = part.split_once('/').expect("SIBYLFS_PART is i/n");
    let (count, calls, told) = run_folder(Path::new(&folder), (part.parse().unwrap(), parts.parse().unwrap()));
    println!("{count} scripts, {calls} calls; not the same, or not run: {}", told.len());
    told.iter().for_each(|what| println!("{what}"));
    let listed = include_str!("../../../../../../docs/notes/sibylfs.md");
    let name = |what: &str| Path::new(what.split(": ").next().unwrap_or(what)).file_name().map(|name| name.to_owned());
    let unlisted: Vec<_> =
        told.iter().filter(|what| name(what).is_none_or(|name| !listed.contains(&*name.to_string_lossy()))).collect();
    assert!(unlisted.is_empty(), "docs/notes/sibylfs.md does not list {unlisted:#?}");
    assert!(count > 0, "no script below {}", Path::new(&folder).display());
}

/// In the manner of those: all calls that they have, several processes, and what is refused.
const OWN: [&str; 3] = [
    r#"@type script
# names
mkdir "d" 0o777
mkdir /d/e 0o755
symlink "d/e" "s"
open_close "s/f" [O_CREAT;O_WRONLY] 0o640
link "d/e/f" "g"
stat "g"
lstat s
readlink "s"
rename "d" "d/e/x"
rename "d/e" "h"
rmdir "d"
unlink "h"
unlink "none"
truncate "g" 7
chmod "g" 0o4755
stat "g"
dump "/"
"#,
    r#"@type script
open "f" [O_CREAT;O_RDWR] 0o666
write! (FD 3) "Dear Bob" 8
lseek (FD 3) 5 SEEK_SET
read (FD 3) 3
pread! (FD 3) 100 0
pwrite (FD 3) "x" 1 20
lseek (FD 3) 0 SEEK_END
lseek (FD 3) -1 SEEK_SET
open "f" [O_APPEND;O_WRONLY]
write (FD 4) "yz" 2
read (FD 4) 1
close (FD 3)
close (FD 3)
open "none" [O_RDONLY]
open "f" [O_CREAT;O_EXCL] 0o666
mkdir "d" 0o777
chdir "d"
open_close "g" [O_CREAT;O_TRUNC;O_RDWR] 0o600
opendir "/d"
readdir (DH 1)
rewinddir (DH 1)
closedir (DH 1)
opendir "/none"
umask 0o077
open_close "h" [O_CREAT;O_RDWR] 0o666
stat "h"
"#,
    r#"@type script
add_user_to_group (User_id 1) (Group_id 1)
chmod / 0o1777
mkdir "own" 0o700
Pid 2 -> create (User_id 1) (Group_id 1)
Pid 2 -> mkdir /d 0o755
Pid 2 -> mkdir /own/x 0o755
Pid 2 -> open_close /d/f [O_CREAT;O_RDWR] 0o666
Pid 2 -> chown /d/f (User_id 2) (Group_id 1)
Pid 2 -> chmod /d/f 0o600
chown "/d" (User_id 2) (Group_id 2)
Pid 2 -> unlink /d/f
Pid 2 -> rename /d /mine
Pid 2 -> destroy
Pid 2 -> stat /d
"#,
];

#[test]
fn scripts_give_the_same_as_on_tmpfs() {
    with_host(None, |host| {
        if !host.can_use_root() {
            eprintln!("not compared: only the superuser can be several users");
            return;
        }
        for text in OWN {
            let script = read::script(text).expect("a script");
            assert!(is_offered(&script) && script.lines.len() > 10);
            let found = differences(&script);
            assert!(found.is_empty(), "{found:#?}");
            // A result that is not the host's is seen.
            let (outcomes, _) = host::run(&script);
            let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(refused >= 3 && outcomes.len() - refused >= 8, "{outcomes:?}");
        }
        let told = differences(&read::script("@type script\nplanted\n").expect("a script"));
        assert_eq!(told.len(), 2, "a line that only the host knows is told of each system: {told:?}");
    });
}

#[test]
fn what_is_no_script_is_not_read() {
    for text in [
        "",
        "mkdir \"d\" 0o777",
        "@type script\nmkdir \"d 0o777",
        "@type script\nopen f [O_CREAT",
        "@type script\n\"x\" (FD)",
    ] {
        assert!(read::script(text).is_none(), "{text}");
    }
    let unknown = read::script("@type script\nopen f [O_NEW]\n").expect("a script");
    assert!(!is_offered(&unknown));
}
