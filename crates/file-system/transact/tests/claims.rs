//! Who has lost again and again claims what it loses by: then others wait, for a bounded time.
#![cfg(not(loom))]

use std::cell::Cell;

use history::{play, repeat, rounds};
use percpu::testing::World;
use posix_calls::attributes::{self, Access};
use posix_calls::data::{self, DescriptorOptions, Whence};
use posix_calls::names;
use posix_calls::{Credentials, DataOperations as _, Errno, Follow, ObjectOperations, OpenFlags, Start};
use scalefs::{Context, Host, Process, ScaleFs, ScaleFsConfig};
use sync::{Spin, Wait, WaitReason};
use transact::{Claims, Sharing, Transactional, WithData};

fn at<N>() -> Start<N> {
    Start::WorkingDirectory
}

fn create<V: ObjectOperations>(call: &V, path: &[u8]) -> Result<(), Errno> {
    let flags = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE;
    let opened = names::open(call, at(), path, flags, 0o644)?;
    names::close(call, opened.handle);
    Ok(())
}

fn exists<V: ObjectOperations>(call: &V, path: &[u8]) -> bool {
    attributes::access(call, at(), path, Follow::Nothing, Access::EXISTS).is_ok()
}

/// After one loss, so that few schedules show it.
const SOON: Claims = Claims { after_losses: 1, after_ns: u64::MAX, last_ns: 100_000_000 };

fn config() -> ScaleFsConfig {
    ScaleFsConfig {
        root_bucket_count: 4,
        directory_bucket_count: 2,
        count_slots_per_core: 2,
        ..ScaleFsConfig::default()
    }
}

/// What a thread does: the transaction, or so many changes of what that looks at.
#[derive(Clone, Copy, Debug)]
enum Role {
    Transaction,
    Writer(usize),
}

type Plan = Vec<Vec<Role>>;

/// A transaction that looks at names, against a writer of them, commits in so many attempts: in the first it loses, in the
/// second, with a claim, it may lose by a change that had begun, and by nothing else.
fn attempts_are_few(number: u64, plan: &Plan) {
    let world = World::new(plan.len() + 1);
    let core = world.core(plan.len());
    let fs = ScaleFs::create(&core, ScaleFsConfig { hash_seed: number, ..config() }).unwrap();
    play(plan, |thread| {
        let core = world.core(thread);
        let context = Context::new(fs, &core, Credentials::SUPERUSER);
        move |role: &Role| {
            let begin = || fs.begin(&core, &context, &Spin);
            match *role {
                Role::Transaction => {
                    let attempts = Cell::new(0);
                    let transactional = Transactional::new(Sharing::Shared, begin).claims(SOON);
                    let done = transactional.transaction(|t| {
                        attempts.set(attempts.get() + 1);
                        (0..8).for_each(|look| {
                            exists(&t.begin(), [&b"n"[..], b"m"][look % 2]);
                        });
                        create(&t.begin(), format!("done-{thread}").as_bytes())
                    });
                    assert_eq!(done, Ok(()));
                    let most = if cfg!(shuttle) { 2 + plan.len() } else { 100 };
                    assert!(attempts.get() <= most, "{} attempts", attempts.get());
                }
                Role::Writer(changes) => {
                    for _ in 0..changes {
                        let _ = create(&begin(), b"n");
                        let _ = names::unlink(&begin(), at(), b"n");
                    }
                }
            }
            fs.maintain(&core, &Spin);
        }
    });
}

fn against_a_writer() -> Plan {
    vec![vec![Role::Transaction], vec![Role::Writer(200)]]
}

#[test]
fn who_claims_commits() {
    let rounds = rounds(if cfg!(shuttle) { 60 } else { 20 }).least();
    repeat(rounds, against_a_writer(), attempts_are_few);
    let two = vec![vec![Role::Transaction], vec![Role::Transaction], vec![Role::Writer(60)]];
    repeat(rounds, two, attempts_are_few);
}

#[cfg(shuttle)]
#[test]
fn claims_are_heeded() {
    sync::mutant::must_be_caught("scalefs: a claim is ignored", || {
        repeat(200, against_a_writer(), attempts_are_few);
    });
}

const MILLISECOND_NS: u64 = 1_000_000;
/// A claim after two losses.
const RULES: Claims = Claims { after_losses: 2, after_ns: u64::MAX, last_ns: 5 * MILLISECOND_NS };

/// A clock that goes on by a millisecond each time that somebody waits for a claim.
#[derive(Debug, Default)]
struct Clock {
    now_ns: Cell<u64>,
    waits: Cell<u64>,
    /// Whether somebody sets it back whenever a call waits.
    is_set_back: Cell<bool>,
}

