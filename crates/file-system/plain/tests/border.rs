//! The border itself: each operation may fail and ends its call then, and the shortcuts give what their steps give.

use plain::{Plain, Process};
use posix_calls::attributes::{self, Access, NewTime};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::directories;
use posix_calls::memory::{self, Address, Destination, MappedObject};
use posix_calls::names::{self, RenameMode};
use posix_calls::{
    Credentials, Errno, Fields, Follow, Kind, NumberChoice, OnExec, OpenFlags, Protection, Sharing, Start,
};

const READ_WRITE: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
const CREATE: OpenFlags = READ_WRITE.union(OpenFlags::CREATE);

/// Calls of all kinds, each with a name. Paths lead through directories and symbolic links.
type NamedCall = (&'static str, fn(&plain::Call<'_>) -> Result<String, Errno>);

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn open(call: &plain::Call<'_>, path: &[u8], flags: OpenFlags) -> Result<u32, Errno> {
    data::open(call, at(), path, flags, 0o644, DescriptorOptions::PLAIN)
}

const CALLS: &[NamedCall] = &[
    ("open", |call| open(call, b"/d/e/f", READ_WRITE).map(|fd| fd.to_string())),
    ("open a link", |call| open(call, b"through/e/../to-f", OpenFlags::READ).map(|fd| fd.to_string())),
    ("open with O_TRUNC", |call| open(call, b"d/e/f", READ_WRITE | OpenFlags::TRUNCATE).map(|fd| fd.to_string())),
    ("create", |call| open(call, b"d//new", CREATE).map(|fd| fd.to_string())),
    ("create through a link", |call| open(call, b"dangling", CREATE).map(|fd| fd.to_string())),
    ("create what exists", |call| open(call, b"d/e/f", CREATE | OpenFlags::EXCLUSIVE).map(|fd| fd.to_string())),
    ("link", |call| names::link(call, (at(), b"through/e/f"), (at(), b"d/l"), Follow::Nothing).map(|()| "".into())),
    ("link a directory", |call| names::link(call, (at(), b"d"), (at(), b"l"), Follow::Nothing).map(|()| "".into())),
    ("symlink", |call| names::symlink(call, b"nowhere", at(), b"d/e/s").map(|()| "".into())),
    ("readlink", |call| names::read_link(call, at(), b"d/to-f").map(|target| format!("{target:?}"))),
    ("mknod", |call| names::make_node(call, at(), b"d/e/fifo", (Kind::NamedPipe, 7), 0o640).map(|()| "".into())),
    ("mknod of a device", |call| {
        names::make_node(call, at(), b"d/disk", (Kind::BlockDevice, 7), 0o640)?;
        let (found, device) = attributes::stat_with_device(call, at(), b"d/disk", Follow::Symlinks, Fields::ALL)?;
        Ok(format!("{found:?} {device}"))
    }),
    ("unlink", |call| names::unlink(call, at(), b"d/e/f").map(|()| "".into())),
    ("rename", |call| names::rename(call, (at(), b"d/e/f"), (at(), b"g"), RenameMode::Replace).map(|()| "".into())),
    ("rename a directory", |call| {
        names::rename(call, (at(), b"d/e"), (at(), b"empty"), RenameMode::Replace).map(|()| "".into())
    }),
    ("rename over names", |call| {
        names::rename(call, (at(), b"empty"), (at(), b"d"), RenameMode::Replace).map(|()| "".into())
    }),
    ("rename under itself", |call| {
        names::rename(call, (at(), b"d"), (at(), b"d/e/x"), RenameMode::Replace).map(|()| "".into())
    }),
    ("exchange", |call| names::rename(call, (at(), b"d/e"), (at(), b"g"), RenameMode::Exchange).map(|()| "".into())),
    ("rename to what exists", |call| {
        names::rename(call, (at(), b"g"), (at(), b"d/e/f"), RenameMode::NoReplace).map(|()| "".into())
    }),
    ("mkdir", |call| directories::make_directory(call, at(), b"d/e/new/", 0o755).map(|()| "".into())),
    ("rmdir", |call| directories::remove_directory(call, at(), b"empty").map(|()| "".into())),
    ("rmdir with names", |call| directories::remove_directory(call, at(), b"d").map(|()| "".into())),
    ("getdents", |call| {
        let mut names = String::new();
        let count = data::read_directory(call, 1, |entry| {
            names += &format!("{} {:?} ", String::from_utf8_lossy(entry.name), entry.kind);
            names.len() < 20
        })?;
        Ok(format!("{count}: {names}, then at {}", data::seek(call, 1, 0, Whence::Current)?))
    }),
    ("fcntl with F_GETFD", |call| data::on_exec(call, 1).map(|on_exec| format!("{on_exec:?}"))),
    ("readdir", |call| {
        let mut names = String::new();
        directories::read_directory(call, data::node(call, 1)?, 0, |entry| {
            names += &format!("{} {:?} ", String::from_utf8_lossy(entry.name), entry.number);
            true
        })?;
        Ok(names)
    }),
    ("chdir and getcwd", |call| {
        directories::change_directory(call, at(), b"through/e")?;
        directories::working_directory_path(call, &mut [0; 64]).map(|path| format!("{path:?}"))
    }),
    ("stat", |call| {
        attributes::stat(call, at(), b"through/to-f", Follow::Symlinks, Fields::ALL).map(|status| format!("{status:?}"))
    }),
    ("stat of a loop", |call| {
        attributes::stat(call, at(), b"loop/x", Follow::Symlinks, Fields::ALL).map(|status| format!("{status:?}"))
    }),
    ("access", |call| {
        let wanted = Access { read: true, write: true, execute: false };
        attributes::access(call, at(), b"d/e/f", Follow::Symlinks, wanted).map(|()| "".into())
    }),
    ("chmod", |call| attributes::change_mode(call, at(), b"d/e/f", 0o6777).map(|()| "".into())),
    ("chown", |call| {
        attributes::change_owner(call, at(), b"d/e/f", Follow::Symlinks, (None, Some(7))).map(|()| "".into())
    }),
    ("utimensat", |call| {
        let times = (NewTime::At(5), NewTime::Now);
        attributes::set_times(call, at(), b"d/e/f", Follow::Symlinks, times).map(|()| "".into())
    }),
    ("statvfs", |call| attributes::space(call).map(|space| format!("{space:?}"))),
    ("read", |call| {
        let mut bytes = [0; 6];
        data::read(call, 0, &mut bytes).map(|read| format!("{:?}", &bytes[..read]))
    }),
    ("write", |call| data::write(call, 0, b"more").map(|written| written.to_string())),
    ("pread", |call| data::read_at(call, 0, &mut [0; 6], 2).map(|read| read.to_string())),
    ("pwrite", |call| data::write_at(call, 0, b"more", 5000).map(|written| written.to_string())),
    ("lseek", |call| data::seek(call, 0, -1, Whence::End).map(|offset| offset.to_string())),
    ("ftruncate", |call| data::truncate(call, 0, 3).map(|()| "".into())),
    ("truncate", |call| data::truncate_path(call, at(), b"d/to-f", 3).map(|()| "".into())),
    ("fstat", |call| data::stat(call, 0, Fields::ALL).map(|status| format!("{status:?}"))),
    ("close", |call| data::close(call, 0).map(|()| "".into())),
    ("dup", |call| data::duplicate(call, 0, NumberChoice::LowestFrom(5), OnExec::Close).map(|fd| fd.to_string())),
    ("dup2", |call| data::duplicate_to(call, 0, 1, OnExec::Keep).map(|fd| fd.to_string())),
    ("pipe", |call| data::pipe(call, DescriptorOptions::PLAIN).map(|ends| format!("{ends:?}"))),
    ("read of a pipe", |call| data::read(call, 2, &mut [0; 6]).map(|read| read.to_string())),
    ("write to a pipe", |call| data::write(call, 3, b"bytes").map(|written| written.to_string())),
    ("poll", |call| data::poll(call, 2).map(|state| format!("{state:?}"))),
    ("poll for each", |call| data::ready(call, 3).map(|ready| format!("{ready:?}"))),
    ("fsync", |call| data::synchronize(call, 0).map(|()| "".into())),
];

