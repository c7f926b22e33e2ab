//! The file system of domains over rings and decision lines in emulated memory: all that domains share goes through the checker.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
#[cfg(not(shuttle))]
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Instant;

use domains::{Domain, Limits, PoolLines, Process, Techniques};
use messages::DomainNumber;
use pool::emulated::Emulated;
use pool::emulated::turns::{Program, Turns};
#[cfg(not(shuttle))]
use pool::file::{Pool, create, path_of};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Follow, OpenFlags, Start, directories};
use transports::{Plan, Rings};

use crate::talk::{end_of_full_rings, number_from_environment};

const DOMAINS: usize = 3;
const CREATE: OpenFlags = OpenFlags::CREATE.union(OpenFlags::WRITE).union(OpenFlags::READ);

type Place = Domain<Rings<pool::emulated::Domain>>;

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

/// What a round of a domain does, and what must come of it. All names lie in one directory; `ball` is everybody's.
fn round(domain: &Place, process: &Process, own: u16, number: u64) -> Result<u64, Errno> {
    let (old, new) = (format!("name-{own}-{number}"), format!("next-{own}-{number}"));
    let directory = format!("directory-{own}");
    domain.call(process, |call| {
        let file = data::open(call, at(), old.as_bytes(), CREATE, 0o644, DescriptorOptions::PLAIN)?;
        assert_eq!(data::write(call, file, &number.to_le_bytes())?, 8);
        data::close(call, file)
    })?;
    domain.call(process, |call| directories::make_directory(call, at(), directory.as_bytes(), 0o755))?;
    let inside = format!("{directory}/{new}");
    domain.call(process, |call| {
        names::rename(call, (at(), old.as_bytes()), (at(), inside.as_bytes()), RenameMode::Replace)
    })?;
    domain
        .call(process, |call| names::link(call, (at(), inside.as_bytes()), (at(), new.as_bytes()), Follow::Nothing))?;
    let again = domain.call(process, |call| names::unlink(call, at(), old.as_bytes()));
    assert_eq!(again, Err(Errno::ENOENT), "a name that was moved away");
    let full = domain.call(process, |call| directories::remove_directory(call, at(), directory.as_bytes()));
    assert_eq!(full, Err(Errno::ENOTEMPTY));
    domain.call(process, |call| names::unlink(call, at(), inside.as_bytes()))?;
    domain.call(process, |call| {
        let file = data::open(call, at(), new.as_bytes(), OpenFlags::READ, 0, DescriptorOptions::PLAIN)?;
        let mut bytes = [0; 8];
        assert_eq!(data::read(call, file, &mut bytes)?, 8);
        assert_eq!(u64::from_le_bytes(bytes), number);
        data::close(call, file)
    })?;
    domain.call(process, |call| names::unlink(call, at(), new.as_bytes()))?;
    domain.call(process, |call| directories::remove_directory(call, at(), directory.as_bytes()))?;
    // The ball is taken: by one of two that try.
    let mine = format!("ball-{own}");
    let caught =
        domain.call(process, |call| names::rename(call, (at(), b"ball"), (at(), mine.as_bytes()), RenameMode::Replace));
    if caught == Err(Errno::ENOENT) {
        return Ok(0);
    }
    caught?;
    domain.call(process, |call| names::rename(call, (at(), mine.as_bytes()), (at(), b"ball"), RenameMode::Replace))?;
    Ok(1)
}

/// Lines of rings by class: in the first all finds room, the second are full nearly always.
pub const WIDE: [usize; 4] = [16, 64, 64, 64];
const NARROW: [usize; 4] = [2, 2, 6, 4];

