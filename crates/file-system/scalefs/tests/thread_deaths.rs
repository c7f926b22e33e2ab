//! Deaths of a process with two threads, each in a store to one page: both die before their accesses of one number, and then
//! their heirs end the process. Neither waits for what the other has left under way.
#![cfg(all(shuttle, target_os = "linux"))]

use pages::{PAGE_BYTES, PagePool};
use percpu::testing::{World, die, die_everywhere, owner};
use percpu::{ArenaConfig, Core, HeapRegion};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{Credentials, Host, MemoryOperations as _, Process, Protection, ScaleFs, ScaleFsConfig};
use sync::{Wait, WaitReason};

const PAGE_COUNT: u32 = 16;
const THREADS: [usize; 2] = [1, 2];

/// Waits for a while, and then takes it that nobody will come.
struct Patience;

impl Wait for Patience {
    fn wait(&self, reason: WaitReason, round: u32) {
        assert!(round < 10_000, "waits for ever: {reason:?}");
    }
}

impl Host for Patience {
    fn now_ns(&self) -> u64 {
        0
    }
}

fn survive(access: u64) -> bool {
    let world = World::with(2 << 20, ArenaConfig { core_count: 3, chunk_bytes: 4096 });
    let mut pages = HeapRegion::new((PAGE_COUNT as usize + 1) * PAGE_BYTES).unwrap();
    let core = world.core(0);
    let pages = std::ptr::NonNull::new(pages.as_mut_ptr()).unwrap();
    // SAFETY: the pages are the pool's alone, and outlive the instance.
    let pool = unsafe { PagePool::create(world.arena(), pages, PAGE_COUNT) }.unwrap();
    let fs = ScaleFs::create_with_pages(&core, pool, ScaleFsConfig::default()).unwrap();
    let store = |core: &Core, process: &Process, place| fs.enter(core, process, &Patience).store(place, &[1]).unwrap();
    let (process, place) = {
        let thread = world.claim(THREADS[0], owner(2)).unwrap();
        let process = Process::new(fs, &thread, Credentials::SUPERUSER).unwrap();
        let calls = fs.enter(&thread, &process, &Patience);
        let rights = Protection::ReadWrite;
        let place = memory::map(&calls, Address::Any, PAGE_BYTES as u64, rights, MappedObject::Anonymous).unwrap();
        drop(calls);
        store(&thread, &process, place);
        (process, place)
    };
    // Both know the page.
    store(&world.claim(THREADS[1], owner(2)).unwrap(), &process, place);
    let dead = THREADS.map(|number| die(&world, number, access, |core| store(core, &process, place)));
    let [Some(first), Some(second)] = dead else { return false };
    // SAFETY: the process has gone, and all that it had was taken over.
    unsafe {
        [&first, &second].into_iter().for_each(|heir| fs.repair_taken_over(heir, &Patience));
        fs.end_processes_of(&core, owner(2), &[&first, &second], &Patience);
    }
    // It was ended by its heirs.
    std::mem::forget(process);
    (0..8).for_each(|_| fs.maintain_with_idle_cores(&core, &Patience));
    true
}

#[test]
fn heirs_of_two_threads_do_not_wait_for_each_other() {
    die_everywhere(survive);
    sync::mutant::must_be_caught("scalefs: one heir waits for the stores of the next", || die_everywhere(survive));
}
