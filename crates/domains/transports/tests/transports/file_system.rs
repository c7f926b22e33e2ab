//! The file system of domains over rings and decision lines in emulated memory: all that domains share goes through the checker.

use std::cell::Cell;
use std::rc::Rc;

use domains::{Domain, Limits, PoolLines, Process, Techniques};
use messages::DomainNumber;
use pool::emulated::Emulated;
use pool::emulated::turns::{Program, Turns};
use posix_calls::data::{self, DescriptorOptions};
use posix_calls::names::{self, RenameMode};
use posix_calls::{Credentials, Errno, Follow, OpenFlags, Start, directories};
use transports::{Plan, Rings};

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

/// Rounds in each domain, for each seed; returns the number of seeds.
pub fn play(seeds: u64, rounds: u64) -> u64 {
    let plan = Plan { at: 0, domain_count: DOMAINS, ring_lines: [16, 64, 64, 64], salt: 3, patience: 1 << 30 };
    for seed in 0..seeds {
        let bytes = plan.bytes() + PoolLines::<pool::emulated::Domain>::size_bytes(DOMAINS);
        let memory = Emulated::new(bytes, DOMAINS, seed).unwrap();
        let (ended, caught) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let programs = (0..DOMAINS as u16).map(|own| -> Program {
            let (view, ended, caught) = (memory.domain(usize::from(own)), Rc::clone(&ended), Rc::clone(&caught));
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
            })
        });
        let is_over = Turns::new(programs.collect()).run(seed, 40_000_000);
        assert!(is_over, "seed {seed}: domains stand still");
        assert_eq!(memory.report_count(), 0, "seed {seed}: {}", memory.reports()[0]);
        assert!(caught.get() > 0, "seed {seed}");
        println!("seed {seed}: {} calls on memory, the ball was caught {} times", memory.step(), caught.get());
    }
    seeds
}

#[test]
fn domains_share_nothing_but_what_the_checker_sees() {
    play(2, 3);
}
