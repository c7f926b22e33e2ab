//! A process dies before each of its accesses in calls on locks of files, and in those that give locks up: then another one can
//! lock all, and anyone who waited for it has been woken. Threads lock and close, and set attributes, in chosen schedules.
#![cfg(all(shuttle, target_os = "linux"))]

use std::cell::Cell;
use std::mem::forget;

use history::threads;
use percpu::testing::{World, die, die_everywhere, owner};
use percpu::{ArenaConfig, Core};
use scalefs::data::{self, DescriptorOptions};
use scalefs::{
    Credentials, DataOperations, Errno, Host, LockKind, LockMode, LockRange, LockRefusal, LockRequest, NumberChoice,
    OnExec, OpenFlags, Patience as Waits, Process, ScaleFs, ScaleFsConfig, Start, extended, locks,
};
use sync::atomic::AtomicU32;
use sync::mutant::must_be_caught;
use sync::{Spin, Wait, WaitReason};

/// Waits for a while, and then takes it that no one will come. Counts whom it wakes.
#[derive(Default)]
struct Patience {
    woken: Cell<u32>,
}

impl Wait for Patience {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert!(round < 10_000, "waits without end: {reason:?}");
    }

    fn wake(&self, _: &AtomicU32) {
        self.woken.set(self.woken.get() + 1);
    }
}

impl Host for Patience {
    fn now_ns(&self) -> u64 {
        0
    }
}

const FLAGS: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE).union(OpenFlags::CREATE);
const KINDS: [LockKind; 3] = [LockKind::Process, LockKind::Description, LockKind::WholeFile];

fn request(kind: LockKind, mode: Option<LockMode>, (first, last): (u64, u64)) -> LockRequest {
    let range = if kind == LockKind::WholeFile { LockRange::ALL } else { LockRange { first, last } };
    LockRequest { kind, range, mode, seen_as: 0 }
}

fn all(kind: LockKind) -> LockRequest {
    request(kind, Some(LockMode::Exclusive), (0, LockRange::END))
}

fn open(fs: &ScaleFs, core: &Core<'_>, process: &Process, host: &impl Host) -> u32 {
    let call = fs.enter(core, process, host);
    data::open(&call, Start::WorkingDirectory, b"f", FLAGS, 0o600, DescriptorOptions::PLAIN).unwrap()
}

fn begin<'w>(core: &Core<'w>) -> &'w ScaleFs {
    let config = ScaleFsConfig {
        root_bucket_count: 2,
        directory_bucket_count: 2,
        count_slots_per_core: 8,
        ..ScaleFsConfig::default()
    };
    ScaleFs::create(core, config).unwrap()
}

/// What a process does when it dies, which has two descriptors of the file.
type Act = (&'static str, fn(&ScaleFs, &Core<'_>, Process, &Patience));

const EXCLUSIVE: Option<LockMode> = Some(LockMode::Exclusive);

fn set(fs: &ScaleFs, core: &Core<'_>, process: &Process, host: &Patience, request: LockRequest) {
    locks::set(&fs.enter(core, process, host), 0, &request).unwrap();
}

const ACTS: [Act; 6] = [
    ("first locks", |fs, core, process, host| {
        for kind in KINDS {
            let first = kind as u64 * 10;
            set(fs, core, &process, host, request(kind, EXCLUSIVE, (first, first + 9)));
        }
        forget(process);
    }),
    ("parts are unlocked", |fs, core, process, host| {
        set(fs, core, &process, host, request(LockKind::Process, EXCLUSIVE, (0, 20)));
        set(fs, core, &process, host, request(LockKind::Process, None, (5, 10)));
        set(fs, core, &process, host, request(LockKind::Process, Some(LockMode::Shared), (15, 30)));
        set(fs, core, &process, host, request(LockKind::Process, None, (0, LockRange::END)));
        forget(process);
    }),
    ("close", |fs, core, process, host| {
        // The only one.
        data::close(&fs.enter(core, &process, host), 1).unwrap();
        set(fs, core, &process, host, request(LockKind::Process, EXCLUSIVE, (0, 9)));
        set(fs, core, &process, host, request(LockKind::Description, EXCLUSIVE, (20, 29)));
        set(fs, core, &process, host, request(LockKind::WholeFile, EXCLUSIVE, (0, 0)));
        data::close(&fs.enter(core, &process, host), 0).unwrap();
        forget(process);
    }),
    ("dup2", |fs, core, process, host| {
        set(fs, core, &process, host, request(LockKind::Process, EXCLUSIVE, (0, 9)));
        set(fs, core, &process, host, request(LockKind::WholeFile, EXCLUSIVE, (0, 0)));
        data::duplicate_to(&fs.enter(core, &process, host), 1, 0, OnExec::Keep).unwrap();
        forget(process);
    }),
    ("fork and exit", |fs, core, process, host| {
        set(fs, core, &process, host, request(LockKind::Description, EXCLUSIVE, (20, 29)));
        let child = process.fork(fs, core, host).unwrap();
        set(fs, core, &child, host, request(LockKind::Process, EXCLUSIVE, (0, 9)));
        child.exit(fs, core, host);
        process.exit(fs, core, host);
    }),
    ("wait", |fs, core, process, host| {
        set(fs, core, &process, host, request(LockKind::Process, EXCLUSIVE, (0, 9)));
        let busy = request(LockKind::Process, EXCLUSIVE, (100, 109));
        let refused = locks::ask(&fs.enter(core, &process, host), 0, &busy, Waits::Wait);
        assert!(matches!(refused, Err(LockRefusal::Busy(_))));
        forget(process);
    }),
];

