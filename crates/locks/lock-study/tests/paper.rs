//! Figure 1 and Table 1 of "The Limits of Optimistic Concurrency": three sections on a binary tree, and the filters that
//! the paper needs, each with a case that comes out wrong without it.

use lock_study::{Exclusion, Fields, LockId, LockReport, Moment, Options, Span, Study, ThreadLog, WINDOWS, Word};

/// Names a field by its address.
struct Addresses;

impl Fields for Addresses {
    fn field(&mut self, _lock_address: u64, ours: &Word, _theirs: &Word) -> u64 {
        ours.number * 8
    }
}

/// A moment, the same by the clock and in instructions.
fn at(time: u64) -> Moment {
    Moment { instructions: time, nanoseconds: time }
}

fn span(time: u64) -> Span {
    at(time).since(at(0))
}

const LOCK: u64 = 0x10_0000;
const LOCK_BYTES: u32 = 8;

/// A study that is fed whole sections.
struct Recorder {
    study: Study,
    now: u64,
}

impl Recorder {
    fn new(options: Options) -> Self {
        Self { study: Study::new(options), now: 0 }
    }

    fn lock(&mut self) -> LockId {
        self.study.lock_at(LOCK, LOCK_BYTES, || 0)
    }

    /// A thread executes a section that reads and writes four bytes at each of these addresses.
    fn section(&mut self, thread: u32, reads: &[u64], writes: &[u64]) {
        let id = self.lock();
        let mut log = ThreadLog::default();
        self.now += 1;
        self.study.acquire(id, thread, Exclusion::Exclusive, 7, at(self.now));
        log.begin(id.0);
        reads.iter().for_each(|&address| log.access(address, 4, false, false, || 0));
        writes.iter().for_each(|&address| log.access(address, 4, true, false, || 0));
        self.now += 10;
        let Self { study, now, .. } = self;
        log.end(id.0, |words| study.release(id, thread, at(*now), words, &mut Addresses))
            .expect("the section was begun");
    }

    fn report(&self) -> LockReport {
        self.study.reports().into_iter().find(|report| report.address == LOCK).expect("the lock was used")
    }
}

/// Addresses of Table 1: a node's `left` lies at 0x32 and its `right` at 0x64 after its start; `root` at 0x1000.
const SECTION_1: (&[u64], &[u64]) = (&[0x1000, 0x1032, 0x1064, 0x2000], &[0x2064, 0x3000, 0x3064]);
const SECTION_2: (&[u64], &[u64]) = (&[0x1000, 0x1032, 0x1064, 0x2000], &[0x2032]);
const SECTION_3: (&[u64], &[u64]) = (&[0x1000, 0x1064], &[0x1032]);

#[test]
fn the_tree_of_figure_1() {
    let mut recorder = Recorder::new(Options::default());
    recorder.section(1, SECTION_1.0, SECTION_1.1);
    recorder.section(2, SECTION_2.0, SECTION_2.1);
    let report = recorder.report();
    assert_eq!((report.pairs.compared, report.pairs.conflicting[0]), (1, 0), "sections 1 and 2 are data independent");
    recorder.section(3, SECTION_3.0, SECTION_3.1);
    let report = recorder.report();
    assert_eq!((report.pairs.compared, report.pairs.conflicting[0]), (3, 2), "section 3 conflicts with both");
    assert_eq!((report.pairs.conflicting_bytes, report.pairs.set_bytes), (8, 24), "on the four bytes at 0x1032");
    let fields: Vec<u64> = report.fields.ranked().iter().map(|field| field.field).collect();
    assert_eq!(fields, [0x1030], "on the word of 0x1032");
    assert_eq!(report.fields.ranked()[0].pairs_on_it_alone, 2);
    assert_eq!((report.compared_sections, report.conflicting_sections[0]), (2, 1));
    assert!((report.pairs.independence().0.expect("pairs") - 100.0 / 3.0).abs() < 1e-9);
}

