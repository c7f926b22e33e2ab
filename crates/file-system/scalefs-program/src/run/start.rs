//! The memory of an instance is made, and the first process of its tree is started.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{getegid, geteuid, getgroups};
use scalefs::{Credentials, DataOperations, Follow, Start, attributes, directories};
use shared_instance::{Descriptors, Entry, SharedInstance, duplicate};

use super::options::RunOptions;
use super::program::Program;
use crate::copies;
use crate::server::config;

/// The loader, as it was built with this program; empty where there is none.
static LOADER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loader"));
/// The numbers that are hidden lie at this end of those that programs have, and at the end of what is allowed if that is less.
const NUMBERS_END: u64 = 1024;
const HIDDEN: u64 = 4;

/// A tree that no one runs in yet. The files stay open for the child.
pub(super) struct Made {
    pub(super) instance: SharedInstance,
    /// With the numbers that the child has.
    hidden: Vec<(u32, OwnedFd)>,
}

impl Made {
    /// The child has a file under this number, too, and programs do not know of it.
    pub(super) fn hide(&mut self, number: u32, file: OwnedFd) {
        self.hidden.push((number, file));
    }
}

pub(super) fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

fn said(what: &str) -> impl Fn(nix::errno::Errno) -> String + '_ {
    move |errno| format!("{what}: {}", errno.desc())
}

/// Makes the instance, with the directory of the tree and what `--from` asks for.
pub(super) fn make(options: &RunOptions, top: &Path) -> Result<Made, String> {
    if LOADER.is_empty() {
        return Err("expected Linux on x86-64, for which alone there is a loader: use scalefs mount".to_owned());
    }
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).map_err(said("asking how many files may be open"))?;
    let end = limit.min(NUMBERS_END);
    if end < 2 * HIDDEN + 8 {
        return Err(format!("expected that 16 files may be open, got {limit}: raise it by ulimit -n"));
    }
    let first = (end - HIDDEN) as u32;
    let descriptors = Descriptors { memory: first, loader: first + 1, placeholder: first + 2, stand_ins: first + 3 };
    let instance = SharedInstance::create(config(options.size_bytes), descriptors, top.as_os_str().as_bytes())
        .map_err(|error| error.to_string())?;
    if cfg!(feature = "planted-faults") {
        instance.control().plant(&std::env::var("COMMUTANT_PLANTED_FAULT").unwrap_or_default());
    }
    make_top(&instance, top)?;
    if let Some(from) = &options.from {
        let copied = copies::load(instance.files(), &bytes(top), from)?;
        eprintln!("scalefs: copied from {}: {copied}", from.display());
        instance.control().note_link_out();
    }
    let hidden = vec![
        (descriptors.memory, clone_of(instance.memory())?),
        (descriptors.loader, loader()?),
        (descriptors.placeholder, placeholder()?),
    ];
    Ok(Made { instance, hidden })
}

fn clone_of(file: BorrowedFd<'_>) -> Result<OwnedFd, String> {
    file.try_clone_to_owned().map_err(|error| format!("the memory of the instance: {error}"))
}

/// Makes the directories to the tree: the last belongs to who runs, with the mode of that which it hides.
fn make_top(instance: &SharedInstance, top: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("making the tree: {error}");
    let hidden = std::fs::metadata(top).map_err(|error| format!("--at {}: {error}", top.display()))?;
    for path in top.ancestors().collect::<Vec<_>>().into_iter().rev().skip(1) {
        let path = path.as_os_str().as_bytes();
        instance
            .files()
            .act(|calls| directories::make_directory(calls.objects(), Start::WorkingDirectory, path, 0o755))
            .map_err(wrong)?;
    }
    let (path, owner) = (top.as_os_str().as_bytes(), (Some(geteuid().as_raw()), Some(getegid().as_raw())));
    instance
        .files()
        .act(|calls| {
            let start = || Start::WorkingDirectory;
            attributes::change_owner(calls.objects(), start(), path, Follow::Nothing, owner)?;
            attributes::change_mode(calls.objects(), start(), path, hidden.mode() & 0o7777)
        })
        .map_err(wrong)
}

