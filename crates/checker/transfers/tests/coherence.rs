//! What caches count, against a plain model with the four states written out, and by hand.

use std::collections::HashMap;

use proptest::prelude::*;
use transfers::coherence::{Access, Caches, Touch, Transfer, Way};

fn touch(core: u8, place: u32) -> Touch {
    Touch { place, core, work: 0 }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Modified,
    Exclusive,
    Shared,
    Invalid,
}

/// MESI as textbooks have it: a state of each core for each line.
struct Plain(HashMap<u64, Vec<State>>);

impl Plain {
    /// Whether it is a transfer, and how many caches lose the line.
    fn access(&mut self, line: u64, access: Access, core: usize, cores: usize) -> Option<(Way, u32)> {
        let states = self.0.entry(line).or_insert_with(|| vec![State::Invalid; cores]);
        let own = states[core];
        let others = states.iter().enumerate().filter(|(other, state)| *other != core && **state != State::Invalid);
        let others = others.count() as u32;
        match (access, own) {
            (Access::Read, State::Invalid) => {
                if others > 0 {
                    states
                        .iter_mut()
                        .filter(|state| **state != State::Invalid)
                        .for_each(|state| *state = State::Shared);
                }
                states[core] = if others > 0 { State::Shared } else { State::Exclusive };
                (others > 0).then_some((Way::Miss, 0))
            }
            (Access::Read, _) => None,
            (Access::Write, State::Modified | State::Exclusive) => {
                states[core] = State::Modified;
                None
            }
            (Access::Write, _) => {
                states.fill(State::Invalid);
                states[core] = State::Modified;
                let way = if own == State::Shared { Way::Upgrade } else { Way::Miss };
                (others > 0).then_some((way, others))
            }
        }
    }
}

proptest! {
    #[test]
    fn caches_count_as_mesi_does(
        cores in prop_oneof![Just(2_usize), Just(5), Just(64), Just(65), Just(256)],
        accesses in prop::collection::vec((any::<u8>(), 0_u64..6, any::<bool>()), 1..400),
    ) {
        let (mut caches, mut plain) = (Caches::new(cores), Plain(HashMap::new()));
        caches.count_by_line();
        let mut by_line: HashMap<u64, u32> = HashMap::new();
        for (place, (core, line, writes)) in accesses.into_iter().enumerate() {
            let core = usize::from(core) % cores;
            let access = if writes { Access::Write } else { Access::Read };
            let counted = caches.access(line, access, touch(core as u8, place as u32));
            prop_assert_eq!(counted.map(|it| (it.way, it.invalidated)), plain.access(line, access, core, cores));
            if let Some(transfer) = counted {
                prop_assert_ne!(usize::from(transfer.cause.core), core, "a core is not to blame for its own");
                *by_line.entry(line).or_default() += 1;
            }
        }
        prop_assert_eq!(caches.transfers_by_line().collect::<HashMap<_, _>>(), by_line);
    }
}

#[test]
fn a_miss_is_blamed_on_the_last_writer_and_an_upgrade_on_who_looked() {
    let mut caches = Caches::new(3);
    let transfer = |way, invalidated, cause| Some(Transfer { way, invalidated, cause });
    assert_eq!(caches.access(7, Access::Write, touch(0, 10)), None, "it comes from memory");
    assert_eq!(caches.access(7, Access::Read, touch(1, 20)), transfer(Way::Miss, 0, touch(0, 10)));
    assert_eq!(caches.access(7, Access::Read, touch(2, 30)), transfer(Way::Miss, 0, touch(0, 10)), "not on the reader");
    assert_eq!(caches.access(7, Access::Read, touch(0, 11)), None, "it kept the line");
    assert_eq!(caches.access(7, Access::Write, touch(0, 12)), transfer(Way::Upgrade, 2, touch(2, 30)));
    assert_eq!(caches.access(7, Access::Write, touch(0, 13)), None);
    assert_eq!(caches.access(7, Access::Write, touch(1, 21)), transfer(Way::Miss, 1, touch(0, 13)));
}

#[test]
fn what_all_only_read_is_served_once_to_each() {
    let mut caches = Caches::new(256);
    let counted = (0..1_000_u32).filter(|round| {
        let who = touch((round % 256) as u8, *round);
        caches.access(1, Access::Read, who).is_some()
    });
    assert_eq!(counted.count(), 255);
}

#[test]
fn a_line_takes_a_quarter_of_the_cores_and_64_bytes_at_most() {
    for cores in [1, 2, 8, 32, 64, 128, 256] {
        let mut caches = Caches::new(cores);
        for line in 0..24_600_u64 {
            caches.access(line * 17, Access::Write, touch((line % cores as u64) as u8, 0));
        }
        assert_eq!(caches.line_count(), 24_600);
        let bytes = caches.memory_bytes() as f64 / 24_600.0;
        assert!(bytes <= cores as f64 / 4.0 + 64.0, "{bytes} bytes a line with {cores} cores");
    }
}