#[test]
fn words_of_locks_are_left_out() {
    for (filters_lock_words, conflicts) in [(true, 0), (false, 1)] {
        let mut recorder = Recorder::new(Options { filters_lock_words, ..Options::default() });
        recorder.study.lock_at(0x2000, 40, || 0); // another lock, taken inside both sections
        recorder.section(1, &[LOCK, 0x3000], &[LOCK, 0x2000, 0x2020]);
        recorder.section(2, &[LOCK, 0x3100], &[LOCK, 0x2000, 0x2020]);
        assert_eq!(recorder.report().pairs.conflicting[0], conflicts, "filter {filters_lock_words}");
    }
}

#[test]
fn sections_of_one_thread_are_not_compared() {
    for (compares_own_sections, compared) in [(false, 0), (true, 1)] {
        let mut recorder = Recorder::new(Options { compares_own_sections, ..Options::default() });
        recorder.section(1, &[], &[0x1000]);
        recorder.section(1, &[], &[0x1000]);
        assert_eq!(recorder.report().pairs.compared, compared);
    }
}

#[test]
fn a_lock_in_reused_memory_starts_a_new_history() {
    for (renews, conflicts) in [(true, 0), (false, 1)] {
        let mut recorder = Recorder::new(Options::default());
        recorder.section(1, &[], &[0x1000]);
        if renews {
            recorder.study.renew(LOCK);
        }
        recorder.section(2, &[], &[0x1000]);
        let report = recorder.report();
        assert_eq!((report.generations, report.acquires), (1 + u64::from(renews), 2));
        assert_eq!((report.pairs.compared, report.pairs.conflicting[0]), (conflicts, conflicts));
    }
}

#[test]
fn what_was_set_aside_is_counted_and_met_by_nothing() {
    for renews in [false, true] {
        let mut recorder = Recorder::new(Options::default());
        recorder.section(1, &[], &[0x1000]);
        let id = recorder.lock();
        recorder.study.acquire(id, 1, Exclusion::Exclusive, 7, at(20));
        if renews {
            recorder.study.suspend();
            recorder.study.renew(LOCK);
        }
        assert_eq!(recorder.study.set_aside(), (1, 1));
        recorder.section(2, &[], &[0x1000]);
        let report = recorder.report();
        assert_eq!((report.generations, report.acquires, report.sections, report.pairs.compared), (1, 1, 1, 0));
    }
}

/// A program that makes and destroys locks without end had a report of each.
#[test]
fn locks_in_reused_memory_take_bounded_memory() {
    let mut study = Study::new(Options::default());
    for generation in 0..1000_u64 {
        let id = study.lock_at(LOCK, LOCK_BYTES, || generation % 2);
        study.acquire(id, 1, Exclusion::Exclusive, 7, at(generation));
        study.release(id, 1, at(generation), &[], &mut Addresses);
        study.renew(LOCK);
    }
    let reports = study.reports();
    assert_eq!(reports.iter().map(|report| (report.generations, report.acquires)).collect::<Vec<_>>(), [(500, 500); 2]);
}

#[test]
fn a_lock_that_is_held_or_awaited_is_not_renewed() {
    let mut recorder = Recorder::new(Options::default());
    let id = recorder.lock();
    recorder.study.acquire(id, 1, Exclusion::Exclusive, 7, at(1));
    recorder.study.renew(LOCK);
    assert_eq!(recorder.lock(), id);
}

#[test]
fn a_section_that_changed_hands_is_compared_with_none() {
    for (hands_over, compared) in [(true, 0), (false, 1)] {
        let mut recorder = Recorder::new(Options::default());
        recorder.section(1, &[], &[0x1000]);
        let id = recorder.lock();
        recorder.study.acquire(id, 2, Exclusion::Exclusive, 7, at(20));
        let releaser = if hands_over { 3 } else { 2 };
        recorder.study.hand_over(id, (2, Moment::default()), (releaser, Moment::default()));
        if !hands_over {
            recorder.section(4, &[], &[0x2000]);
            assert_eq!(recorder.report().pairs.compared, compared);
            continue;
        }
        let words: Vec<Word> = Word::of_access(0x1000, 4, true, false, 0).collect();
        assert!(recorder.study.release(id, releaser, at(30), &words, &mut Addresses));
        assert_eq!((recorder.report().pairs.compared, recorder.report().handed_over), (compared, 1));
    }
}

