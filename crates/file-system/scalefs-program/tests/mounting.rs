//! Mounting and unmounting: what is refused and how it is said, and that nothing is left however it ends.
#![cfg(target_os = "linux")]

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::Pid;

use support::{Mounted, Scratch, can_mount, is_mounted, refusal, scalefs, server_of};

fn text(path: &Path) -> &str {
    path.to_str().expect("plain letters")
}

/// So often is looked for what has to come, before it is missed.
const LOOKS: usize = 100_000;

/// Waits for what has to come.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let came = (0..LOOKS).any(|_| {
        std::thread::yield_now();
        holds()
    });
    assert!(came, "it did not come");
}

/// Not there, or ended and not yet waited for by its parent.
fn has_ended(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z') || rest.starts_with('X'))
}

fn guard_of(server: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{server}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("all have parents");
    line.trim().parse().expect("a number")
}

#[test]
fn what_is_wrong_with_a_place_is_said() {
    let scratch = Scratch::new();
    let refused = |place: &Path| refusal(&scalefs(&["mount", text(place)]));
    assert!(refused(&scratch.path("absent")).contains("does not exist: make it first, mkdir"));
    fs::write(scratch.path("file"), "").expect("our directory");
    assert!(refused(&scratch.path("file")).contains("is no directory"));
    assert!(refused(&scratch.0).contains("is not empty"));
    assert!(refusal(&scalefs(&["unmount", text(&scratch.0)])).contains("is no ScaleFS"));
    assert!(refusal(&scalefs(&["unmount", text(&scratch.path("absent"))])).contains("No such file"));
    assert!(refusal(&scalefs(&["status", text(&scratch.0)])).contains("is no ScaleFS"));
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&[]);
    fs::create_dir(mounted.point.join("inner")).expect("there is room");
    for place in [mounted.point.clone(), mounted.point.join("inner")] {
        assert!(refused(&place).contains("lies in the ScaleFS that is mounted at"));
    }
    // By way of a symbolic link, too.
    let link = mounted.scratch.path("link");
    symlink(&mounted.point, &link).expect("our directory");
    assert!(refused(&link).contains("lies in the ScaleFS that is mounted at"));
}

#[test]
fn what_is_wrong_with_copies_is_said_before_anything_is_mounted() {
    let scratch = Scratch::new();
    let point = scratch.path("mount");
    fs::create_dir(&point).expect("our directory");
    fs::write(scratch.path("letter"), "Dear Bob").expect("our directory");
    fs::write(scratch.path("small.tar.gz"), b"\x1f\x8b\x08\x00").expect("our directory");
    let refused = |option: &str, path: &Path| refusal(&scalefs(&["mount", option, text(path), text(&point)]));
    if !can_mount() {
        return;
    }
    assert!(refused("--from", &scratch.path("absent")).contains("No such file"));
    assert!(refused("--from", &scratch.path("letter")).contains("expected a directory or an archive of tar"));
    assert!(refused("--from", &scratch.path("small.tar.gz")).contains("gzip -d"));
    assert!(refused("--to", &scratch.path("letter")).contains("it exists"));
    assert!(refused("--to", &scratch.0).contains("it is not empty"));
    assert!(refused("--to", &scratch.path("absent/copy")).contains("does not exist: make it first"));
    // More than fits.
    let large = scratch.path("large");
    fs::create_dir(&large).expect("our directory");
    fs::write(large.join("data"), vec![1; 2 << 20]).expect("our directory");
    let said = scalefs(&["mount", "--size", "1M", "--from", text(&large), text(&point)]);
    assert!(refusal(&said).contains("no room is left: give more by --size"));
    assert!(!is_mounted(&point));
}

#[test]
fn what_is_in_use_stays_until_it_is_not() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&[]);
    let server = server_of(&mounted.point);
    let file = File::create(mounted.point.join("open")).expect("there is room");
    assert!(refusal(&mounted.unmount_once()).contains("is in use"));
    assert!(is_mounted(&mounted.point) && !has_ended(server));
    drop(file);
    let output = mounted.unmount();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!is_mounted(&mounted.point) && has_ended(server));
    assert_eq!(fs::read_dir(&mounted.point).expect("it is there").count(), 0);
}

