//! Random file actions of posix_spawn on ScaleFS and on the host, whose new process tells what it got: the same errors, or the
//! same descriptors and the same working directory.
#![cfg(all(not(loom), target_os = "linux", target_env = "gnu"))]

mod instance;

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};

use call_language::Random;
use instance::with_instance;
use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    DataOperations, Errno, Fields, FileAction, Follow, OnExec, OpenFlags, SpawnOptions, Start, StatusFlags, attributes,
    directories, names, processes,
};
use sync::Spin;

/// Numbers that only this test uses, in both processes.
const FIRST: u32 = 100;
const NUMBERS: usize = 7;
/// Open from the start: every second one survives `exec`.
const OPEN: [&str; 4] = ["a", "b", "d/a", "d/b"];
const PATHS: [&str; 6] = ["a", "b", "d", "d/a", "missing/a", "new"];
const CASES: u64 = 150;

/// What the new process has: descriptors, by number, and where it works, as paths; or why there is none.
type Got = Result<(BTreeMap<u32, String>, String), i32>;

fn on_exec(place: usize) -> OnExec {
    [OnExec::Keep, OnExec::Close][place % 2]
}

fn action(random: &mut Random) -> FileAction<'static> {
    let number = FIRST + random.below(NUMBERS) as u32;
    let path = PATHS[random.below(PATHS.len())].as_bytes();
    match random.below(7) {
        0 | 1 => FileAction::Open {
            number,
            path,
            flags: [OpenFlags::READ, OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE][random.below(2)],
            status: StatusFlags::NONE,
            permissions: 0o644,
        },
        2 => FileAction::Close(number),
        3 => FileAction::ChangeDirectory(path),
        _ => FileAction::Duplicate { number, target: FIRST + random.below(NUMBERS) as u32 },
    }
}

