//! Whether each core has been seen since a moment, found out at a cost that does not grow with the number of cores.
//!
//! **Idea** (Linux's tree of RCU nodes). Cores stand in groups of up to 16. Time goes by in *rounds*: one is over when each
//! core was seen in it. A core *reports* between its calls, by one atomic instruction in the line of its group, which also
//! tells it the round. Who completes a group reports that in the line of the first one, and who completes the round there
//! begins the next and writes it to each group.
//!
//! ```text
//! core 0..15    line of group 0: round 7, seen 1011…    ┐ the last one of a group     word of the groups: round 7,
//! core 16..31   line of group 1: round 7, seen 1111…  ──┴───────────────────────────► complete groups 01…
//!                                                           the last group: 7 → 8 here, then in each group's line
//! ```
//!
//! **Grace.** What a core did before a report that covers round r was before each core's report in round r + 1. So it was
//! before all that any core does once round r + 2 has begun and that core was seen in r + 1.
//!
//! **A late report.** A round can end without a core that was seen by others, or that came on-line when its group was
//! complete; then groups may already be in the next. A report that finds so counts for nothing, and covers only the next one.
//!
//! **Silent cores** have not reported in the round before. Where the user can tell from outside that a core was quiet
//! (`epoch`: not pinned), one that reports looks at them in their place, at once; a core that reported in the round
//! before is looked at when somebody has come back eight times in vain. Where only the core itself can tell
//! (`refcache`: it has flushed), a round waits for all that were ever on-line.
//!
//! **Two that share lines.** Structures that are maintained one after the other have their words in the same lines, which
//! then go from core to core once for both.
//!
//! **Death of a process**: its heir does what it may have left undone ([`Rounds::repair_taken_over`]); without one, a
//! core that comes back twice does. All that is written names its round, so that it does no harm to do it twice.
//!
//! **Cost**: a report one exchange of the group's line; of each group and round, two lines more. Memory: a line per group.
//!
//! Model: `RUSTFLAGS="--cfg loom" cargo test -p rounds --release --test models`.
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(not(loom), no_std)]

mod state;

use core::alloc::Layout;
use core::ptr::NonNull;

use percpu::{Arena, Core, CoreIndex, ObjectKind, OutOfMemory, Part, table_kind};
use sync::OwnWord;
use sync::atomic::{Ordering, fence};

use crate::state::{MOST_IN_WORD, State, Words};

/// Fewer in tests, so that few cores make several groups.
const GROUP_CORES: usize = if cfg!(any(loom, shuttle)) { 2 } else { MOST_IN_WORD };
/// The first round, so that zero can mean "never".
const FIRST_ROUND: u64 = 2;
/// Who has reported in vain so often looks at silent cores again, and does what others left undone.
const PATIENCE: u64 = 2;
/// Who has reported in vain that often looks at cores that used to report by themselves. This many times as fast as
/// others a core may be without taking lines from them.
const PATIENCE_WITH_DILIGENT: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 8 };
/// Where this many of a group report, a core does so at every second call: the line of the group then comes to each
/// half as often.
const COMPANY: u32 = 8;
/// How many share lines.
const SHARES: usize = 2;

/// The words of a group, and, in the first one, those of all groups.
#[repr(align(64))]
struct Line([Share; SHARES]);

struct Share {
    cores: Words,
    groups: Words,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == percpu::LINE_BYTES);

const LINE: ObjectKind = table_kind!(Line as "rounds of a group" {
    "epochs" = 0,
    "counts" = 0 + size_of::<Share>(),
});

/// Rounds of the cores of one arena; see the crate's head.
#[derive(Clone, Copy)]
pub struct Rounds {
    // Immutable.
    lines: NonNull<Line>,
    line_count: usize,
    group_cores: usize,
    share: usize,
}

// SAFETY: the lines consist of atomics and live as long as the arena, by the promise to `create`.
unsafe impl Sync for Rounds {}
// SAFETY: as above.
unsafe impl Send for Rounds {}

/// What a core keeps for itself to report: in memory that it alone touches, one for each `Rounds` in which it reports.
#[derive(Debug)]
pub struct Reporter {
    /// The round of the last report; zero if there was none.
    last: OwnWord<u64>,
    /// Reports since the first one of that round.
    in_vain: OwnWord<u64>,
    /// Not zero if the next call may rest.
    rests: OwnWord<u64>,
}