#[test]
fn a_lazy_end_waits_for_the_last_user() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&[]);
    let server = server_of(&mounted.point);
    fs::write(mounted.point.join("letter"), "Dear Bob").expect("there is room");
    let mut file = File::open(mounted.point.join("letter")).expect("it is there");
    assert!(scalefs(&["unmount", "--lazy", mounted.place()]).status.success());
    assert!(!is_mounted(&mounted.point) && !has_ended(server));
    let mut letter = String::new();
    file.read_to_string(&mut letter).expect("it is still there");
    assert_eq!(letter, "Dear Bob");
    drop(file);
    wait_until(|| has_ended(server));
}

#[test]
fn nothing_is_left_when_server_or_guard_is_killed() {
    if !can_mount() {
        return;
    }
    for kills_guard in [false, true] {
        let mounted = Mounted::new(&[]);
        let server = server_of(&mounted.point);
        let guard = guard_of(server);
        kill(Pid::from_raw(if kills_guard { guard } else { server }), Signal::SIGKILL).expect("it lives");
        wait_until(|| !is_mounted(&mounted.point));
        wait_until(|| has_ended(server) && has_ended(guard));
        fs::write(mounted.point.join("again"), "").expect("an ordinary directory again");
    }
}

#[test]
fn after_both_are_killed_at_once_the_place_can_be_freed() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&[]);
    let server = server_of(&mounted.point);
    let guard = guard_of(server);
    // The guard stands still, and so cannot do its work before it is killed.
    kill(Pid::from_raw(guard), Signal::SIGSTOP).expect("it lives");
    kill(Pid::from_raw(server), Signal::SIGKILL).expect("it lives");
    kill(Pid::from_raw(guard), Signal::SIGKILL).expect("it lives");
    wait_until(|| has_ended(server) && has_ended(guard));
    wait_until(|| fs::metadata(&mounted.point).is_err());
    assert!(refusal(&scalefs(&["mount", mounted.place()])).contains("has died: scalefs unmount"));
    assert!(mounted.unmount().status.success());
    assert!(!is_mounted(&mounted.point));
}

/// A mount in the foreground that can be used, and what it says.
fn in_foreground(point: &Path) -> (Child, BufReader<ChildStderr>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
    command.args(["mount", "--foreground", text(point)]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    assert!(line.contains("mounted at") && is_mounted(point), "{line}");
    (child, said)
}

#[test]
fn signals_end_a_mount_in_the_foreground() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let (mut child, _said) = in_foreground(&scratch.0);
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it lives");
        let status = child.wait().expect("it ends");
        assert!(status.success(), "{signal}: {status}");
        assert!(!is_mounted(&scratch.0));
    }
    let (mut child, mut stderr) = in_foreground(&scratch.0);
    kill(Pid::from_raw(server_of(&scratch.0)), Signal::SIGKILL).expect("it lives");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("text");
    assert!(said.contains("the server was ended by SIGKILL") && said.contains("is lost"), "{said}");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(!is_mounted(&scratch.0));
}

#[test]
fn a_mount_is_listed_with_its_room() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&["--size", "7M"]);
    let output = scalefs(&["status", mounted.place()]);
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(listed.lines().count() == 2 && listed.contains(mounted.place()) && listed.contains(" 7 "), "{listed}");
}

/// What a tree holds: names, modes, owners, times of files, contents.
fn seen(top: &Path) -> Vec<String> {
    let (mut lines, mut pending) = (Vec::new(), vec![top.to_path_buf()]);
    while let Some(place) = pending.pop() {
        let metadata = fs::symlink_metadata(&place).expect("it is there");
        let name = place.strip_prefix(top).expect("below").display();
        let (owner, mode) = (format!("{}:{}", metadata.uid(), metadata.gid()), metadata.mode());
        lines.push(if metadata.is_dir() {
            pending.extend(fs::read_dir(&place).expect("a directory").map(|entry| entry.expect("a name").path()));
            format!("{name} {mode:o} {owner} {}", metadata.mtime())
        } else if !metadata.is_file() && !metadata.is_symlink() {
            format!("{name} {mode:o} {owner} {} {:x}", metadata.mtime(), metadata.rdev())
        } else if metadata.is_symlink() {
            format!("{name} {mode:o} {owner} {:?}", fs::read_link(&place).expect("a link"))
        } else {
            let links = metadata.nlink();
            format!("{name} {mode:o} {owner} {} {links} {:?}", metadata.mtime(), fs::read(&place).expect("a file"))
        });
    }
    lines.sort();
    lines
}