/// Lets a process die in what it does; `None` if it came to its end, else whether a description's locks stay: who dies between two
/// stores of a close leaves a description that no descriptor leads to (`hand.rs`). A process's locks never stay.
fn survive((name, act): Act, access: u64) -> Option<bool> {
    let world = World::with(2 << 20, ArenaConfig { core_count: 2, chunk_bytes: 4096 });
    let core = world.core(0);
    let host = Patience::default();
    let fs = begin(&core);
    let other = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
    assert_eq!(open(fs, &core, &other, &host), 0);
    if name == "wait" {
        locks::set(&fs.enter(&core, &other, &host), 0, &request(LockKind::Process, EXCLUSIVE, (100, 109))).unwrap();
    }
    let victim = {
        let its = world.arena().claim(1, owner(2)).unwrap();
        let victim = Process::new(fs, &its, Credentials::SUPERUSER).unwrap();
        let fd = open(fs, &its, &victim, &host);
        assert_eq!(
            data::duplicate(&fs.enter(&its, &victim, &host), fd, NumberChoice::LowestFrom(0), OnExec::Keep),
            Ok(1)
        );
        victim
    };
    let mut victim = Some(victim);
    let heir = die(world.arena(), 1, access, |its| act(fs, its, victim.take().unwrap(), &Patience::default()));
    forget(victim);
    let Some(heir) = heir else {
        forget(other);
        return None;
    };
    // SAFETY: the process has gone, and its core, which it alone had, is repaired.
    let (woken_before, is_busy) = unsafe {
        // Who waits is there before the dead one's end.
        fs.repair_taken_over(&heir, &host);
        let asked = locks::ask(&fs.enter(&core, &other, &host), 0, &all(LockKind::Process), Waits::Wait);
        let before = host.woken.get();
        fs.end_processes_of(&core, owner(2), &[&heir], &host);
        (before, matches!(asked, Err(LockRefusal::Busy(_))))
    };
    let mut stays = false;
    for kind in KINDS {
        let call = fs.enter(&core, &other, &host);
        let foreign = locks::in_the_way(&call, 0, &all(kind)).unwrap();
        assert!(foreign.is_none_or(|lock| lock.kind != LockKind::Process), "{name}: {foreign:?} stays");
        stays |= foreign.is_some();
        assert_eq!(locks::set(&call, 0, &all(kind)).is_ok(), foreign.is_none(), "{name}: {kind:?}");
        locks::set(&call, 0, &LockRequest { mode: None, ..all(kind) }).unwrap();
    }
    assert!(stays || !is_busy || host.woken.get() > woken_before, "{name}: anyone who waits sleeps on");
    other.exit(fs, &core, &host);
    (0..8).for_each(|_| [&core, &heir].into_iter().for_each(|core| fs.maintain(core, &host)));
    Some(stays)
}

fn survive_all(act: Act) -> (u64, u64) {
    let mut stays = 0;
    let deaths = die_everywhere(|access| {
        let survived = survive(act, access);
        stays += u64::from(survived == Some(true));
        survived.is_some()
    });
    assert!(stays * 15 <= deaths, "{}: {stays} of {deaths} deaths leave locks of descriptions", act.0);
    (deaths, stays)
}

#[test]
fn the_locks_of_who_dies_are_given_up_wherever_it_dies() {
    for act in ACTS {
        let (deaths, stays) = survive_all(act);
        println!("{}: {deaths} deaths, {stays} leave locks of a description", act.0);
    }
}

#[test]
fn locks_that_outlive_their_owners_are_found() {
    for mutant in [
        "scalefs: an heir forgets the locks of files",
        "scalefs: a process keeps its locks when it closes the file",
        "scalefs: locks stay when the last descriptor is closed",
        "scalefs: who unlocks a file wakes no one",
    ] {
        must_be_caught(mutant, || [ACTS[2], ACTS[0], ACTS[1], ACTS[3]].map(survive_all));
    }
}