/// More operations than a call has.
const ENOUGH: u32 = 1000;

fn call<T>(file_system: &Plain, process: &Process, made: impl FnOnce(&plain::Call<'_>) -> T) -> T {
    made(&file_system.begin(process))
}

/// A tree with a file open as 0, a directory as 1 and a pipe as 2 and 3, for a caller who is not the superuser.
fn world() -> (Plain, Process) {
    let file_system = Plain::default();
    let superuser = Process::new(&file_system, Credentials::SUPERUSER);
    call(&file_system, &superuser, |call| attributes::change_mode(call, at(), b"/", 0o777)).unwrap();
    superuser.exit(&file_system);
    let process = Process::new(&file_system, Credentials::new(5, 5, &[7]).unwrap());
    let made = |call: &plain::Call<'_>| {
        for path in [&b"d"[..], b"d/e", b"empty"] {
            directories::make_directory(call, at(), path, 0o755)?;
        }
        for (target, path) in
            [(&b"d"[..], &b"through"[..]), (b"e/f", b"d/to-f"), (b"d/n", b"dangling"), (b"loop", b"loop")]
        {
            names::symlink(call, target, at(), path)?;
        }
        open(call, b"g", CREATE).and_then(|fd| data::close(call, fd))?;
        assert_eq!(open(call, b"d/e/f", CREATE)?, 0);
        data::write(call, 0, b"contents")?;
        data::seek(call, 0, 3, Whence::Start)?;
        assert_eq!(open(call, b"d", OpenFlags::READ)?, 1);
        assert_eq!(data::pipe(call, DescriptorOptions::PLAIN)?, (2, 3));
        data::write(call, 3, b"waiting").map(drop)
    };
    call(&file_system, &process, made).unwrap();
    (file_system, process)
}