#[test]
fn two_sections_that_touch_devices_conflict() {
    for (devices, conflicts) in [(true, 1), (false, 0)] {
        let mut recorder = Recorder::new(Options::default());
        for thread in [1, 2] {
            let id = recorder.lock();
            recorder.study.acquire(id, thread, Exclusion::Exclusive, 7, at(1));
            if devices {
                recorder.study.touch_device(id, thread);
            }
            recorder.study.release(id, thread, at(2), &[], &mut Addresses);
        }
        assert_eq!(recorder.report().pairs.conflicting[0], conflicts);
    }
}

#[test]
fn readers_are_not_kept_from_readers() {
    let mut study = Study::new(Options::default());
    let id = study.lock_at(LOCK, LOCK_BYTES, || 0);
    let written: Vec<Word> = Word::of_access(0x1000, 8, true, false, 0).collect();
    for (thread, exclusion) in [(1, Exclusion::Shared), (2, Exclusion::Shared), (3, Exclusion::Exclusive)] {
        study.acquire(id, thread, exclusion, 7, at(1));
        study.release(id, thread, at(2), &written, &mut Addresses);
    }
    let report = study.reports().swap_remove(0);
    assert_eq!((report.pairs.compared, report.pairs.conflicting[0], report.shared_acquires), (2, 2, 2));
}

#[test]
fn a_contended_section_is_compared_with_every_section_that_it_waited_for() {
    let mut study = Study::new(Options::default());
    let id = study.lock_at(LOCK, LOCK_BYTES, || 0);
    let words_at = |address| -> Vec<Word> { Word::of_access(address, 8, true, false, 0).collect() };
    study.acquire(id, 1, Exclusion::Exclusive, 7, at(0));
    study.wait(id, 2, at(5));
    study.wait(id, 3, at(6));
    study.release(id, 1, at(10), &words_at(0x1000), &mut Addresses);
    study.acquire(id, 3, Exclusion::Exclusive, 7, at(10));
    study.release(id, 3, at(20), &words_at(0x2000), &mut Addresses);
    study.acquire(id, 2, Exclusion::Exclusive, 7, at(20));
    study.release(id, 2, at(30), &words_at(0x2000), &mut Addresses); // conflicts with 3's section, not with 1's
    let report = study.reports().swap_remove(0);
    assert_eq!((report.acquires, report.contended), (3, 2));
    assert_eq!((report.contended_compared, report.contended_conflicts), (2, 1));
    assert_eq!((report.wait.total, report.wait.longest), (span(19), span(15)));
    assert_eq!(report.hold.total, span(30));
    let kinds: Vec<_> = report.kinds.reports().iter().map(|kind| (kind.kind.caller, kind.sections)).collect();
    assert_eq!(kinds, [(7, 3)]);
}

/// What was known too late of a lock that is found by its instructions.
#[test]
fn a_section_that_was_none_leaves_nothing_and_one_that_was_missed_is_counted_and_compared_with_none() {
    let mut recorder = Recorder::new(Options::default());
    recorder.section(1, &[], &[0x2000]);
    let id = recorder.lock();
    recorder.study.wait(id, 2, at(20));
    recorder.study.acquire(id, 2, Exclusion::Exclusive, 7, at(25));
    recorder.study.retract(id, 2);
    recorder.study.retract(id, 3); // never reported to hold it
    recorder.study.miss(id, 2, at(27), at(30));
    let report = recorder.report();
    assert_eq!(
        report.hold.total,
        span(13),
        "what was missed was held since it was tried last, and the first section for 10"
    );
    assert_eq!((report.acquires, report.contended, report.sections, report.never_released), (2, 1, 1, 0));
    assert_eq!((report.wait.total, report.pairs.compared), (span(7), 0));
}