/// Two processes lock what each other has, waiting: one is refused, and the other gets it.
fn two_wait_for_each_other(seed: u64) {
    threads::run(std::iter::once(seed), || {
        let world = World::with(2 << 20, ArenaConfig { core_count: 3, chunk_bytes: 4096 });
        let core = world.core(2);
        let fs = begin(&core);
        let processes = [(); 2].map(|()| Process::new(fs, &core, Credentials::SUPERUSER).unwrap());
        for (process, at) in processes.iter().zip([0, 1]) {
            open(fs, &core, process, &Spin);
            let own = request(LockKind::Process, EXCLUSIVE, (at, at));
            locks::set(&fs.enter(&core, process, &Spin), 0, &own).unwrap();
        }
        let outcomes = threads::scope(|scope| {
            let (world, processes) = (&world, &processes);
            let threads = [0_usize, 1].map(|place| {
                scope.spawn(move || {
                    let core = world.core(place);
                    let at = 1 - place as u64;
                    let wanted = request(LockKind::Process, EXCLUSIVE, (at, at));
                    let call = || fs.enter(&core, &processes[place], &Spin);
                    let locked = locks::until_locked(
                        |waited| locks::ask_again(&call(), 0, &wanted, waited),
                        |wait, round| {
                            assert!(round < 2_000, "both wait");
                            fs.wait_for_lock(wait, &Spin, round);
                        },
                    );
                    if locked == Err(Errno::EDEADLK) {
                        data::close(&call(), 0).unwrap();
                    }
                    locked
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        let refused = outcomes.iter().filter(|outcome| **outcome == Err(Errno::EDEADLK)).count();
        let locked = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!((refused, locked), (1, 1), "{outcomes:?}");
        processes.into_iter().for_each(|process| process.exit(fs, &core, &Spin));
    });
}

#[test]
fn of_two_that_would_wait_for_each_other_one_is_refused() {
    (0..200).for_each(two_wait_for_each_other);
    must_be_caught("scalefs: a circle of waiting processes is not seen", || (0..200).for_each(two_wait_for_each_other));
}

/// One thread locks by a descriptor while another closes it: in the end no lock is left without a descriptor.
fn lock_and_close(seed: u64) {
    let kind = KINDS[seed as usize % 3];
    threads::run(std::iter::once(seed), move || {
        let world = World::with(2 << 20, ArenaConfig { core_count: 3, chunk_bytes: 4096 });
        let core = world.core(2);
        let fs = begin(&core);
        let [process, other] = [(); 2].map(|()| Process::new(fs, &core, Credentials::SUPERUSER).unwrap());
        assert_eq!(open(fs, &core, &process, &Spin), open(fs, &core, &other, &Spin));
        threads::scope(|scope| {
            let (world, process) = (&world, &process);
            scope.spawn(move || {
                let core = world.core(0);
                let locked = locks::set(&fs.enter(&core, process, &Spin), 0, &all(kind));
                assert!([Ok(()), Err(Errno::EBADF)].contains(&locked), "{locked:?}");
            });
            scope.spawn(move || {
                let core = world.core(1);
                data::close(&fs.enter(&core, process, &Spin), 0).unwrap();
            });
        });
        assert_eq!(locks::set(&fs.enter(&core, &other, &Spin), 0, &all(kind)), Ok(()), "{kind:?}");
        [process, other].into_iter().for_each(|process| process.exit(fs, &core, &Spin));
    });
}

#[test]
fn no_lock_stays_by_a_descriptor_that_is_closed_meanwhile() {
    (0..600).for_each(lock_and_close);
}

/// Two threads set attributes of one file at once: in the end both are there, and one that must be new is one thread's alone.
fn two_set_attributes(seed: u64) {
    threads::run(std::iter::once(seed), || {
        let world = World::with(2 << 20, ArenaConfig { core_count: 3, chunk_bytes: 4096 });
        let core = world.core(2);
        let fs = begin(&core);
        let process = Process::new(fs, &core, Credentials::SUPERUSER).unwrap();
        open(fs, &core, &process, &Spin);
        let made = threads::scope(|scope| {
            let (world, process) = (&world, &process);
            let threads = [0_usize, 1].map(|place| {
                scope.spawn(move || {
                    let core = world.core(place);
                    let set = |name: &str, flags| {
                        let call = fs.enter(&core, process, &Spin);
                        let given = (name.as_bytes(), &[place as u8; 40][..]);
                        extended::set(call.objects(), || extended::of(&call, 0), given, flags)
                    };
                    assert_eq!(set(["user.a", "user.b"][place], 0), Ok(()));
                    set("user.new", extended::MUST_BE_NEW).is_ok()
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        assert_ne!(made[0], made[1], "{made:?}");
        let call = fs.enter(&core, &process, &Spin);
        let mut names = [0; 40];
        let told = extended::list(call.objects(), || extended::of(&call, 0), &mut names).unwrap();
        assert_eq!(&names[..told], b"user.a\0user.b\0user.new\0");
        drop(call);
        process.exit(fs, &core, &Spin);
    });
}

#[test]
fn attributes_that_two_set_are_both_there() {
    (0..200).for_each(two_set_attributes);
    must_be_caught("scalefs: attributes are looked at before their lock", || (0..200).for_each(two_set_attributes));
}