/// Rounds in each domain, for each seed; returns how often something found no room.
pub fn play(seeds: Range<u64>, rounds: u64, ring_lines: [usize; 4]) -> u64 {
    let plan = Plan { at: 0, domain_count: DOMAINS, ring_lines, salt: 3, patience: 1 << 30 };
    let held_back = Rc::new(Cell::new(0));
    for seed in seeds {
        let bytes = plan.bytes() + PoolLines::<pool::emulated::Domain>::size_bytes(DOMAINS);
        let memory = Emulated::new(bytes, DOMAINS, seed).unwrap();
        let (ended, caught) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let programs = (0..DOMAINS as u16).map(|own| -> Program {
            let (view, ended, caught) = (memory.domain(usize::from(own)), Rc::clone(&ended), Rc::clone(&caught));
            let held_back = Rc::clone(&held_back);
            Box::new(move || {
                let number = DomainNumber(own);
                let rings = Rings::new(&view, plan, number).unwrap();
                rings.share_thread();
                let lines = Rc::new(PoolLines::new(view, plan.bytes(), DOMAINS).unwrap());
                let limits = Limits { pages: 1 << 20, inodes: 1 << 20, split_above: usize::MAX, split_after: u64::MAX };
                let domain = Domain::new(rings, Rc::<PoolLines<_>>::clone(&lines), || 0, limits);
                domain.use_techniques(Techniques::default());
                let process = Process::new(Credentials::SUPERUSER);
                if own == 0 {
                    let made = domain.call(&process, |call| {
                        data::open(call, at(), b"ball", CREATE, 0o644, DescriptorOptions::PLAIN)
                    });
                    made.unwrap();
                }
                for number in 0..rounds {
                    caught.set(caught.get() + round(&domain, &process, own, number).unwrap());
                }
                ended.set(ended.get() + 1);
                while ended.get() < DOMAINS {
                    domain.serve();
                }
                assert_eq!((domain.transport().error(), lines.fault()), (None, None));
                held_back.set(held_back.get() + domain.counts().held_back);
            })
        });
        let is_over = Turns::new(programs.collect()).run(seed, 40_000_000);
        assert!(is_over, "seed {seed}: domains stand still");
        assert_eq!(memory.report_count(), 0, "seed {seed}: {}", memory.reports()[0]);
        assert!(caught.get() > 0, "seed {seed}");
        println!("seed {seed}: {} calls on memory, the ball was caught {} times", memory.step(), caught.get());
    }
    held_back.get()
}

/// No message comes or goes once memory has failed: who would wait for one hears it, also where an answer was kept.
#[cfg(not(shuttle))]
#[test]
fn calls_end_when_the_pool_is_made_shorter() {
    let path = path_of(&format!("transports-test-shorter-{}", std::process::id()));
    create(&path, 1 << 20, 2).unwrap();
    let pools: Vec<_> = (0..2).map(|number| Arc::new(Pool::join(&path, number).unwrap())).collect();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let domain = |number: usize| {
        let pool = &pools[number];
        let plan =
            Plan { at: pool.first_free(), domain_count: 2, ring_lines: [16, 64, 64, 64], salt: 1, patience: 1 << 30 };
        let rings = Rings::new(pool, plan, DomainNumber(number as u16)).unwrap();
        let lines = PoolLines::new(Arc::clone(pool), plan.at + plan.bytes(), 2).unwrap();
        (Domain::new(rings, Rc::new(lines), || 0, Limits::default()), Process::new(Credentials::SUPERUSER))
    };
    let open = |(domain, process): &(Domain<Rings<Arc<Pool>>>, Process), name: &str, flags| {
        domain.call(process, |call| data::open(call, at(), name.as_bytes(), flags, 0o644, DescriptorOptions::PLAIN))
    };
    let is_cut = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let owner = domain(0);
            open(&owner, "kept", CREATE).unwrap();
            while !is_cut.load(Ordering::Acquire) {
                owner.0.serve();
            }
            assert!(open(&owner, "made", CREATE).is_ok(), "what is the domain's own is there");
        });
        let other = domain(1);
        while open(&other, "kept", OpenFlags::READ) == Err(Errno::ENOENT) {}
        file.set_len(64).unwrap();
        is_cut.store(true, Ordering::Release);
        for name in ["kept", "another"] {
            assert_eq!(open(&other, name, OpenFlags::READ), Err(Errno::EIO));
            assert_eq!(open(&other, name, CREATE), Err(Errno::EIO));
        }
        let (domain, process) = &other;
        let moved = domain.call(process, |call| names::rename(call, (at(), b"a"), (at(), b"b"), RenameMode::Replace));
        assert_eq!(moved, Err(Errno::EIO));
        let why = domain.transport().error().unwrap().to_string();
        assert!(why.contains("expected the pool's file to keep its size"), "{why}");
    });
}

#[test]
fn domains_share_nothing_but_what_the_checker_sees() {
    play(0..2, 3, WIDE);
}

/// `FULL_RINGS_SECONDS=N`: for so long, with seeds from `FULL_RINGS_SEED` on.
#[test]
fn rings_that_are_full_nearly_always_do_not_stall() {
    let (first, mut held_back, end) = (number_from_environment("FULL_RINGS_SEED").unwrap_or(0), 0, end_of_full_rings());
    for seed in first.. {
        held_back += play(seed..seed + 1, 3, NARROW);
        if Instant::now() >= end {
            break;
        }
    }
    println!("{held_back} messages found no room");
    assert!(held_back > 0, "rings were not full");
}
