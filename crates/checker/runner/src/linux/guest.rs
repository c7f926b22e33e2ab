//! The life of the guest's init: mounts, hands the kernel's symbols to the host, starts the actors, and runs batches.
//!
//! The kernel's command line says what to do: `commutant.region=ADDRESS,SIZE` (see [`super::region`]), `commutant.fs=KIND`
//! and perhaps `commutant.mount=OPTIONS` (see [`super::file_system`]). The last virtual CPU is for the homes, the others run
//! calls under test. Whatever goes wrong is written to the console, and then init exits: the kernel panics, the virtual
//! machine ends, and the host reports the console's last lines.
//!
//! The host is given two texts on the way: the file systems that the kernel has, and the kernel's symbols.

use std::fs;
use std::io;
use std::time::Duration;

use wire::plan::Plan;

use super::family;
use super::file_system::{load_modules, mount, mount_under_test};
use super::processes;
use super::region::Region;
use super::target::Linux;
use super::{access, console};
use crate::crew::Crew;
use crate::place::CORE_LIMIT;
use crate::window::Interpreter;

/// Where the file system under test is mounted.
const ROOT: &str = "/w";

/// Shortest and longest sleep of the coordinator while there is nothing to do.
const IDLE_SLEEP: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(5));

/// What the kernel's command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    region_address: u64,
    region_bytes: usize,
    file_system: String,
    mount_options: String,
}

/// Runs as init of the guest. Returns why it cannot go on.
pub fn run() -> String {
    std::panic::set_hook(Box::new(|panic| console::complain(&panic.to_string())));
    match start() {
        Ok(why) => why,
        Err(error) => error.to_string(),
    }
}

fn start() -> io::Result<String> {
    mount("devtmpfs", "/dev", "devtmpfs", "")?;
    mount("proc", "/proc", "proc", "")?;
    let command_line = fs::read_to_string("/proc/cmdline")?;
    let options = parse(&command_line).map_err(io::Error::other)?;
    let mut region = Region::map(options.region_address, options.region_bytes)?;
    load_modules(&command_line)?;
    region.export(&fs::read("/proc/filesystems")?)?;
    mount_under_test(&options.file_system, &options.mount_options, ROOT)?;
    fs::write("/proc/sys/kernel/kptr_restrict", "0")?;
    region.export(&fs::read("/proc/kallsyms")?)?;
    // SAFETY: closes descriptors of which nothing holds an owner: init was started with the console on 0 to 2.
    if unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: sets this process's mask of permissions, and its children's.
    unsafe { libc::umask(0) };
    // SAFETY: has this process ignore a signal, and its children: writing to a pipe without readers is an error then.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    access::catch_faults()?;
    let slots = processes::shared_slots()?;
    family::share()?;
    let cpus = std::thread::available_parallelism()?.get();
    let core_count = cpus.saturating_sub(1).clamp(1, CORE_LIMIT);
    Ok(processes::run(slots, core_count, move |crew| coordinate(crew, region)))
}

/// Runs batches forever; returns after a complaint.
fn coordinate(crew: Crew<Linux>, mut region: Region) {
    let mut interpreter = Interpreter::new(Linux::new(ROOT), crew);
    let mut buffer = Vec::new();
    interpreter.warm_up();
    if let Err(error) = region.ready() {
        return console::complain(&error.to_string());
    }
    let mut idle = IDLE_SLEEP.0;
    loop {
        if !region.pending() {
            std::thread::sleep(idle);
            idle = (idle * 2).min(IDLE_SLEEP.1);
            continue;
        }
        idle = IDLE_SLEEP.0;
        let run = region.batch().and_then(|bytes| {
            let plan = Plan::decode(bytes).map_err(io::Error::other)?;
            let buffer = std::mem::take(&mut buffer);
            interpreter.run(&plan, buffer, |window| region.starting(window)).map_err(io::Error::other)
        });
        match run.and_then(|results| region.complete(&results).map(|()| results)) {
            Ok(results) => buffer = results,
            Err(error) => return console::complain(&error.to_string()),
        }
    }
}

fn parse(command_line: &str) -> Result<Options, String> {
    let given = |name: &str| {
        command_line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("commutant.")?.strip_prefix(name)?.strip_prefix('='))
    };
    let option = |name: &str| {
        given(name).ok_or_else(|| format!("the kernel's command line has no commutant.{name}=: {command_line}"))
    };
    let region = option("region")?;
    let number = |text: &str| {
        text.strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| format!("commutant.region={region}: expected two hexadecimal numbers"))
    };
    let (address, size) =
        region.split_once(',').ok_or_else(|| format!("commutant.region={region}: expected ADDRESS,SIZE"))?;
    Ok(Options {
        region_address: number(address)?,
        region_bytes: usize::try_from(number(size)?).map_err(|error| error.to_string())?,
        file_system: option("fs")?.to_owned(),
        mount_options: given("mount").unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_where_and_what() {
        let line = "quiet commutant.region=0x10000000,0x1000000 commutant.fs=ramfs panic=-1";
        let expected = |mount_options: &str| Options {
            region_address: 0x1000_0000,
            region_bytes: 0x100_0000,
            file_system: "ramfs".to_owned(),
            mount_options: mount_options.to_owned(),
        };
        assert_eq!(parse(line).unwrap(), expected(""));
        assert_eq!(parse(&format!("{line} commutant.mount=noatime,sync")).unwrap(), expected("noatime,sync"));
    }

    #[test]
    fn a_bad_command_line_is_named() {
        for bad in ["", "commutant.region=1,2 commutant.fs=x", "commutant.region=0x1 commutant.fs=x"] {
            assert!(parse(bad).unwrap_err().contains("commutant.region"), "{bad}");
        }
        assert!(parse("commutant.region=0x1,0x2").unwrap_err().contains("commutant.fs"));
    }
}