#[test]
fn a_fault_at_any_operation_ends_the_call_with_it() {
    let mut operations = 0;
    for (name, made) in CALLS {
        let (file_system, process) = world();
        file_system.fail_after(Some(ENOUGH));
        let _ = call(&file_system, &process, made);
        let asked = ENOUGH - file_system.successes_left().expect("a limit was set");
        assert!(asked > 0, "{name} has asked nothing");
        for successes in 0..asked {
            let (file_system, process) = world();
            file_system.fail_after(Some(successes));
            let outcome = call(&file_system, &process, made);
            assert_eq!(outcome, Err(Errno::EIO), "{name}, of whose {asked} operations only {successes} succeed");
        }
        operations += asked;
    }
    // A test that tries nothing shows nothing.
    assert!(operations > 400, "{operations} operations failed");
}

#[test]
fn shortcuts_give_what_their_steps_give() {
    for (name, made) in CALLS {
        let (by_steps, process) = world();
        let outcome = call(&by_steps, &process, made);
        let (by_shortcuts, other) = world();
        by_shortcuts.take_shortcuts(true);
        assert_eq!(call(&by_shortcuts, &other, made), outcome, "{name}");
        assert_eq!((&by_shortcuts, &other), (&by_steps, &process), "what {name} leaves");
    }
}

#[test]
fn shortcuts_save_operations() {
    let asked = |takes| {
        let (file_system, process) = world();
        file_system.take_shortcuts(takes);
        file_system.fail_after(Some(ENOUGH));
        call(&file_system, &process, |call| open(call, b"/d/e/f", OpenFlags::READ)).unwrap();
        ENOUGH - file_system.successes_left().unwrap()
    };
    assert!(asked(true) < asked(false), "{} operations with shortcuts, {} without", asked(true), asked(false));
}

#[test]
fn nothing_is_left_of_what_was_removed() {
    let (file_system, process) = world();
    let made = |call: &plain::Call<'_>| {
        for path in [&b"d/e/f"[..], b"d/to-f", b"through", b"dangling", b"loop", b"g"] {
            names::unlink(call, at(), path)?;
        }
        for path in [&b"d/e"[..], b"d", b"empty"] {
            directories::remove_directory(call, at(), path)?;
        }
        // It is still open.
        assert_eq!(data::stat(call, 1, Fields::ALL)?.link_count, 0);
        Ok::<(), Errno>(())
    };
    call(&file_system, &process, made).unwrap();
    process.exit(&file_system);
    let superuser = Process::new(&file_system, Credentials::SUPERUSER);
    let space = call(&file_system, &superuser, |call| attributes::space(call)).unwrap();
    assert_eq!((space.free_inodes, space.free_blocks), (space.inodes, space.blocks));
}

/// Linux `mremap`: EFAULT for pages that are not one mapping, whatever sets them apart.
#[test]
fn pages_of_two_mappings_do_not_grow_together() {
    const PAGE: u64 = 4096;
    let (file_system, process) = world();
    let own = MappedObject::Anonymous;
    let of_file = |page| MappedObject::File { fd: 0, offset: page * PAGE, sharing: Sharing::Private };
    let pairs = [
        ("the same", (Protection::Read, own), true),
        ("other rights", (Protection::ReadWrite, own), false),
        ("a file", (Protection::Read, of_file(0)), false),
    ];
    for (what, (protection, object), is_one) in pairs {
        let grown = call(&file_system, &process, |call| {
            memory::map(call, Address::Fixed(100 * PAGE), PAGE, Protection::Read, own)?;
            memory::map(call, Address::Fixed(101 * PAGE), PAGE, protection, object)?;
            memory::unmap(call, 102 * PAGE, PAGE)?;
            memory::remap(call, 100 * PAGE, 2 * PAGE, 3 * PAGE, Destination::Same)
        });
        assert_eq!(grown, if is_one { Ok(100 * PAGE) } else { Err(Errno::EFAULT) }, "{what}");
    }
    for (second, is_one) in [(1, true), (0, false), (2, false)] {
        let grown = call(&file_system, &process, |call| {
            memory::map(call, Address::Fixed(100 * PAGE), PAGE, Protection::Read, of_file(0))?;
            memory::map(call, Address::Fixed(101 * PAGE), PAGE, Protection::Read, of_file(second))?;
            memory::unmap(call, 102 * PAGE, PAGE)?;
            memory::remap(call, 100 * PAGE, 2 * PAGE, 3 * PAGE, Destination::Same)
        });
        assert_eq!(grown, if is_one { Ok(100 * PAGE) } else { Err(Errno::EFAULT) }, "pages 0 and {second} of a file");
    }
}

/// What `plain` does not model is refused, and nothing below it.
#[test]
fn as_many_pages_as_are_modelled_can_be_mapped() {
    const LARGEST: u64 = 1 << 16;
    let file_system = Plain::default();
    let process = Process::new(&file_system, Credentials::SUPERUSER);
    let call = file_system.begin(&process);
    let map =
        |pages: u64| memory::map(&call, Address::Any, pages * 4096, Protection::ReadWrite, MappedObject::Anonymous);
    assert!(map(LARGEST).is_ok());
    assert_eq!(map(LARGEST + 1), Err(Errno::ENOMEM));
}