impl Reporter {
    /// Of a core that has not reported.
    pub fn new() -> Reporter {
        Reporter { last: OwnWord::new(0), in_vain: OwnWord::new(0), rests: OwnWord::new(0) }
    }
}

impl Default for Reporter {
    fn default() -> Reporter {
        Reporter::new()
    }
}

/// What came of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The round in which the core's group was: all rounds before it are over.
    pub round: u64,
    /// The round that covers all that the core did before: two later, each core was seen since.
    pub covered: u64,
    /// Whether the core had reported in that round before.
    pub is_repeated: bool,
    /// Whether the report began a new round.
    pub advanced: bool,
}

/// Whether a core is seen to have been quiet at some moment of this round, which has begun before the question.
pub type IsQuiet<'a> = &'a dyn Fn(CoreIndex, u64) -> bool;

impl Rounds {
    /// Two whose words share lines, in memory that is never given back.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the arena does not hold them.
    ///
    /// # Safety
    /// They are not used once the arena's memory is gone, as ones that lie in the arena itself are not.
    pub unsafe fn create(arena: &Arena) -> Result<[Rounds; SHARES], OutOfMemory> {
        let group_cores = GROUP_CORES.max(arena.core_count().div_ceil(MOST_IN_WORD));
        let line_count = arena.core_count().div_ceil(group_cores);
        let layout = Layout::array::<Line>(line_count).map_err(|_| OutOfMemory)?;
        let lines = arena.allocate_permanent(layout)?.cast::<Line>();
        for group in 0..line_count {
            let words = || Words::new(State::new(FIRST_ROUND, 0));
            // SAFETY: in bounds of the fresh array.
            unsafe { lines.add(group).write(Line([0; SHARES].map(|_| Share { cores: words(), groups: words() }))) };
        }
        Ok(core::array::from_fn(|share| Rounds { lines, line_count, group_cores, share }))
    }

    /// What lies where, and what tools call it.
    pub fn table(&self) -> Part {
        let start = self.lines.as_ptr() as usize;
        Part { memory: start..start + self.line_count * size_of::<Line>(), kind: &LINE }
    }

    /// The present round.
    #[inline]
    pub fn round(&self) -> u64 {
        // Acquire pairs with the release in `arrive`: all that cores did before their reports of the rounds before.
        self.groups().load(Ordering::Acquire).number()
    }

    /// The present round, for a core that has not reported yet: what it did before is seen by all that any core does in a later
    /// round. (A core that has reported needs not ask: its next report says so of the round after that.)
    pub fn round_before_the_next(&self) -> u64 {
        if sync::mutant::planted("rounds: a round is read without an exchange") {
            return self.round();
        }
        // Release: one that begins the next round reads from this exchange, and passes on what was done before. (A
        // fence and a load would rest on the fence of `core_limit` in each report that counts: too far away to be
        // seen.) Acquire as in `round`.
        self.groups().read_in_order(Ordering::AcqRel).number()
    }

    /// Says that the core is quiet, and does what follows from that. Without `is_quiet`, each core reports by itself.
    ///
    /// # Panics
    /// If the core belongs to an arena with more cores.
    pub fn report(&self, core: &Core<'_>, reporter: &Reporter, is_quiet: Option<IsQuiet<'_>>) -> Report {
        let index = core.index().get();
        let (group, bit) = (index / self.group_cores, 1 << (index % self.group_cores));
        let last = reporter.last.get();
        if reporter.rests.get() != 0 {
            reporter.rests.set(0);
            return Report { round: last, covered: last + 1, is_repeated: true, advanced: false };
        }
        if last == 0 {
            // What we did before is seen by those who look in the round after this one.
            fence(Ordering::SeqCst);
            // No one has brought the line of a group that is not in use to the present round.
            self.forward(group, self.round(), State::new(FIRST_ROUND, 0));
        }
        let words = self.cores(group);
        // Acquire pairs with the release of all reports of the rounds before, through who began this one; release, so that all
        // that we did is seen by those who see us.
        let old = words.see(State::new(last + 1, 0), bit, Ordering::AcqRel);
        let (round, is_seen) = (old.number(), old.has(bit) || old.is_complete());
        let counts = !is_seen;
        words.note_diligent(bit);
        let is_repeated = last == round;
        if is_repeated {
            reporter.in_vain.set(reporter.in_vain.get() + 1);
        } else {
            reporter.last.set(round);
            reporter.in_vain.set(0);
            if is_seen {
                // Seen in our place: from now on others wait for us.
                self.groups().note_diligent(1 << group);
            }
        }
        reporter.rests.set(u64::from(words.diligent_before().count_ones() >= COMPANY));
        let in_vain = reporter.in_vain.get();
        let is_patient = in_vain < PATIENCE;
        let round_of = Round { number: round, is_patient: in_vain < PATIENCE_WITH_DILIGENT, is_quiet };
        let state = old.with(bit);
        let is_waited_for = |group| state.is_complete() || self.awaited(core, group, state, is_quiet) != 0;
        let advanced = (counts || !is_patient || !is_waited_for(group)) && self.go_on(core, group, state, &round_of);
        let is_covered = counts || sync::mutant::planted("rounds: a late report counts");
        Report { round, covered: if is_covered { round } else { round + 1 }, is_repeated, advanced }
    }