impl Wait for Clock {
    fn wait(&self, reason: WaitReason, _: u32) {
        if reason == WaitReason::Claim {
            self.waits.set(self.waits.get() + 1);
            self.now_ns.set(if self.is_set_back.get() { 0 } else { self.now_ns.get() + MILLISECOND_NS });
        }
    }
}

impl Host for Clock {
    fn now_ns(&self) -> u64 {
        self.now_ns.set(self.now_ns.get() + 1);
        self.now_ns.get()
    }
}

impl Clock {
    fn waits_of(&self, body: impl FnOnce()) -> u64 {
        let before = self.waits.get();
        body();
        self.waits.get() - before
    }
}

/// Who loses by what heeds no claim, as the offset of a descriptor, lets nobody wait for it.
fn nobody_waits_for_who_loses_by_an_offset(_: u64, (): &()) {
    let (world, clock) = (World::new(2), Clock::default());
    let cores = [world.core(0), world.core(1)];
    let fs = ScaleFs::create(&cores[0], config()).unwrap();
    let process = Process::new(fs, &cores[0], Credentials::SUPERUSER).unwrap();
    let enter = |core: usize| fs.enter(&cores[core], &process, &clock);
    let flags = OpenFlags::CREATE | OpenFlags::READ;
    assert_eq!(data::open(&enter(1), at(), b"f", flags, 0o644, DescriptorOptions::PLAIN), Ok(0));
    let waits = Cell::new(Vec::new());
    let transactional = Transactional::new(Sharing::Shared, || WithData(enter(0))).claims(RULES).attempts(5);
    let outcome = transactional.transaction(|t| {
        let mut all = waits.take();
        data::seek(&t.begin(), 0, 0, Whence::Current)?;
        data::seek(&enter(1), 0, all.len() as i64 + 1, Whence::Start)?;
        all.push(clock.waits_of(|| create(enter(1).objects(), format!("n{}", all.len()).as_bytes()).unwrap()));
        waits.set(all);
        create(&t.begin(), b"done")
    });
    assert_eq!((outcome, waits.take()), (Err(Errno::ECANCELED), vec![0; 5]));
    process.exit(fs, &cores[0], &clock);
}

#[test]
fn what_no_claim_keeps_is_not_claimed() {
    repeat(1, (), nobody_waits_for_who_loses_by_an_offset);
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("transact: who loses by an offset claims an object", || {
        repeat(1, (), nobody_waits_for_who_loses_by_an_offset);
    });
}

/// With that clock; two cores of one thread.
#[cfg(not(shuttle))]
mod with_a_clock {
    use super::{Cell, Clock, Context, Credentials, MILLISECOND_NS, RULES, ScaleFs, Sharing, Transactional, World};
    use super::{at, config, create, exists};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use posix_calls::Errno;
    use posix_calls::attributes;
    use posix_calls::directories::make_directory;
    use scalefs::Direct;

    /// How calls of either core begin, and their clock.
    type Begin<'b, 'c> = &'b dyn Fn() -> Direct<'c, Clock>;