/// On ScaleFS.
fn ours(actions: &[FileAction<'_>]) -> Got {
    let mut got = Err(0);
    with_instance(16, |instance| {
        let fs = instance.fs;
        let core = instance.core(0);
        let process = instance.process(&core);
        let call = || fs.enter(&core, &process, &Spin);
        directories::make_directory(call().objects(), Start::WorkingDirectory, b"d", 0o755).unwrap();
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        for (place, path) in OPEN.iter().enumerate() {
            let opened =
                data::open(&call(), Start::WorkingDirectory, path.as_bytes(), flags, 0o644, DescriptorOptions::PLAIN);
            data::duplicate_to(&call(), opened.unwrap(), FIRST + place as u32, on_exec(place)).unwrap();
            data::close(&call(), opened.unwrap()).unwrap();
        }
        let spawned = processes::spawn(&call(), actions, SpawnOptions::default());
        let files = ["", "a", "b", "new", "d", "d/a", "d/b", "d/new"];
        let path_of = |number| {
            let path = files.iter().find(|path| {
                let path = format!("/{path}");
                let found = attributes::stat(
                    call().objects(),
                    Start::WorkingDirectory,
                    path.as_bytes(),
                    Follow::Nothing,
                    Fields::IDENTITY,
                );
                found.is_ok_and(|found| found.number == number)
            });
            path.expect("a file of the test").to_string()
        };
        got = spawned.map_err(Errno::number).map(|child| {
            let mut numbers = Vec::new();
            child.for_each_descriptor(fs, &core, |number| numbers.push(number));
            let in_child = || fs.enter(&core, &child, &Spin);
            let descriptors = numbers
                .into_iter()
                .map(|fd| (fd, path_of(data::stat(&in_child(), fd, Fields::IDENTITY).unwrap().number)))
                .collect();
            let mut buffer = [0; 100];
            let place = directories::working_directory_path(in_child().objects(), &mut buffer).unwrap();
            let place = str::from_utf8(place).unwrap().trim_start_matches('/').to_owned();
            child.exit(fs, &core, &Spin);
            (descriptors, place)
        });
        for path in files.iter().rev().filter(|path| !path.is_empty() && **path != "d") {
            let _ = names::unlink(call().objects(), Start::WorkingDirectory, path.as_bytes());
        }
        directories::remove_directory(call().objects(), Start::WorkingDirectory, b"d").unwrap();
        process.exit(fs, &core, &Spin);
    });
    got
}

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn flags_of(flags: OpenFlags) -> c_int {
    let mode = if flags.contains(OpenFlags::WRITE) { libc::O_RDWR } else { libc::O_RDONLY };
    mode | if flags.contains(OpenFlags::CREATE) { libc::O_CREAT } else { 0 }
}

/// On the host, whose new process is `ls`: it lists its own descriptors and where it works.
fn hosts(actions: &[FileAction<'_>], folder: &Path) -> Got {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder.join("d")).unwrap();
    std::env::set_current_dir(folder).unwrap();
    for (place, path) in OPEN.iter().enumerate() {
        let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        let flags = if on_exec(place) == OnExec::Close { libc::O_CLOEXEC } else { 0 };
        // SAFETY: a number that nobody else uses.
        assert!(unsafe { libc::dup3(file.as_raw_fd(), (FIRST as usize + place) as c_int, flags) } > 0);
    }
    let mut ends = [0; 2];
    // SAFETY: room for two numbers.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let arguments: Vec<CString> = ["ls", "-ld", "/proc/self/cwd"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..NUMBERS).map(|place| format!("/proc/self/fd/{}", FIRST as usize + place)))
        .map(|argument| CString::new(argument).unwrap())
        .collect();
    let argv: Vec<*mut c_char> =
        arguments.iter().map(|argument| argument.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect();
    let paths = |path: &[u8]| CString::new(path).unwrap();
    let (mut process, mut status) = (0, 0);
    // SAFETY: the actions are made before they are used and unmade after; glibc copies paths; both lists end in null.
    let refused = unsafe {
        let mut made = std::mem::zeroed::<libc::posix_spawn_file_actions_t>();
        assert_eq!(libc::posix_spawn_file_actions_init(&raw mut made), 0);
        for action in actions {
            let added = match *action {
                FileAction::Open { number, path, flags, permissions, .. } => libc::posix_spawn_file_actions_addopen(
                    &raw mut made,
                    number as c_int,
                    paths(path).as_ptr(),
                    flags_of(flags),
                    permissions,
                ),
                FileAction::Close(number) => libc::posix_spawn_file_actions_addclose(&raw mut made, number as c_int),
                FileAction::Duplicate { number, target } => {
                    libc::posix_spawn_file_actions_adddup2(&raw mut made, number as c_int, target as c_int)
                }
                FileAction::ChangeDirectory(path) => {
                    libc::posix_spawn_file_actions_addchdir_np(&raw mut made, paths(path).as_ptr())
                }
            };
            assert_eq!(added, 0);
        }
        libc::posix_spawn_file_actions_adddup2(&raw mut made, ends[1], 1);
        libc::posix_spawn_file_actions_addopen(&raw mut made, 2, c"/dev/null".as_ptr(), libc::O_WRONLY, 0);
        let environment = [c"LC_ALL=C".as_ptr().cast_mut(), std::ptr::null_mut()];
        let refused = libc::posix_spawn(
            &raw mut process,
            c"/bin/ls".as_ptr(),
            &raw const made,
            std::ptr::null(),
            argv.as_ptr(),
            environment.as_ptr(),
        );
        libc::posix_spawn_file_actions_destroy(&raw mut made);
        libc::close(ends[1]);
        refused
    };
    // SAFETY: the end is ours, and nobody else closes it.
    let mut output = unsafe { std::fs::File::from_raw_fd(ends[0]) };
    let mut told = String::new();
    output.read_to_string(&mut told).unwrap();
    if refused != 0 {
        return Err(refused);
    }
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    let mut got = (BTreeMap::new(), String::new());
    for line in told.lines() {
        let (link, target) = line.split_once(" -> ").expect("a symbolic link");
        let target = Path::new(target).strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        match link.rsplit_once('/').expect("a path").1 {
            "cwd" => got.1 = target,
            number => _ = got.0.insert(number.parse().unwrap(), target),
        }
    }
    Ok(got)
}

/// Makes new processes on both; how many were made, and why others were not.
fn compare(folder: &Path) -> (usize, BTreeMap<i32, usize>) {
    let (mut made, mut refused) = (0, BTreeMap::new());
    for seed in 0..CASES {
        let random = &mut Random::new(seed);
        let actions: Vec<FileAction<'_>> = (0..random.below(6)).map(|_| action(random)).collect();
        let (ours, hosts) = (ours(&actions), hosts(&actions, folder));
        assert_eq!(ours, hosts, "{actions:?}");
        match hosts {
            Ok(_) => made += 1,
            Err(errno) => *refused.entry(errno).or_insert(0) += 1,
        }
    }
    (made, refused)
}

#[test]
fn a_new_process_has_what_it_has_on_the_host() {
    let folder = std::env::temp_dir().join(format!("scalefs-spawn-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let folder = Folder(folder.canonicalize().unwrap());
    let (made, refused) = compare(&folder.0);
    println!("{made} processes, and why there are no others: {refused:?}");
    assert!(made > 30 && refused.len() >= 4, "{made} {refused:?}");
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("scalefs: file actions look at the parent alone", || compare(&folder.0));
    std::env::set_current_dir("/").unwrap();
}