    /// Does what a core may have left undone whose owner died.
    ///
    /// # Safety
    /// `core` was taken over from a dead owner.
    pub unsafe fn repair_taken_over(&self, core: &Core<'_>) {
        if sync::mutant::planted("rounds: an heir leaves the groups as they are") {
            return;
        }
        // First the round: a core that comes on-line after the limit was read might be left out of a round that began since.
        let round = Round { number: self.round(), is_patient: false, is_quiet: None };
        let limit = core.arena().core_limit();
        self.forward_all(limit, round.number);
        // It may have been at any of them.
        for group in 0..limit.div_ceil(self.group_cores) {
            let state = self.cores(group).load(Ordering::Acquire);
            if self.complete(group, state, limit, &round) && self.arrive(group, limit, &round, None) {
                return;
            }
        }
    }

    /// After a report: completes the group and the round, if that can be. Tells whether that began a new one.
    fn go_on(&self, core: &Core<'_>, group: usize, state: State, round: &Round<'_>) -> bool {
        // Its fence stands between the begin of the round and the looks at other cores, and at the limit itself: a core that
        // comes on-line later sees all that was done before this round.
        let limit = core.arena().core_limit();
        if !self.complete(group, state, limit, round) {
            return false;
        }
        let arrived = self.arrive(group, limit, round, Some(group));
        let Some(is_quiet) = round.is_quiet else {
            return arrived;
        };
        let advanced = arrived || self.see_others(limit, round);
        if advanced {
            self.look_ahead(core, group, round.number + 1, is_quiet);
        }
        advanced
    }

    /// Whether all cores of a group that are below the limit were seen in a round, once those were looked at who are silent.
    fn complete(&self, group: usize, mut state: State, limit: usize, round: &Round<'_>) -> bool {
        let words = self.cores(group);
        let members = self.members(limit, group);
        while state.number() == round.number {
            if state.is_complete() {
                return true;
            }
            let missing = members & !state.seen() & !if round.is_patient { words.diligent_before() } else { 0 };
            let mut new = state;
            if let Some(is_quiet) = round.is_quiet {
                for place in places(missing) {
                    let index = CoreIndex::new(group * self.group_cores + place).expect("below the limit");
                    if is_quiet(index, round.number) {
                        new = new.with(1 << place);
                    }
                }
            }
            let is_complete =
                new.has(members) || new.seen() != 0 && sync::mutant::planted("rounds: one core is its group");
            let new = if is_complete { new.completed() } else { new };
            if new == state {
                return false;
            }
            // Exact: a look of before must not count for a round that has begun since. Acquire and release as in `report`.
            match words.exchange(state, new, Ordering::AcqRel) {
                Ok(()) => return is_complete,
                Err(seen) => state = seen,
            }
        }
        false
    }

