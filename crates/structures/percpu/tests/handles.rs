//! What handles of cores tell: who is which core, what a failure says, where an arena keeps what, and the order of locks.
#![cfg(not(any(loom, shuttle)))]

use std::alloc::Layout;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use percpu::testing::{World, owner};
use percpu::{ClaimError, OutOfMemory, SizeClass};
#[cfg(debug_assertions)]
use percpu::{CoreLock, LockRank};
#[cfg(debug_assertions)]
use sync::Spin;
use sync::{Wait, WaitReason};

#[test]
fn a_claim_that_fails_says_why() {
    let world = World::new(2);
    let core = world.core(1);
    let said = |result: Result<_, ClaimError>| result.map(drop).unwrap_err().to_string();
    assert_eq!(said(world.claim(1, owner(1))), "the core is claimed already; release it or use another one");
    let expected = "expected a core below 2, the number that the arena was created for";
    assert_eq!(said(world.claim(2, owner(1))), expected);
    // SAFETY: refused.
    assert_eq!(said(unsafe { world.take_over(2, owner(1), owner(2)) }), expected);
    assert!(ClaimError::OtherProcess.to_string().contains("fork"));
    let served = ClaimError::Served { by: owner(5) }.to_string();
    assert_eq!(served, "owner 5 serves the idle core for a moment; claim it again, or wait for it");
    drop(core);
}

#[test]
fn a_core_is_claimed_as_long_as_somebody_is_it() {
    let world = World::new(2);
    let index = world.core(0).index();
    assert!(!world.is_claimed(index), "its handle is gone");
    let core = world.core(0);
    assert!(world.is_claimed(index));
    drop(core);
    let mut served = 0;
    world.for_each_idle_core(owner(1), |idle| {
        served += 1;
        assert!(idle.index() == index && !world.is_claimed(index), "who serves it does not claim it");
    });
    assert_eq!(served, 1, "the other was never on-line");
}

/// Counts how often somebody waits, and lets the server go on from the third time on.
struct Counting<'a>(&'a Barrier, AtomicU32);

impl Wait for Counting<'_> {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert_eq!((reason, self.1.fetch_add(1, Ordering::Relaxed)), (WaitReason::Operation, round));
        if round == 3 {
            self.0.wait();
        } else if round > 3 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_core_that_is_served_is_refused_at_once_or_awaited_as_the_host_likes() {
    let world = World::new(2);
    drop(world.core(1));
    let (barrier, taken) = (Barrier::new(2), world.core(0));
    let wait = Counting(&barrier, AtomicU32::new(0));
    std::thread::scope(|scope| {
        let mut waiting = None;
        let serves = world.for_each_idle_core(owner(5), |idle| {
            let served = Some(ClaimError::Served { by: owner(5) });
            assert_eq!((world.claim(1, owner(1)).err(), world.claim_any(owner(1)).err()), (served, served));
            assert_eq!((idle.owner(), idle.actor(), world.actor_of(idle.index())), (None, owner(5), Some(owner(5))));
            // No one serves at the same time as somebody else.
            assert!(!world.for_each_idle_core(owner(6), |_| unreachable!("one at a time")));
            waiting = Some(scope.spawn(|| world.claim_waiting(1, owner(1), &wait).map(|core| core.actor())));
            barrier.wait();
        });
        assert!(serves);
        assert_eq!(waiting.unwrap().join().unwrap(), Ok(owner(1)));
    });
    assert_eq!(world.claim_waiting(0, owner(1), &wait).err(), Some(ClaimError::Busy), "who claims it may keep it");
    drop(taken);
}

#[test]
fn a_server_that_panics_gives_the_core_back_and_the_service() {
    let world = World::new(1);
    drop(world.core(0));
    let serve = || world.for_each_idle_core(owner(1), |_| panic!("in the middle"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(serve)).is_err());
    assert!(world.for_each_idle_core(owner(2), |idle| assert_eq!(idle.actor(), owner(2))));
}

#[test]
fn failures_that_are_planned_are_told() {
    let world = World::new(1);
    let core = world.core(0);
    let class = SizeClass::of(Layout::new::<[u64; 8]>()).unwrap();
    assert_eq!(core.allocations_left(), None);
    core.fail_allocations_after(Some(2));
    let mut objects = Vec::new();
    for left in [1, 0] {
        objects.push(core.allocate(class).unwrap());
        assert_eq!(core.allocations_left(), Some(left));
    }
    assert_eq!((core.allocate(class), core.allocations_left()), (Err(OutOfMemory), Some(0)));
    core.fail_allocations_after(None);
    assert_eq!(core.allocations_left(), None);
    // SAFETY: allocated above, and used by no one.
    objects.into_iter().for_each(|object| unsafe { core.free(object, class) });
    assert_eq!(world.live_bytes(), 0);
}

#[test]
fn tools_are_told_where_the_head_and_the_records_lie() {
    const CORES: usize = 4;
    let world = World::new(CORES);
    let [head, records] = world.tables();
    let arena = std::ptr::from_ref(world.arena()) as usize;
    assert_eq!(head.memory, arena..arena + size_of_val(world.arena()));
    let bytes = records.memory.len() / CORES;
    assert_eq!((records.memory.len(), bytes % 64), (bytes * CORES, 0), "a record is whole lines");
    assert!(bytes > 0 && records.memory.start >= head.memory.end);
    assert!(records.memory.end <= arena + world.size_bytes());
}

/// Locks of one rank are taken in the order of their addresses; debug builds alone look.
#[test]
#[cfg(debug_assertions)]
fn locks_of_one_rank_go_by_their_addresses() {
    const RANK: LockRank = LockRank(7);
    let world = World::new(1);
    let core = world.core(0);
    let locks = [CoreLock::new(), CoreLock::new(), CoreLock::new()];
    let held: Vec<_> = locks.iter().map(|lock| lock.lock(&core, RANK, &Spin)).collect();
    drop(held);
    let second = locks[1].lock(&core, RANK, &Spin);
    let wrong = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(locks[0].lock(&core, RANK, &Spin))));
    assert!(wrong.is_err(), "a lock before the one that is held");
    drop(second);
}
