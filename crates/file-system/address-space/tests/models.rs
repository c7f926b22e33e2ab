//! A fault against who takes the page away, a store against a copy of the space: `RUSTFLAGS="--cfg loom" cargo test -p address-space
//! --release --test models`. Nodes have two slots there.
#![cfg(any(loom, shuttle))]

use std::ptr::NonNull;
use std::sync::OnceLock;

use address_space::{AddressSpace, Backing, Fault, FileId, Files, Memory, Place, Protection};
use commit::Decisions;
use epoch::Epochs;
use pages::{PAGE_BYTES, PagePool};
use percpu::model::ModelArena;
use percpu::{Core, OutOfMemory};
use refcache::{RefCache, RefCacheConfig};
use sync::Spin;

const POOL_PAGES: u32 = 4;

/// No page of these models is a file's.
struct NoFiles;

impl Files for NoFiles {
    fn hold(&self, _: FileId) {
        unreachable!()
    }

    fn load(&self, _: FileId, _: u64, _: usize, _: &mut [u8]) -> bool {
        unreachable!()
    }

    fn store(&self, _: FileId, _: u64, _: usize, _: &[u8]) -> Result<bool, OutOfMemory> {
        unreachable!()
    }

    fn cuts(&self, _: FileId) -> u64 {
        unreachable!()
    }

    fn is_cut_since(&self, _: FileId, _: u64, _: u64) -> bool {
        unreachable!()
    }
}

/// What address spaces of one execution live in.
#[derive(Clone)]
struct Instance {
    model: ModelArena,
    epochs: &'static Epochs,
    counts: &'static RefCache,
    pages: &'static PagePool,
}

impl Instance {
    fn new() -> Instance {
        /// The pool's memory, for one execution after the other. The models' bytes are no atomics of loom's: it sees each
        /// access at one moment.
        static POOL: OnceLock<usize> = OnceLock::new();
        let pool = *POOL.get_or_init(|| {
            let bytes: &'static mut [u8] = vec![0; (POOL_PAGES as usize + 1) * PAGE_BYTES].leak();
            let base = bytes.as_mut_ptr();
            base.wrapping_add(base.align_offset(PAGE_BYTES)).expose_provenance()
        });
        let model = ModelArena::new(2, 1 << 20);
        let arena = model.arena();
        let decisions = Decisions::create(arena).unwrap();
        let config = RefCacheConfig { slots_per_core: 2, seed: 1 };
        let base = NonNull::new(std::ptr::with_exposed_provenance_mut(pool)).unwrap();
        // SAFETY: the memory lives for ever, and loom runs one execution at a time.
        let pages = unsafe { PagePool::create(arena, base, POOL_PAGES) }.unwrap();
        let epochs = Epochs::create(arena).unwrap();
        Instance { epochs, counts: RefCache::create(arena, decisions, config).unwrap(), pages, model }
    }

    fn space(&self) -> &'static AddressSpace {
        // SAFETY: used with this instance only.
        self.model.arena().place(unsafe { AddressSpace::new() }).unwrap()
    }

    fn call<R>(&self, core: &Core<'_>, act: impl FnOnce(&Memory<'_, NoFiles, Spin>) -> R) -> R {
        let guard = self.epochs.pin(core);
        act(&Memory { guard: &guard, pages: self.pages, counts: self.counts, files: &NoFiles, wait: &Spin })
    }

    fn load(&self, core: &Core<'_>, space: &AddressSpace) -> Result<u8, Fault> {
        let mut byte = [0];
        self.call(core, |memory| space.load(memory, 0, &mut byte)).map(|()| byte[0])
    }

    fn store(&self, core: &Core<'_>, space: &AddressSpace, byte: u8) -> Result<(), Fault> {
        self.call(core, |memory| space.store(memory, 0, &[byte]))
    }

    fn map(&self, core: &Core<'_>, space: &AddressSpace) {
        let (place, rights) = (Place::Fixed(0), Protection::ReadWrite);
        self.call(core, |memory| space.map(memory, place, 1, rights, Backing::Anonymous)).unwrap();
    }
}

/// Two threads, the first of which is spawned first or second; both cores come back.
fn both<A, B>(first: bool, instance: &Instance, a: A, b: B) -> [Core<'static>; 2]
where
    A: FnOnce(&Instance, &Core<'static>) + Send + 'static,
    B: FnOnce(&Instance, &Core<'static>) + Send + 'static,
{
    let [zero, one] = [0, 1].map(|number| instance.model.core(number));
    both_on(first, instance, (zero, a), (one, b))
}

fn both_on<A, B>(
    first: bool,
    instance: &Instance,
    (zero, a): (Core<'static>, A),
    (one, b): (Core<'static>, B),
) -> [Core<'static>; 2]
where
    A: FnOnce(&Instance, &Core<'static>) + Send + 'static,
    B: FnOnce(&Instance, &Core<'static>) + Send + 'static,
{
    let (for_a, for_b) = (instance.clone(), instance.clone());
    let a = move || {
        a(&for_a, &zero);
        zero
    };
    let b = move || {
        b(&for_b, &one);
        one
    };
    let (zero, one) = sync::model::both(first, a, b);
    [zero, one]
}

/// A first touch beside `unmap`: it comes before or after, and no table knows the page in the end.
fn touch_and_unmap(first: bool) {
    let instance = Instance::new();
    let space = instance.space();
    {
        let core = instance.model.core(0);
        instance.map(&core, space);
    }
    let [zero, _one] = both(
        first,
        &instance,
        move |instance, core| {
            let loaded = instance.load(core, space);
            assert!(loaded == Ok(0) || loaded == Err(Fault::Segment), "{loaded:?}");
        },
        move |instance, core| instance.call(core, |memory| space.unmap(memory, 0..1)).unwrap(),
    );
    assert_eq!(instance.load(&zero, space), Err(Fault::Segment), "a table knows a page that is not there");
}

/// A store through the core's table beside `fork`: the child has what was before or after it, and no store comes later.
fn store_and_fork(first: bool) {
    let instance = Instance::new();
    let (space, child) = (instance.space(), instance.space());
    let zero = instance.model.core(0);
    instance.map(&zero, space);
    instance.store(&zero, space, 1).unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let told = std::sync::Arc::clone(&seen);
    let one = instance.model.core(1);
    let [zero, one] = both_on(
        first,
        &instance,
        (zero, move |instance: &Instance, core: &Core<'static>| instance.store(core, space, 2).unwrap()),
        (one, move |instance: &Instance, core: &Core<'static>| {
            instance.call(core, |memory| space.fork_to(memory, child)).unwrap();
            *told.lock().unwrap() = Some(instance.load(core, child).unwrap());
        }),
    );
    let copied = seen.lock().unwrap().unwrap();
    assert!(copied == 1 || copied == 2, "{copied}");
    assert_eq!(instance.load(&one, child), Ok(copied), "a store after the copy shows in it");
    assert_eq!(instance.load(&zero, space), Ok(2), "a store was lost");
}

fn check(body: impl Fn(bool) + Copy + Send + Sync + 'static, faults: &[&'static str]) {
    for first in [false, true] {
        sync::model::explore(2, 100, move || body(first));
    }
    for fault in faults {
        sync::model::must_catch(fault, 2, move || body(false));
    }
}

#[test]
fn a_touch_beside_unmap() {
    check(touch_and_unmap, &["address-space: what an entry rests on is not looked at again"]);
}

#[test]
fn a_store_beside_fork() {
    let faults =
        ["address-space: stores under way are not waited for", "address-space: fork leaves the tables as they are"];
    check(store_and_fork, &faults);
}
