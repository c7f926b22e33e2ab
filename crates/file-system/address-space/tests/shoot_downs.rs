//! Two who take one entry away from the tables: neither goes on while a store through it is under way, wherever the first dies.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use address_space::{Access, Mmu, Revoked, SoftwareMmu, Translation};
use epoch::{Epochs, Guard};
use pages::PageNumber;
use percpu::testing::World;
use sync::{Wait, WaitReason};

const PAGE: u64 = 1000;

/// What happens instead of waiting.
struct Meanwhile<F: Fn()>(F);

impl<F: Fn()> Wait for Meanwhile<F> {
    fn wait(&self, _: WaitReason, _: u32) {
        (self.0)();
    }
}

/// A core's store that is under way, through an entry that it has found.
struct Store<'g> {
    mmu: &'g SoftwareMmu,
    guard: &'g Guard<'g>,
    /// In the arena, for a process that dies.
    is_over: &'g AtomicBool,
}

impl<'g> Store<'g> {
    fn begin(world: &'g World, mmu: &'g SoftwareMmu, guard: &'g Guard<'g>) -> Store<'g> {
        let page = Translation::Page(PageNumber::new(1));
        mmu.install(guard, PAGE, Access::Store, page, &sync::Spin).unwrap();
        mmu.begin_store(guard, PAGE, &sync::Spin).unwrap();
        assert_eq!(mmu.find(guard, PAGE, Access::Store), Some(page));
        Store { mmu, guard, is_over: world.place(AtomicBool::new(false)).unwrap() }
    }

    fn end(&self) {
        self.mmu.end_store(self.guard);
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

fn world() -> World {
    World::new(3)
}

fn mmu(world: &World) -> &SoftwareMmu {
    // SAFETY: used with this world's cores and epochs only, whose maintenance does not run.
    world.arena().place(unsafe { SoftwareMmu::new() }).unwrap()
}

/// While the first revoker waits, the second comes.
fn two_revoke() {
    for which in [Revoked::Stores, Revoked::All] {
        for pages in [PAGE..PAGE + 1, 0..PAGE + 5000] {
            let world = world();
            let (epochs, mmu) = (Epochs::create(world.arena()).unwrap(), mmu(&world));
            let cores = [0, 1, 2].map(|number| world.core(number));
            let [storer, first, second] = [0, 1, 2].map(|number| epochs.pin(&cores[number]));
            let store = Store::begin(&world, mmu, &storer);
            // The first goes on when the second waits: that is all that the one thread of this test needs to see.
            let second_waits = || panic!("waits");
            let second_comes = Meanwhile(|| {
                if !store.is_over() {
                    let revoke = || mmu.revoke(&second, pages.clone(), which, &Meanwhile(second_waits));
                    let waits = catch_unwind(AssertUnwindSafe(revoke)).is_err();
                    assert!(waits, "{which:?}: a store through what was taken away goes on");
                    store.end();
                }
            });
            mmu.revoke(&first, PAGE..PAGE + 1, Revoked::All, &second_comes);
            assert!(store.is_over());
        }
    }
}

/// Alone, and of loads alone, nothing is waited for that need not be.
#[test]
fn who_revokes_waits_for_its_own_pages_stores_alone() {
    let world = world();
    let (epochs, mmu) = (Epochs::create(world.arena()).unwrap(), mmu(&world));
    let cores = [0, 1].map(|number| world.core(number));
    let [storer, other] = [0, 1].map(|number| epochs.pin(&cores[number]));
    let store = Store::begin(&world, mmu, &storer);
    let never = Meanwhile(|| panic!("waits for a store that does not concern it"));
    mmu.revoke(&other, PAGE..PAGE + 1, Revoked::Loads, &never);
    mmu.revoke(&other, PAGE + 1..PAGE + 9, Revoked::All, &never);
    mmu.revoke(&storer, PAGE..PAGE + 1, Revoked::Stores, &never);
    store.end();
    mmu.revoke(&other, 0..2 * PAGE, Revoked::All, &never);
}

#[test]
fn the_second_who_revokes_waits_too() {
    two_revoke();
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("address-space: who finds no entry waits for no store", two_revoke);
}

#[cfg(all(shuttle, unix))]
mod deaths {
    use std::cell::Cell;

    use percpu::testing::{die, die_everywhere};

    use super::*;

    /// The first dies, its heir repairs, and another revokes.
    fn survives(access: u64) -> bool {
        let world = world();
        let (epochs, mmu) = (Epochs::create(world.arena()).unwrap(), mmu(&world));
        let cores = [0, 2].map(|number| world.core(number));
        let [storer, second] = [0, 1].map(|number| epochs.pin(&cores[number]));
        let store = Store::begin(&world, mmu, &storer);
        // It waits for a while, so that it also dies before each of its looks.
        let looks = Cell::new(0);
        let waits = Meanwhile(|| {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                store.end();
            }
        });
        let died = die(&world, 1, access, |core| mmu.revoke(&epochs.pin(core), PAGE..PAGE + 1, Revoked::All, &waits));
        let Some(heir) = died else { return false };
        // SAFETY: the core was taken over.
        unsafe {
            epochs.unpin_taken_over(&heir);
            mmu.unlock_taken_over(&epochs.pin(&heir), &Meanwhile(|| store.end()));
        }
        mmu.revoke(&second, PAGE..PAGE + 1, Revoked::All, &Meanwhile(|| store.end()));
        assert!(store.is_over(), "a store through what was taken away goes on");
        assert_eq!(mmu.find(&storer, PAGE, Access::Store), None);
        true
    }

    #[test]
    fn the_second_waits_wherever_the_first_dies() {
        die_everywhere(survives);
        sync::mutant::must_be_caught("address-space: an heir does not wait for stores", || die_everywhere(survives));
    }
}
