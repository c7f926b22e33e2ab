//! What posix_spawn and fork cost a process with many descriptors that `exec` closes, here and on the host, and one with many
//! mapped pages: `cargo run --release -p scalefs --example spawn_cost`. Nanoseconds for a process that is made, ends and is waited for; the
//! best of some rounds. The host's process runs `/bin/true`, so that only its growth can be compared. Linux.

use std::hint::black_box;
use std::time::Instant;

use percpu::{Core, OwnerId};
use scalefs::data::{self, DescriptorOptions};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::processes;
use scalefs::{
    Credentials, NumberChoice, OnExec, OpenFlags, OwnedConfig, OwnedScaleFs, Process, Protection, ScaleFs,
    SpawnOptions, Start, Which,
};
use sync::Spin;

const SURVIVING: u32 = 3;
/// Where memory is mapped.
const MEMORY: u64 = 16 << 20;
const PAGE: u64 = 4096;

/// Nanoseconds that an act takes, at best.
fn best_ns(rounds: usize, count: u32, mut act: impl FnMut()) -> f64 {
    let round = |_| {
        let begin = Instant::now();
        (0..count).for_each(|_| act());
        begin.elapsed().as_nanos() as f64 / f64::from(count)
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
}

fn end(fs: &ScaleFs, core: &Core<'_>, parent: &Process, child: Process) {
    child.exit(fs, core, &Spin);
    black_box(processes::wait(&fs.enter(core, parent, &Spin), Which::Any)).expect("a child that has ended");
    fs.maintain(core, &Spin);
}

/// What a parent has many of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Many {
    Descriptors,
    Pages,
}

/// A process with three descriptors that survive `exec`, and so many that do not, or pages of its own.
fn parent(fs: &ScaleFs, core: &Core<'_>, (what, count): (Many, u32)) -> Result<Process, Box<dyn std::error::Error>> {
    let process = Process::new(fs, core, Credentials::SUPERUSER)?;
    let call = || fs.enter(core, &process, &Spin);
    let flags = OpenFlags::READ | OpenFlags::CREATE;
    let first = data::open(&call(), Start::WorkingDirectory, b"f", flags, 0o600, DescriptorOptions::PLAIN)?;
    for _ in 1..SURVIVING {
        data::duplicate(&call(), first, NumberChoice::LowestFrom(0), OnExec::Keep)?;
    }
    for number in 0..count {
        if what == Many::Descriptors {
            data::duplicate_to(&call(), first, SURVIVING + number, OnExec::Close)?;
        } else {
            // Each second one: none is folded with another.
            let place = MEMORY + 2 * PAGE * u64::from(number);
            memory::map(&call(), Address::Fixed(place), PAGE, Protection::ReadWrite, MappedObject::Anonymous)?;
        }
        if number % 64 == 0 {
            fs.maintain(core, &Spin);
        }
    }
    Ok(process)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = OwnedConfig { metadata_bytes: 1 << 30, ..OwnedConfig::default() };
    let owned = OwnedScaleFs::create(config)?;
    let fs = owned.file_system();
    let core = owned.claim(0, OwnerId::new(1).ok_or("no owner")?)?;
    for (what, name) in [(Many::Descriptors, "close-on-exec"), (Many::Pages, "mapped pages")] {
        println!("{name:>16} {:>12} {:>12} {:>12}", "spawn (ns)", "fork (ns)", "host's spawn");
        for count in [3, 100, 1_000, 10_000, 100_000] {
            let process = parent(fs, &core, (what, count))?;
            let call = || fs.enter(&core, &process, &Spin);
            let spawn = best_ns(9, 200, || {
                let child = processes::spawn(&call(), &[], SpawnOptions::default()).expect("a process");
                end(fs, &core, &process, child);
            });
            let fork = best_ns(3, (20_000 / count).clamp(1, 200), || {
                let child = process.fork(fs, &core, &Spin).expect("a process");
                end(fs, &core, &process, child);
            });
            println!("{count:>16} {spawn:>12.0} {fork:>12.0} {:>12}", host_ns(what, count));
            process.exit(fs, &core, &Spin);
            (0..8).for_each(|_| fs.maintain(&core, &Spin));
        }
    }
    Ok(())
}

/// The same on the host; a dash where it does not let a process have so many descriptors, and for pages.
#[cfg(unix)]
fn host_ns(what: Many, count: u32) -> String {
    use std::fs::File;
    use std::process::Command;
    if what == Many::Pages {
        return "-".into();
    }
    // The library opens files so that `exec` closes them.
    let Ok(files) = (0..count).map(|_| File::open("/dev/null")).collect::<Result<Vec<_>, _>>() else {
        return "-".into();
    };
    let ns = best_ns(3, 20, || {
        black_box(Command::new("/bin/true").status()).expect("/bin/true");
    });
    drop(files);
    format!("{ns:.0}")
}

#[cfg(not(unix))]
fn host_ns(_: Many, _: u32) -> String {
    "-".into()
}