fn make_tree(top: &Path) {
    fs::create_dir_all(top.join("full/er")).expect("our directory");
    fs::create_dir(top.join("empty")).expect("our directory");
    fs::write(top.join("full/er/letter"), "Dear Bob").expect("our directory");
    fs::write(top.join("full/large"), vec![7; 3_000_001]).expect("our directory");
    fs::write(top.join("nothing"), "").expect("our directory");
    fs::hard_link(top.join("nothing"), top.join("full/again")).expect("our directory");
    symlink("../nothing", top.join("full/link")).expect("our directory");
    symlink("nowhere", top.join("dangling")).expect("our directory");
    fs::write(top.join("n".repeat(200)), "long").expect("our directory");
    fs::set_permissions(top.join("full/er"), fs::Permissions::from_mode(0o1750)).expect("ours");
    fs::set_permissions(top.join("nothing"), fs::Permissions::from_mode(0o4711)).expect("ours");
    std::os::unix::fs::chown(top.join("full/large"), Some(12), Some(34)).expect("root");
    for (name, kind, device) in [
        ("fifo", SFlag::S_IFIFO, 0),
        ("null", SFlag::S_IFCHR, makedev(1, 3)),
        ("disk", SFlag::S_IFBLK, makedev(9, 300)),
    ] {
        mknod(&top.join(name), kind, Mode::from_bits_truncate(0o624), device).expect("root");
    }
    std::os::unix::fs::chown(top.join("disk"), Some(12), Some(34)).expect("root");
    let times =
        fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_007));
    for name in ["full/large", "full/er", "."] {
        File::open(top.join(name)).and_then(|file| file.set_times(times)).expect("ours");
    }
}

#[test]
fn a_tree_goes_in_and_comes_out_as_it_was() {
    if !can_mount() {
        return;
    }
    for is_archive in [false, true] {
        let scratch = Scratch::new();
        let tree = scratch.path("tree");
        fs::create_dir(&tree).expect("our directory");
        make_tree(&tree);
        let (from, to) = match is_archive {
            false => (tree.clone(), scratch.path("out")),
            true => (scratch.path("in.tar"), scratch.path("out.tar")),
        };
        if is_archive {
            let packed = Command::new("tar").args(["-cf", text(&from), "-C", text(&tree), "."]).status();
            assert!(packed.expect("tar is there").success());
        }
        let mounted = Mounted::new(&["--from", text(&from), "--to", text(&to)]);
        assert_eq!(seen(&mounted.point), seen(&tree), "inside");
        // A change goes out, too.
        for top in [&mounted.point, &tree] {
            fs::write(top.join("full/er/letter"), "Dear Alice").expect("there is room");
        }
        let output = mounted.unmount();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let out = scratch.path("unpacked");
        if is_archive {
            fs::create_dir(&out).expect("our directory");
            let unpacked = Command::new("tar").args(["-xpf", text(&to), "-C", text(&out)]).status();
            assert!(unpacked.expect("tar is there").success());
        } else {
            fs::rename(&to, &out).expect("ours");
        }
        // Of the two that were written just now the time may differ.
        let without_times = |top: &Path| -> Vec<String> {
            let lines = seen(top).into_iter();
            lines.filter(|line| !line.starts_with("full/er/letter")).collect()
        };
        assert_eq!(without_times(&out), without_times(&tree), "outside");
        assert_eq!(fs::read_to_string(out.join("full/er/letter")).expect("it is there"), "Dear Alice");
    }
}

