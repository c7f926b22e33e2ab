//! Rings in emulated memory under the adversary, and in a pool file with a thread for each domain.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use messages::{Class, DomainNumber, SendError, Transport};
use pool::LINE_BYTES;
use pool::emulated::Emulated;
use pool::emulated::turns::{Program, Turns};
use pool::file::{Pool, create, path_of};
use pool::ring::RingError;
use transports::{Plan, Rings};

use crate::talk::{Talker, end_of_full_rings, talk_in_threads, truth};

const DOMAINS: usize = 3;

fn plan(at: usize, domain_count: usize) -> Plan {
    Plan { at, domain_count, ring_lines: [2, 8, 4, 6], salt: 11, patience: 1 << 20 }
}

#[test]
fn conversations_over_rings_are_right_under_every_adversary() {
    converse(10);
}

/// Conversations, each from a seed.
pub fn converse(seeds: u64) -> u64 {
    for seed in 0..seeds {
        let plan = plan(0, DOMAINS);
        let memory = Emulated::new(plan.bytes(), DOMAINS, seed).unwrap();
        let (answered, truth) = (Rc::new(Cell::new(0)), truth(DOMAINS));
        let programs = (0..DOMAINS).map(|number| -> Program {
            let (domain, answered, truth) = (memory.domain(number), Rc::clone(&answered), truth.clone());
            Box::new(move || {
                let mut talker = Talker::new(Rings::new(&domain, plan, DomainNumber(number as u16)).unwrap(), &truth);
                let mut before = 0;
                loop {
                    talker.step(u64::MAX);
                    assert_eq!(talker.endpoint.transport().error(), None);
                    answered.set(answered.get() + talker.answered - before);
                    before = talker.answered;
                }
            })
        });
        Turns::new(programs.collect()).run(seed, 60_000);
        assert_eq!(memory.report_count(), 0, "seed {seed}: {}", memory.reports()[0]);
        assert!(answered.get() > 20, "seed {seed}: {} answers", answered.get());
    }
    seeds
}

/// Rings of which a message takes most, for as long as `FULL_RINGS_SECONDS` says.
#[cfg(not(shuttle))]
#[test]
fn threads_talk_over_full_rings_in_a_pool_file() {
    let end = end_of_full_rings();
    loop {
        let path = path_of(&format!("transports-test-{}", std::process::id()));
        create(&path, 1 << 18, DOMAINS).unwrap();
        let pools: Vec<Pool> = (0..DOMAINS).map(|domain| Pool::join(&path, domain).unwrap()).collect();
        std::fs::remove_file(&path).unwrap();
        talk_in_threads(DOMAINS, 300, |number| {
            let plan = plan(pools[number].first_free(), DOMAINS);
            Rings::new(&pools[number].memory(), plan, DomainNumber(number as u16)).unwrap()
        });
        if Instant::now() >= end {
            break;
        }
    }
}

#[test]
fn a_ring_that_is_damaged_ends_the_rings_and_says_so() {
    let plan = Plan { patience: 3, ..plan(0, 2) };
    let memory = Emulated::calm(plan.bytes(), 2).unwrap();
    let [one, other] =
        [0, 1].map(|number| Rings::new(&memory.domain(number), plan, DomainNumber(number as u16)).unwrap());
    assert_eq!(one.send(DomainNumber(1), Class::Notices, &[0; 57 * 2]), Err(SendError::TooLong));
    assert_eq!(one.send(DomainNumber(0), Class::Notices, &[0]), Err(SendError::Full));
    assert_eq!(one.free_lines(DomainNumber(1), Class::Notices), 4);
    one.send(DomainNumber(1), Class::Notices, b"notice").unwrap();
    assert_eq!(one.free_lines(DomainNumber(1), Class::Notices), 3);
    let mut message = Vec::new();
    assert!(other.receive_from(DomainNumber(0), Class::Notices, &mut message));
    assert_eq!(message, b"notice");
    one.send(DomainNumber(1), Class::Notices, b"another").unwrap();
    // The second line of the ring from domain 0 to domain 1, after all rings of domain 0 to itself.
    let at = plan.bytes() / 4 + 2 * LINE_BYTES;
    memory.damage(at + 20, 1);
    assert!((0..4).all(|_| !other.receive_from(DomainNumber(0), Class::Notices, &mut message)));
    assert_eq!(other.error(), Some(RingError::Damaged { at }));
    assert_eq!(other.send(DomainNumber(0), Class::Replies, b"reply"), Err(SendError::Full));
}
