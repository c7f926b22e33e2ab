//! Rounds in ordinary builds and under schedules: when one is over, who is waited for, cores that come later, deaths.
#![cfg(not(loom))]

use percpu::testing::World;
use percpu::{Core, CoreIndex};
use rounds::{IsQuiet, Report, Reporter, Rounds};

/// The cores of a world, as they report to one of its rounds.
struct Reporters<'a> {
    rounds: Rounds,
    cores: Vec<(Core<'a>, Reporter)>,
}

impl<'a> Reporters<'a> {
    fn new(world: &'a World, count: usize) -> Reporters<'a> {
        // SAFETY: they are dropped before the world.
        let [rounds, _] = unsafe { Rounds::create(world.arena()) }.unwrap();
        let cores = (0..count).map(|number| (world.core(number), Reporter::new())).collect();
        Reporters { rounds, cores }
    }

    fn report(&self, number: usize, is_quiet: Option<IsQuiet<'_>>) -> Report {
        let (core, reporter) = &self.cores[number];
        self.rounds.report(core, reporter, is_quiet)
    }

    /// Each core reports once; how many rounds that began.
    fn sweep(&self) -> u64 {
        let before = self.rounds.round();
        (0..self.cores.len()).for_each(|number| {
            std::hint::black_box(self.report(number, None).round);
        });
        self.rounds.round() - before
    }
}

#[test]
fn a_round_is_over_when_each_core_has_reported() {
    for count in [1, 2, 3, 16, 17, 40, 256] {
        let world = World::with(32 << 20, percpu::ArenaConfig { core_count: count, chunk_bytes: 4096 });
        let all = Reporters::new(&world, count);
        for round in 2..4 {
            for number in 0..count {
                assert_eq!(all.rounds.round(), round, "core {number} of {count}");
                let (is_last, told) = (number == count - 1, all.report(number, None));
                let expected = Report { round, covered: round, is_repeated: false, advanced: is_last };
                assert_eq!(told, expected, "core {number} of {count}");
                if is_last || round > 2 {
                    continue;
                }
                let again = all.report(number, None);
                assert!(again.covered > round && !again.advanced, "core {number} of {count}: {again:?}");
            }
        }
    }
}

#[test]
fn who_is_never_heard_of_is_looked_at_at_once() {
    for silent in [1, 20, 39] {
        let world = World::new(40);
        let all = Reporters::new(&world, 40);
        let is_quiet = |index: CoreIndex, _: u64| index.get() != silent;
        let looks = |is_quiet: IsQuiet<'_>| all.report(0, Some(is_quiet)).advanced;
        assert_eq!([0; 4].map(|_| looks(&is_quiet)), [false; 4], "core {silent} is not quiet");
        assert_eq!([0; 4].map(|_| looks(&|_, _| true)), [true; 4], "nobody else reports");
    }
}

#[test]
fn who_reported_is_waited_for_until_somebody_has_come_back_often() {
    let world = World::new(2);
    let all = Reporters::new(&world, 2);
    let advanced = |number| all.report(number, Some(&|_, _| true)).advanced;
    assert!(advanced(0), "the other one has never reported");
    assert!(!advanced(1), "seen in its place: late");
    assert!(advanced(0), "it was seen before");
    let times = if cfg!(shuttle) { 2 } else { 8 };
    assert!((0..times).all(|_| !advanced(0)), "and then it is waited for, once");
    assert!((0..2).all(|_| advanced(0)));
}

#[test]
fn a_report_after_one_was_seen_in_the_cores_place_covers_the_next_round() {
    let world = World::new(2);
    let all = Reporters::new(&world, 2);
    let first = all.report(0, Some(&|_, _| true));
    assert_eq!((first.round, first.covered, all.rounds.round()), (2, 2, 3));
    // Looked at as soon as the round had begun.
    let late = all.report(1, None);
    assert_eq!((late.round, late.covered), (3, 4));
}

// Under schedules groups are too small.
#[cfg(not(shuttle))]
#[test]
fn in_company_every_second_call_shares_nothing() {
    let world = World::new(8);
    let all = Reporters::new(&world, 8);
    assert_eq!([0; 2].map(|_| all.sweep()), [1; 2], "each has company only when the others have reported");
    let sweeps: Vec<u64> = (0..8).map(|_| all.sweep()).collect();
    assert_eq!(sweeps, [0, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn who_comes_later_begins_in_the_present_round() {
    let world = World::new(64);
    let mut all = Reporters::new(&world, 2);
    assert_eq!([0; 6].map(|_| all.sweep()), [1; 6]);
    all.cores.push((world.core(50), Reporter::new()));
    // All below the one that came are waited for, since they may be used by others.
    for number in 2..50 {
        all.cores.push((world.core(number), Reporter::new()));
    }
    let told = all.report(2, None);
    assert_eq!((told.round, told.covered), (8, 8));
    assert_eq!(all.sweep(), 1);
}

#[test]
fn two_that_share_lines_have_rounds_of_their_own() {
    let world = World::new(3);
    let all = Reporters::new(&world, 1);
    // SAFETY: as above.
    let [one, other] = unsafe { Rounds::create(world.arena()) }.unwrap();
    let (core, reporter) = &all.cores[0];
    assert!(one.report(core, reporter, None).advanced);
    assert_eq!((one.round(), other.round(), all.rounds.round()), (3, 2, 2));
    assert_eq!(one.table().memory, other.table().memory);
}

#[cfg(all(shuttle, unix))]
mod deaths {
    use percpu::testing::{die, die_everywhere};

    use super::*;

    /// A process dies in its reports, which complete groups and begin rounds; then all others report, each once in a round.
    fn goes_on(dies: usize, access: u64) -> bool {
        let world = World::new(5);
        // SAFETY: they are dropped before the world.
        let [rounds, _] = unsafe { Rounds::create(world.arena()) }.unwrap();
        // In memory that the process shares with this one.
        let reporters: Vec<&Reporter> = (0..5).map(|_| world.place(Reporter::new()).unwrap()).collect();
        let alive: Vec<Core> = (0..5).filter(|number| *number != dies).map(|number| world.core(number)).collect();
        let act = |core: &Core<'_>| {
            for _ in 0..3 {
                rounds.report(core, reporters[dies], Some(&|_, _| true));
            }
        };
        let Some(heir) = die(&world, dies, access, act) else { return false };
        // SAFETY: taken over from the process, which has ended.
        unsafe { rounds.repair_taken_over(&heir) };
        let before = rounds.round();
        for sweep in 0..2 {
            for core in alive.iter().chain([&heir]) {
                let told = rounds.report(core, reporters[core.index().get()], None);
                assert!(told.round + 1 >= rounds.round(), "a group is left {sweep} behind: {told:?}");
            }
        }
        assert!(rounds.round() > before, "no round has ended though each core has reported twice");
        true
    }

    #[test]
    fn rounds_go_on_wherever_a_process_dies() {
        for dies in 0..5 {
            die_everywhere(|access| goes_on(dies, access));
        }
        let everywhere = || (0..5).map(|dies| die_everywhere(|access| goes_on(dies, access))).sum::<u64>();
        sync::mutant::must_be_caught("rounds: an heir leaves the groups as they are", everywhere);
    }
}
