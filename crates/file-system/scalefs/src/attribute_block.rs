//! The extended attributes of one object in shared memory: all of them in one block that never changes, to which a word leads.
//!
//! ```text
//! lock │ current ─► block: retirement, class, bytes │ name's length, value's length, name, value │ ...   by name
//! read:    current; look into the block, pinned                      no lock, no write
//! change:  lock;  a new block;  current;  unlock;  the old block is retired
//! ```
//! **Death of a process** in a change: the word leads to the old block or to the new one. The heir frees the lock, since the call has
//! noted the object; a block that was not put in place, or not retired yet, is lost.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::NonNull;

use epoch::{Guard, Retired, RetiredKind};
#[cfg(feature = "std")]
use percpu::CoreIndex;
use percpu::{Core, CoreLock, LockRank, OutOfMemory, SizeClass};
use posix_calls::Errno;
use posix_calls::extended::{Expected, MOST_BYTES, OVERHEAD_BYTES};
use sync::Wait;
use sync::atomic::{AtomicU64, Ordering};
use sync::mutant::planted;

/// Alone.
const RANK_EXTENDED: LockRank = LockRank(253);
/// Other than those of directories, arrays and pages.
const KIND_BLOCK: RetiredKind = RetiredKind(31);

/// See the module's head.
#[repr(C)]
pub(crate) struct Extended {
    /// Held by changes.
    lock: CoreLock,
    /// Atomic: the address of a block, or zero.
    current: AtomicU64,
}

/// Begins a block; its attributes follow.
#[repr(C)]
pub(crate) struct Head {
    retired: Retired,
    /// Immutable: how many bytes of attributes follow.
    attribute_bytes: u64,
}

/// One attribute of a block.
#[derive(Clone, Copy)]
struct Attribute<'b> {
    name: &'b [u8],
    value: &'b [u8],
}

impl<'b> Attribute<'b> {
    fn bytes(self) -> usize {
        OVERHEAD_BYTES + self.name.len() + self.value.len()
    }

    /// The one at the start of some bytes, and what follows it.
    fn first(bytes: &'b [u8]) -> Option<(Attribute<'b>, &'b [u8])> {
        let (name_bytes, rest) = bytes.split_first_chunk::<4>()?;
        let (value_bytes, rest) = rest.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_at(u32::from_ne_bytes(*name_bytes) as usize);
        let (value, rest) = rest.split_at(u32::from_ne_bytes(*value_bytes) as usize);
        Some((Attribute { name, value }, rest))
    }

    /// Writes it; returns the room that is left.
    fn put(self, place: &mut [u8]) -> &mut [u8] {
        let (head, rest) = place.split_at_mut(OVERHEAD_BYTES);
        head[..4].copy_from_slice(&(self.name.len() as u32).to_ne_bytes());
        head[4..].copy_from_slice(&(self.value.len() as u32).to_ne_bytes());
        let (name, rest) = rest.split_at_mut(self.name.len());
        name.copy_from_slice(self.name);
        let (value, rest) = rest.split_at_mut(self.value.len());
        value.copy_from_slice(self.value);
        rest
    }
}

