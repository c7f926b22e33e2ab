//! What is given up comes back: pages and inodes, after many files, after files that were removed while they were open.
#![cfg(target_os = "linux")]

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::sys::statvfs::statvfs;

use support::{Mounted, can_mount};

/// Free pages and free inodes.
fn free(mounted: &Mounted) -> (u64, u64) {
    let space = statvfs(&mounted.point).expect("it is mounted");
    (space.blocks_free(), space.files_free())
}

/// So often space is asked for before it is missed.
const LOOKS: usize = 20_000;

/// Waits until the kernel has forgotten what was removed, which it says when it likes.
fn wait_for(mounted: &Mounted, expected: (u64, u64)) {
    let came_back = (0..LOOKS).any(|_| free(mounted) == expected);
    assert!(came_back, "free pages and inodes: {:?} of {expected:?}", free(mounted));
}

#[test]
fn files_that_are_made_and_removed_leave_nothing() {
    if !can_mount() {
        return;
    }
    let count = std::env::var("SCALEFS_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let mounted = Mounted::new(&["--size", "1G"]);
    let before = free(&mounted);
    let directory = mounted.point.join("many");
    fs::create_dir(&directory).expect("there is room");
    let mut numbers = std::collections::HashSet::new();
    for number in 0..count {
        let mut file = File::create(directory.join(format!("file-{number}"))).expect("there is room");
        file.write_all(b"a page of its own").expect("there is room");
        numbers.insert(file.metadata().expect("it is open").ino());
    }
    assert_eq!(numbers.len(), count, "numbers are of one file each");
    assert_eq!(fs::read_dir(&directory).expect("it is there").count(), count);
    let (pages, inodes) = free(&mounted);
    assert_eq!((before.0 - pages, before.1 - inodes), (count as u64, count as u64 + 1));
    for number in 0..count {
        fs::remove_file(directory.join(format!("file-{number}"))).expect("it is there");
    }
    fs::remove_dir(&directory).expect("it is empty");
    wait_for(&mounted, before);
}

#[test]
fn a_removed_file_lives_as_long_as_it_is_open() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&["--size", "16M"]);
    let before = free(&mounted);
    let path = mounted.point.join("open");
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).expect("there is room");
    file.write_all(&vec![1; 1 << 20]).expect("there is room");
    fs::remove_file(&path).expect("it is there");
    file.write_all(&vec![2; 1 << 20]).expect("there is room");
    file.sync_all().expect("there is nothing to wait for");
    assert_eq!(file.metadata().expect("it is open").nlink(), 0);
    assert_eq!(before.0 - free(&mounted).0, 512);
    file.rewind().expect("it is a file");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("it is open");
    assert!(bytes.len() == 2 << 20 && bytes[..1 << 20].iter().all(|byte| *byte == 1));
    drop(file);
    wait_for(&mounted, before);
}

#[test]
fn a_full_file_system_says_so_and_goes_on() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&["--size", "4M"]);
    let before = free(&mounted);
    let path = mounted.point.join("large");
    let mut file = File::create(&path).expect("there is room");
    // The kernel writes back later: at the latest when it is asked to.
    let written = (0..8).try_for_each(|_| file.write_all(&vec![3; 1 << 20])).and_then(|()| file.sync_all());
    assert_eq!(written.expect_err("it is too large").raw_os_error(), Some(Errno::ENOSPC as i32));
    drop(file);
    fs::remove_file(&path).expect("it is there");
    wait_for(&mounted, before);
    fs::write(&path, vec![4; 3 << 20]).expect("there is room again");
    assert_eq!(fs::read(&path).expect("it is there"), vec![4; 3 << 20]);
}

#[test]
fn another_name_is_found_for_a_file_whose_last_known_name_has_gone() {
    if !can_mount() {
        return;
    }
    let mounted = Mounted::new(&["--size", "16M"]);
    let place = |name: &str| mounted.point.join(name);
    fs::create_dir_all(place("deep/er")).expect("there is room");
    fs::write(place("first"), "one file").expect("there is room");
    fs::hard_link(place("first"), place("deep/er/second")).expect("there is room");
    fs::hard_link(place("first"), place("third")).expect("there is room");
    fs::remove_file(place("third")).expect("it is there");
    fs::hard_link(place("first"), place("fourth")).expect("by another name");
    fs::rename(place("deep"), place("moved")).expect("it is there");
    fs::remove_file(place("fourth")).expect("it is there");
    fs::remove_file(place("first")).expect("it is there");
    fs::hard_link(place("moved/er/second"), place("fifth")).expect("by the last name");
    assert_eq!(fs::metadata(place("fifth")).expect("it is there").nlink(), 2);
    let open = File::open(place("fifth")).expect("it is there");
    fs::remove_file(place("fifth")).expect("it is there");
    fs::remove_file(place("moved/er/second")).expect("it is there");
    let through = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
    let linked = nix::unistd::linkat(
        nix::fcntl::AT_FDCWD,
        through.as_str(),
        nix::fcntl::AT_FDCWD,
        &place("sixth"),
        nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW,
    );
    assert_eq!(linked, Err(Errno::ENOENT), "it has no name any more");
}