#[test]
fn what_is_never_released_or_released_unheld_is_counted() {
    let mut study = Study::new(Options::default());
    let id = study.lock_at(LOCK, LOCK_BYTES, || 0);
    assert!(!study.release(id, 1, at(0), &[], &mut Addresses));
    study.acquire(id, 1, Exclusion::Exclusive, 7, at(1));
    study.acquire(id, 2, Exclusion::Exclusive, 7, at(1));
    study.abandon(id, 2);
    let report = study.reports().swap_remove(0);
    assert_eq!((report.releases_without_acquire, report.never_released, report.sections), (1, 2, 0));
}

/// Sections of known independence: of `threads` threads that take turns, each writes its own word, and every `period`th
/// section also writes a common one.
fn independence_percent(window_sections: usize, private_percent: u64) -> f64 {
    let mut recorder = Recorder::new(Options { window_sections, ..Options::default() });
    let mut random = 1_u64;
    for round in 0..4_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let thread = (round % 4) as u32;
        let own = 0x4000 + u64::from(thread) * 64;
        // Two sections conflict if both write the common word: a share p of sections gives p * p of pairs.
        let common = (random >> 33) % 10_000 >= private_percent * 100;
        recorder.section(thread, &[], if common { &[0x8000][..] } else { std::slice::from_ref(&own) });
    }
    recorder.report().pairs.independence().0.expect("pairs")
}

#[test]
fn known_independence_is_found_whatever_the_window() {
    for window_sections in [50, 75, 100, 128] {
        for (private_percent, expected) in [(0, 0.0), (50, 75.0), (100, 100.0)] {
            let measured = independence_percent(window_sections, private_percent);
            assert!((measured - expected).abs() < 2.0, "window {window_sections}: {measured} instead of {expected}");
        }
    }
}

#[test]
fn a_smaller_window_compares_with_fewer_sections() {
    let mut recorder = Recorder::new(Options::default());
    for round in 0..200 {
        recorder.section(round % 2, &[], &[0x1000]);
    }
    for (size, window) in WINDOWS.into_iter().zip(recorder.report().windows) {
        // Of the sections before, every second is of the other thread, beginning with the last.
        let pairs = (0..200).map(|before: u64| before.min(size as u64).div_ceil(2)).sum::<u64>();
        assert_eq!((window.pairs, window.conflicting_pairs), (pairs, pairs), "window {size}");
        assert_eq!((window.sections, window.conflicting_sections), (199, 199));
    }
    assert_eq!(recorder.report().pairs.compared, recorder.report().windows[3].pairs);
}

/// What is remembered of each thread and of each wait has a bound, and what lies beyond it is forgotten.
#[test]
fn the_newest_releases_and_the_first_sections_of_a_wait_are_remembered() {
    let mut recorder = Recorder::new(Options::default());
    (0..300).for_each(|thread| recorder.section(thread, &[], &[]));
    for (thread, gaps) in [(299, 1), (44, 2), (43, 2)] {
        recorder.section(thread, &[], &[]);
        assert_eq!(recorder.report().gaps.count, gaps, "thread {thread}");
    }
    for (place, conflicts) in [(63, 1), (64, 0)] {
        let mut recorder = Recorder::new(Options::default());
        let id = recorder.lock();
        recorder.study.wait(id, 1, at(0));
        (0..100).for_each(|number| recorder.section(2, &[], if number == place { &[0x1000] } else { &[] }));
        recorder.section(1, &[], &[0x1000]);
        assert_eq!(recorder.report().contended_conflicts, conflicts, "section {place} of those that it waited for");
    }
}

#[test]
fn the_density_goes_by_the_newest_section_of_each_thread() {
    let mut recorder = Recorder::new(Options::default());
    for (thread, address, mean) in
        [(1, 0x1000, None), (2, 0x1000, Some(1.0)), (2, 0x2000, Some(1.5)), (1, 0x2000, Some(4.0 / 3.0))]
    {
        recorder.section(thread, &[], &[address]);
        assert_eq!(recorder.report().density.speed_ups(), [mean; 3], "thread {thread} at {address:#x}");
    }
}
