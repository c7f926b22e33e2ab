//! Programs in transactions, plainly, and on tmpfs; a directory service; and what transactions and others are to each other:
//! `cargo bench -p transact --bench workloads [-- SAMPLES]`. A line is a name, a unit, and all samples.

use std::io;

use posix_calls::Errno;
use scalefs::{FileSystem, OwnedConfig};
use transact::Transactions as _;

#[path = "../../examples/door/mod.rs"]
mod door;
mod host;
mod neighbours;
#[path = "../../examples/directory_service/service.rs"]
mod service;
mod suites;

use door::Door;
use host::Host;
use suites::{Phase, Suite};

/// A file system with room for all of a suite, and what transactions keep of it.
fn files() -> io::Result<FileSystem> {
    FileSystem::create(OwnedConfig { metadata_bytes: 128 << 20, page_count: 8 << 10, core_count: 4, hash_seed: 1 })
}

/// Nanoseconds that this thread spends on its processor.
fn processor_ns_of(work: impl FnOnce()) -> f64 {
    let now = || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is ours to write.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) }, 0);
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    };
    let start = now();
    work();
    now() - start
}

fn print(name: &str, unit: &str, samples: &[f64]) {
    let samples: Vec<String> = samples.iter().map(|sample| format!("{sample:.4}")).collect();
    println!("{name}\t{unit}\t{}", samples.join(" "));
}

/// Processor time of each phase, up to the first that is refused.
fn times(suite: &Suite, mut run: impl FnMut(&Phase) -> io::Result<()>, door: &dyn Door) -> io::Result<Vec<f64>> {
    suite.before.iter().try_for_each(|part| part(door))?;
    let mut times = Vec::new();
    for phase in &suite.phases {
        let mut outcome = Ok(());
        let ns = processor_ns_of(|| outcome = run(phase));
        match outcome {
            Ok(()) => times.push(ns),
            Err(error) if error.raw_os_error() == Some(Errno::EOPNOTSUPP.number()) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(times)
}

/// Each phase three ways in turn, so that a slow time of the machine strikes all of them.
fn suite(suite: &Suite, samples: usize) -> io::Result<()> {
    let mut ratios: Vec<[Vec<f64>; 2]> = suite.phases.iter().map(|_| Default::default()).collect();
    for _ in 0..samples {
        let plainly = |door: &dyn Door, phase: &Phase| phase.parts.iter().try_for_each(|part| part(door));
        let ours = files()?;
        let root = ours.root()?;
        let plain = times(suite, |phase| plainly(&root, phase), &root)?;
        let ours = files()?;
        let together = |phase: &Phase| phase.parts.iter().try_for_each(|part| ours.transaction(|t| part(&**t)));
        let together = times(suite, together, &ours.root()?)?;
        let host = Host::new()?;
        let tmpfs = times(suite, |phase| plainly(&host, phase), &host)?;
        for (phase, together) in together.iter().enumerate() {
            ratios[phase][0].push(together / plain[phase]);
            ratios[phase][1].push(together / tmpfs[phase]);
        }
    }
    for (phase, [of_plain, of_tmpfs]) in suite.phases.iter().zip(&ratios).filter(|(_, ratios)| !ratios[0].is_empty()) {
        print(&format!("{}, in transactions, of outside", phase.name), "", of_plain);
        print(&format!("{}, in transactions, of tmpfs", phase.name), "", of_tmpfs);
    }
    Ok(())
}

/// Entries added to a directory service, and deleted, each in a transaction, against the same without.
fn directory_service(samples: usize) -> io::Result<()> {
    const ENTRIES: usize = 500;
    let files = files()?;
    let root = files.root()?;
    let names: Vec<String> = (0..ENTRIES).map(|entry| format!("uid={entry}")).collect();
    service::add(&root, &["ou=people"], "ou: people\n", &|| ())?;
    service::add(&root, &["ou=people", "uid=always"], "uid: always\n", &|| ())?;
    let add =
        |calls: &dyn Door, name: &str| service::add(calls, &["ou=people", name], "cn: Somebody\nsn: Else\n", &|| ());
    let delete = |calls: &dyn Door, name: &str| service::delete(calls, &["ou=people", name]);
    let all = |request: &dyn Fn(&str) -> io::Result<()>| {
        processor_ns_of(|| names.iter().try_for_each(|name| request(name)).expect("no one else asks for anything"))
    };
    let ratios: Vec<[f64; 2]> = (0..samples)
        .map(|_| {
            let plain = [all(&|name| add(&root, name)), all(&|name| delete(&root, name))];
            let added = all(&|name| files.transaction(|t| add(&**t, name)));
            [added / plain[0], all(&|name| files.transaction(|t| delete(&**t, name))) / plain[1]]
        })
        .collect();
    for (part, what) in ["add", "delete"].iter().enumerate() {
        let of: Vec<f64> = ratios.iter().map(|ratio| ratio[part]).collect();
        print(&format!("directory service, {what}, in transactions, of outside"), "", &of);
    }
    Ok(())
}

fn main() -> io::Result<()> {
    // `cargo bench` adds `--bench`.
    let samples = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(7);
    suites::all().iter().try_for_each(|all| suite(all, samples))?;
    directory_service(samples)?;
    neighbours::plain_beside_transactions(samples)?;
    neighbours::writers_beside_a_large_commit(samples.div_ceil(2))?;
    neighbours::large_against_writers(samples.div_ceil(3))
}