#[test]
fn a_copy_that_cannot_be_made_is_said() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let to = scratch.path("copy");
    let mounted = Mounted::new(&["--to", text(&to)]);
    fs::write(mounted.point.join("letter"), "Dear Bob").expect("there is room");
    fs::write(&to, "in the way").expect("our directory");
    let said = refusal(&mounted.unmount());
    assert!(said.contains("the copy was not made"), "{said}");
    assert_eq!(fs::read_to_string(&to).expect("it is there"), "in the way");
    let said = fs::read_to_string(scratch.path("copy.failed")).expect("it is said there");
    assert!(said.contains("--to") && said.lines().count() == 1, "{said}");
    // What was said is not overlooked the next time.
    fs::remove_file(&to).expect("ours");
    let refused = scalefs(&["mount", "--to", text(&to), mounted.place()]);
    assert!(refusal(&refused).contains("an earlier copy failed"));
}

#[test]
fn holes_stay_holes() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (from, to) = (scratch.path("in"), scratch.path("out"));
    fs::create_dir(&from).expect("our directory");
    let file = File::create(from.join("sparse")).expect("our directory");
    std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 5_000_000).expect("our directory");
    file.set_len(60 << 20).expect("our directory");
    // The data fit, and the zeros would not.
    let mounted = Mounted::new(&["--size", "1M", "--from", text(&from), "--to", text(&to)]);
    assert!(mounted.unmount().status.success());
    let out = fs::metadata(to.join("sparse")).expect("it was copied");
    assert!(out.len() == 60 << 20 && out.blocks() < 64, "{} bytes, {} blocks", out.len(), out.blocks());
    let bytes = fs::read(to.join("sparse")).expect("it was copied");
    assert_eq!(&bytes[4_999_999..5_000_007], b"\0middle\0");
}

#[test]
fn of_an_archive_the_last_entry_counts() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (tree, archive) = (scratch.path("tree"), scratch.path("in.tar"));
    fs::create_dir_all(tree.join("closed")).expect("our directory");
    let pack = |arguments: &[&str]| {
        let mut tar = Command::new("tar");
        tar.args(["--no-recursion", "-C", text(&tree), "-f", text(&archive)]).args(arguments);
        assert!(tar.status().expect("tar is there").success());
    };
    fs::write(tree.join("letter"), "Dear Bob, this is long").expect("ours");
    fs::write(tree.join("closed/file"), "").expect("ours");
    symlink("letter", tree.join("name")).expect("ours");
    fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o711)).expect("ours");
    pack(&["-c", "letter", "name", "closed/file", "closed"]);
    fs::write(tree.join("letter"), "short").expect("ours");
    fs::remove_file(tree.join("name")).expect("ours");
    fs::write(tree.join("name"), "no link any more").expect("ours");
    pack(&["-r", "letter", "name"]);
    let to = scratch.path("out.tar");
    let mounted = Mounted::new(&["--from", text(&archive), "--to", text(&to)]);
    let read = |name: &str| fs::read_to_string(mounted.point.join(name)).expect("it is there");
    assert_eq!((read("letter").as_str(), read("name").as_str()), ("short", "no link any more"));
    assert_eq!(fs::metadata(mounted.point.join("closed")).expect("it is there").mode() & 0o7777, 0o711);
    assert!(mounted.unmount().status.success());
    assert_eq!(fs::metadata(&to).expect("it was made").mode() & 0o777, 0o600, "whoever may read it is said inside");
}

#[test]
fn holes_are_told_where_the_kernel_caches_nothing() {
    if !can_mount() {
        return;
    }
    use nix::unistd::{Whence, lseek};
    let mounted = Mounted::new(&["--no-cache"]);
    let path = mounted.point.join("holes");
    let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("there is room");
    std::os::unix::fs::FileExt::write_at(&file, b"data", 8 << 12).expect("there is room");
    file.set_len(20 << 12).expect("there is room");
    let seek = |offset, whence| lseek(&file, offset, whence);
    assert_eq!(seek(0, Whence::SeekHole), Ok(0));
    assert_eq!(seek(0, Whence::SeekData), Ok(8 << 12));
    assert_eq!(seek(8 << 12, Whence::SeekHole), Ok(9 << 12));
    assert_eq!(seek(9 << 12, Whence::SeekData), Err(nix::errno::Errno::ENXIO));
    assert_eq!(seek(20 << 12, Whence::SeekHole), Err(nix::errno::Errno::ENXIO));
}
