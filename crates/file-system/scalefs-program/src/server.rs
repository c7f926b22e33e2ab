//! The server: holds the data, and answers the kernel until the mount is taken away.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fuser::{Config, MountOption, Session, SessionACL};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use scalefs::{DataOperations, FileSystem, ObjectOperations, OwnedConfig, attributes};

use crate::copies;
use crate::door::{AsItIs, Door, Greeting};
use crate::mounts;
use crate::options::MountOptions;
use crate::roles::{READY, be_silent};
use crate::transaction;
use crate::unmount::{InUse, take_away};

/// Of a program that a signal has ended.
const ENDED_BY_SIGNAL: i32 = 130;
/// Of a program of Rust that has panicked.
const ENDED_BY_PANIC: i32 = 101;
/// Names and inodes get a fourth of the room that data get, and this at least. Memory is taken as it is used.
const SMALLEST_METADATA_BYTES: usize = 64 << 20;
const DATA_FOR_METADATA: u64 = 4;
/// A request waits for no other, so that few do; more than processors, since some wait for memory.
const WORKERS_BEYOND_PROCESSORS: usize = 1;

/// `mount`, as the process that answers: returns when the mount was taken away and all is done.
pub(crate) fn serve(options: &MountOptions) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).map_err(|error| failed("guarding the guard", &error.desc()))?;
    // A worker that has gone would keep all callers waiting once it was the last.
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        exit(ENDED_BY_PANIC);
    }));
    let is_mounted = Arc::new(AtomicBool::new(false));
    end_by_signals(options, &is_mounted)?;
    let files =
        FileSystem::create(config(options.size_bytes)).map_err(|error| failed("making the file system", &error))?;
    if let Some(from) = &options.from {
        let copied = copies::load(&files, b"", from)?;
        eprintln!("scalefs: copied from {}: {copied}", from.display());
    }
    if options.from.is_none() {
        own_root(&files, options)?;
    }
    let greeting = Arc::new(Greeting::default());
    let view = AsItIs::new(&files).map_err(|error| failed("making the file system", &error))?;
    let door = Door::new(&files, Arc::new(view), options.caching, greeting.clone());
    let session = Session::new(door, &options.mount_point, &session_config(options));
    let session = session.map_err(|error| failed(&format!("mounting at {}", options.mount_point.display()), &error))?;
    is_mounted.store(true, Ordering::SeqCst);
    // The kernel has sent nothing but its greeting yet.
    let _ = greeting.notifier.set(session.notifier());
    if let Err(why) = transaction::listen(&files, &greeting) {
        eprintln!("scalefs: {why}");
    }
    println!("{READY}");
    let _ = std::io::stdout().flush();
    if !options.is_in_foreground {
        be_silent();
    }
    let answered = session.run().map_err(|error| failed("answering the kernel", &error));
    let Some(to) = &options.to else { return answered };
    let saved = copies::save(&files, b"", to).map(|copied| eprintln!("scalefs: copied to {}: {copied}", to.display()));
    // Who has unmounted is another process, and looks there.
    saved.inspect_err(|why| copies::say_failure(to, why)).and(answered)
}

/// Who mounts owns an empty root, and it has the mode of the directory at which it is mounted.
fn own_root(files: &FileSystem, options: &MountOptions) -> Result<(), String> {
    let at = options.mount_point.display();
    let mode = std::fs::metadata(&options.mount_point).map_err(|error| format!("{at}: {error}"))?.mode() & 0o7777;
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let owned = files.act(|calls| {
        let objects = calls.objects();
        attributes::change_owner_of(objects, objects.root(), (Some(user), Some(group)))?;
        attributes::change_mode_of(objects, objects.root(), mode)
    });
    owned.map_err(|error| format!("making the root: {error}"))
}

/// How large a file system is with so much room for data.
pub(crate) fn config(size_bytes: u64) -> OwnedConfig {
    let metadata_bytes = usize::try_from(size_bytes / DATA_FOR_METADATA).unwrap_or(usize::MAX);
    OwnedConfig {
        metadata_bytes: metadata_bytes.max(SMALLEST_METADATA_BYTES),
        page_count: u32::try_from(size_bytes / 4096).unwrap_or(u32::MAX - 1),
        hash_seed: random(),
        ..OwnedConfig::default()
    }
}

/// Another number in each process.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

fn session_config(options: &MountOptions) -> Config {
    let is_root = nix::unistd::geteuid().is_root();
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(mounts::source_of(std::process::id())),
        MountOption::DefaultPermissions,
        if options.obeys_set_ids { MountOption::Suid } else { MountOption::NoSuid },
        if options.obeys_devices { MountOption::Dev } else { MountOption::NoDev },
    ];
    // Others may come in where root lets them.
    config.acl = if is_root { SessionACL::All } else { SessionACL::Owner };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    config.n_threads = Some(processors + WORKERS_BEYOND_PROCESSORS);
    config.clone_fd = true;
    config
}

/// Unmounts when the process is asked to end. A mount in use is detached, so that nothing is lost that somebody still writes;
/// the second time the process ends at once.
fn end_by_signals(options: &MountOptions, is_mounted: &Arc<AtomicBool>) -> Result<(), String> {
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect::<SigSet>();
    let wrong = |error: Errno| format!("waiting for signals: {}", error.desc());
    signals.thread_block().map_err(wrong)?;
    let signals = SignalFd::new(&signals).map_err(wrong)?;
    let (mount_point, is_mounted) = (options.mount_point.clone(), is_mounted.clone());
    let mut is_ending = false;
    thread::spawn(move || {
        while let Ok(Some(signal)) = signals.read_signal() {
            if !is_mounted.load(Ordering::SeqCst) || is_ending {
                exit(ENDED_BY_SIGNAL);
            }
            // What comes from the terminal comes from the guard, too.
            if signal.ssi_signo != Signal::SIGTERM as u32 {
                continue;
            }
            is_ending = true;
            if take_away(&mount_point, InUse::Refuse).is_err() {
                eprintln!("scalefs: {} is in use: it ends with its last user", mount_point.display());
                let _ = take_away(&mount_point, InUse::Detach);
            }
        }
    });
    Ok(())
}