fn loader() -> Result<OwnedFd, String> {
    let file = memfd_create("scalefs-loader", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
        .map_err(said("a file for the loader"))?;
    let mut file = File::from(file);
    file.write_all(LOADER).map_err(|error| format!("a file for the loader: {error}"))?;
    seal(&file)?;
    Ok(file.into())
}

/// A file that can neither be read, since it is open for writing alone, nor written, since it is sealed. For `poll` it is a file.
fn placeholder() -> Result<OwnedFd, String> {
    let file = memfd_create("scalefs", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
        .map_err(said("a file for descriptors"))?;
    seal(&file)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let opened = OpenOptions::new().write(true).open(&path);
    opened.map(OwnedFd::from).map_err(|error| format!("a file for descriptors: {path}: {error}"))
}

fn seal(file: &impl AsFd) -> Result<(), String> {
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SEAL;
    fcntl(file.as_fd(), FcntlArg::F_ADD_SEALS(seals)).map(drop).map_err(said("sealing a file in memory"))
}

fn credentials() -> Result<Credentials, String> {
    let groups: Vec<u32> =
        getgroups().map_err(said("asking for groups"))?.into_iter().map(|group| group.as_raw()).collect();
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    Credentials::new(user, group, &groups).ok_or_else(|| format!("expected at most 32 groups, got {}", groups.len()))
}

/// The process's mask of permission bits, which the system tells only to who sets it.
fn umask() -> u32 {
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    mask.bits()
}

/// Starts the first process, with these signals blocked.
pub(super) fn start(
    made: &Made,
    options: &RunOptions,
    (top, program): (&Path, &Program),
    mask: u64,
) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("making the first process: {error}");
    let control = made.instance.control();
    let (seat_number, owner) =
        control.seats.take(Some(made.instance.owner())).ok_or("there is no seat for a process")?;
    let seat = control.seats.get(seat_number).ok_or("there is no such seat")?;
    let lease = made.instance.files().begin().map_err(wrong)?;
    let process = lease.begin_process(credentials()?).map_err(|errno| wrong(errno.into()))?;
    process.context().set_umask(umask());
    directories::change_directory(
        lease.calls_of(&process).objects(),
        Start::WorkingDirectory,
        top.as_os_str().as_bytes(),
    )
    .map_err(|errno| format!("{}: {}", top.display(), std::io::Error::from(errno)))?;
    let handed_over = made.instance.hand_over(process, owner);
    drop(lease);
    let entry = Entry { process: handed_over, works_inside: true, credentials: credentials()? };
    seat.set_entry(entry, program.loaded.as_os_str().as_bytes());
    let mut kept = Vec::new();
    for (number, file) in &made.hidden {
        kept.push(at_number(file, *number)?);
    }
    let mut command = Command::new(format!("/proc/self/fd/{}", control.descriptors.loader));
    let (first, rest) = program.arguments.split_first().ok_or("a program has a name")?;
    command.arg0(first).args(rest).args(&options.arguments).current_dir(top);
    command
        .env("SCALEFS_SEAT", format!("{seat_number},{}", control.descriptors.memory))
        .env("SCALEFS_SEAT2", mask.to_string());
    let child = command.spawn().map_err(|error| format!("starting the loader: {error}"))?;
    seat.set_process(owner, child.id().cast_signed());
    control.set_first(child.id().cast_signed());
    Ok(())
}

/// The file under a number that the child has, too, as long as this is kept.
fn at_number(file: &OwnedFd, number: u32) -> Result<OwnedFd, String> {
    let given = duplicate(file.as_fd(), number).map_err(|error| format!("giving a file its number: {error}"))?;
    match given.as_raw_fd() == number.cast_signed() {
        true => Ok(given),
        false => Err(format!("expected that no file is open under {number}, got one: close it before scalefs starts")),
    }
}