/// The attributes that follow one another in some bytes.
fn each(mut bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> + Clone {
    core::iter::from_fn(move || {
        let (attribute, rest) = Attribute::first(bytes)?;
        bytes = rest;
        Some(attribute)
    })
}

fn class_of(attribute_bytes: usize) -> Option<SizeClass> {
    let layout = Layout::from_size_align(size_of::<Head>() + attribute_bytes, align_of::<Head>()).ok()?;
    SizeClass::of(layout)
}

const _: () = assert!(MOST_BYTES + size_of::<Head>() <= 64 << 10);

/// A new block of so many bytes, which `fill` writes.
fn block_of(core: &Core<'_>, bytes: usize, fill: impl FnOnce(&mut [u8])) -> Result<NonNull<Head>, OutOfMemory> {
    let place = core.allocate(class_of(bytes).ok_or(OutOfMemory)?)?.cast::<Head>();
    // SAFETY: memory of the class of head and bytes, which is nobody else's; it is written before it is read.
    unsafe {
        place.write(Head { retired: Retired::new(), attribute_bytes: bytes as u64 });
        let start = place.add(1).cast::<u8>().as_ptr();
        start.write_bytes(0, bytes);
        fill(core::slice::from_raw_parts_mut(start, bytes));
    }
    Ok(place)
}

/// # Safety
/// Nobody reaches the block any more.
unsafe fn free(core: &Core<'_>, block: NonNull<Head>) {
    // SAFETY: the caller's promise; allocated with this class.
    unsafe {
        let class = class_of(block.as_ref().attribute_bytes as usize).expect("it had a class when it was made");
        core.free(block.cast(), class);
    }
}

/// Frees a retired block: for the callback of `Epochs::maintain`. False if the kind is not ours.
///
/// # Safety
/// Called once per retired object, by that callback.
pub(crate) unsafe fn free_retired(core: &Core<'_>, kind: RetiredKind, object: NonNull<Retired>) -> bool {
    if kind == KIND_BLOCK {
        // SAFETY: blocks are retired by this link, once.
        unsafe { free(core, object.byte_sub(offset_of!(Head, retired)).cast()) };
    }
    kind == KIND_BLOCK
}

impl Extended {
    pub(crate) const LOCK: usize = offset_of!(Extended, lock);
    pub(crate) const CURRENT: usize = offset_of!(Extended, current);

    pub(crate) fn new() -> Extended {
        Extended { lock: CoreLock::new(), current: AtomicU64::new(0) }
    }

    fn block(&self) -> Option<NonNull<Head>> {
        // Acquire pairs with the release in `change`: the block is written.
        NonNull::new(self.current.load(Ordering::Acquire) as usize as *mut Head)
    }

    /// All attributes, one after the other.
    fn bytes<'g>(&self, _: &'g Guard<'_>) -> &'g [u8] {
        // SAFETY: a block that is found under the guard is freed at the earliest when that is gone, and never changes.
        self.block().map_or(&[], |block| unsafe {
            core::slice::from_raw_parts(block.add(1).cast::<u8>().as_ptr(), block.as_ref().attribute_bytes as usize)
        })
    }

    /// The value of an attribute.
    pub(crate) fn value<'g>(&self, guard: &'g Guard<'_>, name: &[u8]) -> Option<&'g [u8]> {
        each(self.bytes(guard)).find(|attribute| attribute.name == name).map(|attribute| attribute.value)
    }

    /// The names of all, by their bytes.
    pub(crate) fn names<'g>(&self, guard: &'g Guard<'_>) -> impl Iterator<Item = &'g [u8]> {
        each(self.bytes(guard)).map(|attribute| attribute.name)
    }

    /// Sets an attribute, or removes it.
    pub(crate) fn change<W: Wait>(
        &self,
        guard: &Guard<'_>,
        wait: &W,
        (name, value): (&[u8], Option<&[u8]>),
        expected: Expected,
    ) -> Result<(), Errno> {
        let core = guard.core();
        let looks_early = planted("scalefs: attributes are looked at before their lock");
        let early = self.bytes(guard);
        let lock = self.lock.lock(core, RANK_EXTENDED, wait);
        let old = self.block();
        let bytes = if looks_early { early } else { self.bytes(guard) };
        expected.check(each(bytes).any(|attribute| attribute.name == name))?;
        let new = value.map(|value| Attribute { name, value });
        let others = each(bytes).filter(|attribute| attribute.name != name);
        let size = others.clone().chain(new).map(Attribute::bytes).sum::<usize>();
        if size > MOST_BYTES {
            return Err(Errno::ENOSPC);
        }
        let made = if size == 0 {
            None
        } else {
            let before = others.clone().take_while(|attribute| attribute.name < name);
            let after = others.skip_while(|attribute| attribute.name < name);
            let all = before.chain(new).chain(after);
            let fill = |place: &mut [u8]| {
                all.fold(place, |place, attribute| attribute.put(place));
            };
            Some(block_of(core, size, fill).map_err(|OutOfMemory| Errno::ENOSPC)?)
        };
        let address = made.map_or(0, |block| block.as_ptr() as usize as u64);
        // Release: who finds the block finds it written.
        self.current.store(address, Ordering::Release);
        drop(lock);
        if let Some(old) = old {
            // SAFETY: nothing leads to the block any more, and whoever found it is pinned; it was current until now, so this is the
            // one change that retires it.
            unsafe { guard.retire(NonNull::from(&old.as_ref().retired), KIND_BLOCK) };
        }
        Ok(())
    }

    /// The core that changes them.
    #[cfg(feature = "std")]
    pub(crate) fn holder(&self) -> Option<CoreIndex> {
        self.lock.holder()
    }

    /// Frees the lock of a dead owner.
    ///
    /// # Safety
    /// The core was taken over from a dead owner.
    pub(crate) unsafe fn repair_taken_over(&self, heir: &Core<'_>) {
        // SAFETY: the word leads to a whole block at each moment; the rest is the caller's promise.
        unsafe { self.lock.release_taken_over(heir) };
    }

    /// Gives the block back.
    ///
    /// # Safety
    /// No one uses the object any more.
    pub(crate) unsafe fn destroy(&self, core: &Core<'_>) {
        if let Some(block) = self.block() {
            // SAFETY: the caller's promise.
            unsafe { free(core, block) };
        }
    }
}