    /// Says that a group is complete. One that finds that all are begins the next round, and says so. `diligent` is the
    /// group if a core of its own says it.
    fn arrive(&self, group: usize, limit: usize, round: &Round<'_>, diligent: Option<usize>) -> bool {
        let diligent = diligent.map_or(0, |group| 1 << group);
        let (groups, bit) = (members(limit.div_ceil(self.group_cores)), 1 << group);
        let words = self.groups();
        // That we are the last one is a guess: a look before would bring the line here twice.
        let mut state = State::new(round.number, groups & !bit);
        loop {
            let all = state.with(bit);
            let new = if all.has(groups) { State::new(round.number + 1, 0) } else { all };
            // Release and acquire pass on what all cores of all groups did before they were seen.
            match words.exchange(state, new, Ordering::AcqRel) {
                Ok(()) if new == all => {
                    words.note_diligent(diligent);
                    return false;
                }
                Ok(()) => {
                    words.note_diligent(diligent);
                    words.begin_diligence();
                    self.forward_all(limit, round.number + 1);
                    return true;
                }
                Err(seen) if seen.number() != round.number => {
                    // Somebody has begun it, and may have died before all groups knew.
                    self.forward_all(limit, seen.number());
                    return false;
                }
                Err(seen) if seen.has(bit) && !seen.has(groups) => return false,
                Err(seen) => state = seen,
            }
        }
    }

    /// Looks at groups in which no core has reported by itself in the round before; tells whether that began a new
    /// round.
    fn see_others(&self, limit: usize, round: &Round<'_>) -> bool {
        let groups = members(limit.div_ceil(self.group_cores));
        let awaited = if round.is_patient { self.groups().diligent_before() } else { 0 };
        let state = self.groups().load(Ordering::Acquire);
        for group in places(groups & !awaited & !state.seen()) {
            self.forward(group, round.number, State::new(round.number - 1, 0));
            let state = self.cores(group).load(Ordering::Acquire);
            // Between the round of that group and the looks at its cores, as in `go_on`.
            fence(Ordering::SeqCst);
            if self.complete(group, state, limit, round) && self.arrive(group, limit, round, None) {
                return true;
            }
        }
        false
    }

    /// Looks at silent cores of a group as soon as a round has begun: one that is in a call may be between calls now.
    fn look_ahead(&self, core: &Core<'_>, group: usize, number: u64, is_quiet: IsQuiet<'_>) {
        let state = self.cores(group).load(Ordering::Acquire);
        let missing = self.members(core.arena().core_limit_seen(), group) & !state.seen();
        if missing & !self.cores(group).diligent_before() != 0 {
            // The fence as in `go_on`.
            let limit = core.arena().core_limit();
            self.complete(group, state, limit, &Round { number, is_patient: true, is_quiet: Some(is_quiet) });
        }
    }

    fn forward_all(&self, limit: usize, number: u64) {
        for group in 0..limit.div_ceil(self.group_cores) {
            // Probably: it is asked for once then.
            self.forward(group, number, State::new(number - 1, self.members(limit, group)).completed());
        }
    }

    /// The cores of a group that are below the limit.
    fn members(&self, limit: usize, group: usize) -> u64 {
        members(limit.saturating_sub(group * self.group_cores).min(self.group_cores))
    }

    /// Cores of a group that were not seen, and of which it is to be expected that they report by themselves.
    fn awaited(&self, core: &Core<'_>, group: usize, state: State, is_quiet: Option<IsQuiet<'_>>) -> u64 {
        let missing = self.members(core.arena().core_limit_seen(), group) & !state.seen();
        if is_quiet.is_some() { missing & self.cores(group).diligent_before() } else { missing }
    }

    /// Brings a group to a round; `guess` is what its word may be.
    fn forward(&self, group: usize, number: u64, guess: State) {
        let words = self.cores(group);
        let mut state = guess;
        while state.number() < number {
            // Release pairs with the acquire of reports.
            match words.exchange(state, State::new(number, 0), Ordering::AcqRel) {
                Ok(()) => return words.begin_diligence(),
                Err(seen) => state = seen,
            }
        }
    }

    fn cores(&self, group: usize) -> &Words {
        &self.share_of(group).cores
    }

    fn groups(&self) -> &Words {
        &self.share_of(0).groups
    }

    fn share_of(&self, group: usize) -> &Share {
        assert!(group < self.line_count, "a core of an arena with more cores");
        // SAFETY: in bounds, as asserted; the lines are there by the promise to `create`.
        unsafe { &self.lines.add(group).as_ref().0[self.share] }
    }
}

/// A round, and how it is brought to its end.
struct Round<'a> {
    number: u64,
    /// Whether cores that used to report by themselves are waited for.
    is_patient: bool,
    is_quiet: Option<IsQuiet<'a>>,
}

/// The first `count` places.
fn members(count: usize) -> u64 {
    (1 << count) - 1
}

/// The places of these bits.
fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < u64::BITS as usize).then_some(place)
    })
}