    fn with_two_cores(body: impl for<'c> FnOnce(&'c Clock, Begin<'_, 'c>, Begin<'_, 'c>)) {
        let (world, clock) = (World::new(2), Clock::default());
        let cores = [world.core(0), world.core(1)];
        let fs = ScaleFs::create(&cores[0], config()).unwrap();
        let contexts = [0, 1].map(|core| Context::new(fs, &cores[core], Credentials::SUPERUSER));
        let begin = |core: usize| fs.begin(&cores[core], &contexts[core], &clock);
        body(&clock, &|| begin(0), &|| begin(1));
    }

    #[test]
    fn a_writer_waits_as_long_as_a_claim_lasts_and_nobody_else_does() {
        with_two_cores(|clock, mine, theirs| {
            let (waits, looks) = (Cell::new(Vec::new()), Cell::new(0));
            let change = |number: usize| create(&theirs(), format!("n{number}").as_bytes()).unwrap();
            let transactional = Transactional::new(Sharing::Shared, mine).claims(RULES).attempts(6);
            let outcome = transactional.transaction(|t| {
                let mut all = waits.take();
                exists(&t.begin(), format!("n{}", all.len()).as_bytes());
                looks.set(looks.get() + clock.waits_of(|| assert_eq!(exists(&theirs(), b"n0"), !all.is_empty())));
                all.push(clock.waits_of(|| change(all.len())));
                waits.set(all);
                create(&t.begin(), b"done")
            });
            assert_eq!((outcome, looks.get()), (Err(Errno::ECANCELED), 0));
            // The third and the sixth attempt have claims, which end before the writer has changed anything.
            assert_eq!(waits.take(), [0, 0, 5, 0, 0, 5]);
            assert_eq!(clock.waits_of(|| change(7)), 0);
        });
    }

    #[test]
    fn a_younger_transaction_waits_for_a_claim_and_a_more_urgent_one_does_not() {
        with_two_cores(|clock, mine, theirs| {
            for (priority, third) in [(100, 5), (101, 0)] {
                let waits = Cell::new(Vec::new());
                let transactional = Transactional::new(Sharing::Shared, mine).claims(RULES).priority(100).attempts(3);
                let outcome = transactional.transaction(|t| {
                    let mut all = waits.take();
                    let name = format!("{priority}-{}", all.len());
                    exists(&t.begin(), name.as_bytes());
                    if all.is_empty() {
                        // Ages are compared in units of 256 nanoseconds.
                        clock.now_ns.set(clock.now_ns.get() + MILLISECOND_NS);
                    }
                    let other = Transactional::new(Sharing::Shared, theirs).priority(priority);
                    all.push(clock.waits_of(|| {
                        other.transaction(|t| create(&t.begin(), name.as_bytes())).unwrap();
                    }));
                    waits.set(all);
                    create(&t.begin(), b"done")
                });
                assert_eq!((outcome, waits.take()), (Err(Errno::ECANCELED), vec![0, 0, third]), "{priority}");
            }
        });
    }

    #[test]
    fn nobody_waits_on_by_a_clock_that_was_set_back() {
        with_two_cores(|clock, mine, theirs| {
            clock.now_ns.set(MILLISECOND_NS);
            let waits = Cell::new(Vec::new());
            let transactional = Transactional::new(Sharing::Shared, mine).claims(RULES).attempts(3);
            let outcome = transactional.transaction(|t| {
                let mut all = waits.take();
                let name = format!("n{}", all.len());
                exists(&t.begin(), name.as_bytes());
                clock.is_set_back.set(all.len() == 2);
                all.push(clock.waits_of(|| create(&theirs(), name.as_bytes()).unwrap()));
                waits.set(all);
                create(&t.begin(), b"done")
            });
            assert_eq!((outcome, waits.take()), (Err(Errno::ECANCELED), vec![0, 0, 1]));
        });
    }

    #[test]
    fn what_no_claim_keeps_away_is_claimed_with_everything() {
        with_two_cores(|clock, mine, theirs| {
            let directory = |number: usize| format!("d{number}");
            for number in 0..9 {
                make_directory(&theirs(), at(), directory(number).as_bytes(), 0o755).unwrap();
            }
            let waits = Cell::new(Vec::new());
            let transactional = Transactional::new(Sharing::Shared, mine).claims(RULES).attempts(9);
            let outcome = transactional.transaction(|t| {
                let mut all = waits.take();
                let name = format!("{}/n", directory(all.len()));
                exists(&t.begin(), name.as_bytes());
                // What it makes itself is nobody's to wait for, whatever is claimed.
                create(&t.begin(), b"done")?;
                attributes::change_mode(&t.begin(), at(), b"done", 0o600)?;
                all.push(clock.waits_of(|| create(&theirs(), name.as_bytes()).unwrap()));
                let is_over = all.last() != Some(&0);
                waits.set(all);
                if is_over { Err(Errno::EIO) } else { Ok(()) }
            });
            assert!(outcome.is_err());
            // Two losses, three with a claim of what was lost by, and then one with a claim of everything.
            assert_eq!(waits.take()[..6], [0, 0, 0, 0, 0, 5]);
        });
    }

    #[test]
    fn a_closure_that_panics_or_waits_has_no_claim() {
        with_two_cores(|clock, mine, theirs| {
            let runs = Cell::new(0);
            let change = |number: u32| create(&theirs(), format!("n{number}").as_bytes()).unwrap();
            let transactional = Transactional::new(Sharing::Shared, mine).claims(RULES);
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                transactional.transaction(|t| {
                    runs.set(runs.get() + 1);
                    assert!(runs.get() < 3, "planted");
                    exists(&t.begin(), format!("n{}", runs.get()).as_bytes());
                    change(runs.get());
                    create(&t.begin(), b"done")
                })
            }));
            assert!(panicked.is_err());
            assert_eq!(clock.waits_of(|| change(3)), 0);

            let transactional = Transactional::new(Sharing::Shared, mine).claims(RULES).waits(|_| false);
            let waits = transactional.transaction(|t| {
                runs.set(runs.get() + 1);
                exists(&t.begin(), format!("n{}", runs.get()).as_bytes());
                if runs.get() > 5 {
                    return Err(t.retry());
                }
                change(runs.get());
                create(&t.begin(), b"done")
            });
            assert_eq!(waits, Err(Errno::EAGAIN));
            assert_eq!(clock.waits_of(|| change(9)), 0);
        });
    }
}
