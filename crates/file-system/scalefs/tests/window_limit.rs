//! All windows of a program share what the host allows it of areas: a page more than that is refused, in any of them.
#![cfg(all(feature = "std", target_os = "linux", not(any(loom, miri))))]

use address_space::Fault;
use history::repeat;
use percpu::{Core, OwnerId};
use scalefs::memory::{self, Address, MappedObject};
use scalefs::{Credentials, InProcess, MemoryAccess, OwnedConfig, OwnedScaleFs, Process, Protection, TouchError};
use sync::Spin;

const PAGE: u64 = 4096;
/// So many pages all windows show at most, and each of the two has two thirds of that.
const LIMIT: u64 = if cfg!(shuttle) { 300 } else { 30_000 };
const PAGES: u64 = LIMIT / 3 * 2;
const CONFIG: OwnedConfig = OwnedConfig { metadata_bytes: 64 << 20, page_count: 16, core_count: 1, hash_seed: 1 };

/// A process with a window in which all can be loaded once it was touched.
struct System<'a> {
    owned: &'a OwnedScaleFs,
    core: Core<'a>,
    process: Process,
    base: u64,
}

impl System<'_> {
    fn new(owned: &OwnedScaleFs) -> System<'_> {
        let core = owned.claim(0, OwnerId::new(1).unwrap()).unwrap();
        let process = Process::new(owned.file_system(), &core, Credentials::SUPERUSER).unwrap();
        let base = owned.open_window(&process, PAGES).unwrap();
        let system = System { owned, core, process, base };
        let place = Address::Fixed(base);
        let anonymous = MappedObject::Anonymous;
        system.call(|call| memory::map(call, place, PAGES * PAGE, Protection::Read, anonymous)).unwrap();
        system
    }

    fn call<R>(&self, act: impl FnOnce(&InProcess<'_, Spin>) -> R) -> R {
        act(&self.owned.file_system().enter(&self.core, &self.process, &Spin))
    }

    /// Touches pages from one on, up to the first that is refused; returns how many.
    fn touch_from(&self, first: u64) -> u64 {
        let touch = |page: &u64| self.call(|call| call.touch(self.base + page * PAGE, MemoryAccess::Load));
        let mut count = 0;
        for page in first..PAGES {
            match touch(&page) {
                Ok(_) => count += 1,
                Err(error) => {
                    assert_eq!(error, TouchError::Fault(Fault::OutOfMemory));
                    break;
                }
            }
        }
        count
    }

    fn exit(self) {
        self.process.exit(self.owned.file_system(), &self.core, &Spin);
    }
}

fn two_windows_share_the_limit(_: u64, (): &()) {
    let owned = [(); 2].map(|()| OwnedScaleFs::create_mappable(CONFIG).unwrap());
    let [one, other] = [0, 1].map(|which| System::new(&owned[which]));
    assert_eq!(one.touch_from(0), PAGES);
    assert_eq!(other.touch_from(0), LIMIT - PAGES);
    // What is shown can be touched again, and what one hides the other may show.
    assert_eq!(one.touch_from(PAGES - 5), 5);
    one.call(|call| memory::unmap(call, one.base, 7 * PAGE)).unwrap();
    assert_eq!(other.touch_from(LIMIT - PAGES), 7);
    one.exit();
    assert_eq!(other.touch_from(LIMIT - PAGES + 7), PAGES - (LIMIT - PAGES + 7));
    other.exit();
}

#[test]
fn all_windows_show_so_many_pages_at_most() {
    repeat(1, (), two_windows_share_the_limit);
    // Last: what a check that fails shows stays counted.
    #[cfg(shuttle)]
    sync::mutant::must_be_caught("scalefs: a window counts its own pages alone", || {
        repeat(1, (), two_windows_share_the_limit);
    });
}
