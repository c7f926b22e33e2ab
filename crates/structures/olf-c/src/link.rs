//! The link that is a field of the caller's struct.

use core::ffi::c_int;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use olf::{Arc, Item, Link, ListLink, Slot, links};

use crate::border::{self, Handle, Seal};
use crate::domain::{olf_domain, olf_thread};
use crate::reason::OLF_INVALID;

/// Of what no one reaches any more: gets the link, whose memory is the caller's again. Called by olf_maintain in any
/// thread, and by olf_domain_free; must not call anything of this library.
pub type olf_free = Option<unsafe extern "C" fn(*mut olf_link)>;

/// A field of an item by which it can stand in lists. Its content is the library's.
#[repr(C, align(32))]
pub struct olf_link {
    room: [u64; WORDS],
}

/// As `olf.h` has it.
const WORDS: usize = 20;

/// What lies in a link, after its count.
pub(crate) struct Linked {
    seal: Seal,
    pub(crate) key: u64,
    by_key: Link,
    in_list: ListLink,
    free: olf_free,
    domain: *const olf_domain,
}

const _: () = assert!(size_of::<Slot<Linked>>() == size_of::<olf_link>());
const _: () = assert!(align_of::<Slot<Linked>>() == align_of::<olf_link>());

// SAFETY: all is immutable or atomic, and `free` may be called in any thread, as its documentation says.
unsafe impl Send for Linked {}
// SAFETY: as above.
unsafe impl Sync for Linked {}

links! {
    /// In maps and in lists in order.
    pub(crate) ByKey: Linked { link: by_key, key: key as u64 }
    /// In doubly linked lists.
    pub(crate) ByOrder: Linked { list: in_list }
}

impl Handle for Linked {
    const KIND: u64 = 0x6f6c_665f_6c69_6e6b;

    fn seal(&self) -> &Seal {
        &self.seal
    }
}

/// A count of an item that C has.
pub(crate) type Count = Arc<'static, Linked>;

impl olf_link {
    /// What C calls an item.
    pub(crate) fn of(count: Count) -> *mut olf_link {
        count.into_raw().as_ptr().cast()
    }
}

/// The caller's count of an item, which stays the caller's.
///
/// # Safety
/// NULL, or a link in memory that was written before; if it is initialised, the caller has a count of it.
pub(crate) unsafe fn borrowed(link: *mut olf_link, domain: *const olf_domain) -> Result<ManuallyDrop<Count>, c_int> {
    let slot = NonNull::new(link).ok_or(OLF_INVALID)?.cast::<Slot<Linked>>();
    if !link.is_aligned() {
        return Err(OLF_INVALID);
    }
    // SAFETY: the caller's promise; without a seal it is not used as one.
    let count = ManuallyDrop::new(unsafe { Arc::from_raw(slot) });
    if count.seal.is(Linked::KIND) && core::ptr::eq(count.domain, domain) { Ok(count) } else { Err(OLF_INVALID) }
}

/// Makes a link that stands in no list, with a key that does not change any more. The caller has a count of it, which a list
/// takes over and gives back; free is called once, after olf_retire has ended the last count. Returns 0, or -EINVAL if the
/// link is not aligned to OLF_ALIGN or lies above 2^47.
///
/// # Safety
/// As for every call; the link's memory is the library's until free was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_link_init(
    domain: *mut olf_domain,
    link: *mut olf_link,
    key: u64,
    free: olf_free,
) -> c_int {
    /// # Safety
    /// `item` was made below.
    unsafe fn freed(item: NonNull<Item>) {
        let slot = item.cast::<olf_link>();
        // SAFETY: an item that was made below and that no one else reaches; `Linked` needs no drop.
        let linked = unsafe { ManuallyDrop::new(Arc::<Linked>::from_raw(slot.cast())) };
        linked.seal.break_up();
        if let Some(free) = linked.free {
            // SAFETY: the promise of those who gave it.
            unsafe { free(slot.as_ptr()) };
        }
    }
    // SAFETY: the caller's promise.
    let made = unsafe { border::of(domain) }.and_then(|of| {
        let place = NonNull::new(link).filter(|link| link.is_aligned()).ok_or(OLF_INVALID)?.cast::<Slot<Linked>>();
        let (by_key, in_list) = (Link::new(), ListLink::new());
        let linked = Linked { seal: Seal::new(Linked::KIND), key, by_key, in_list, free, domain };
        // SAFETY: the caller's promise.
        let item = unsafe { Arc::in_place(of.domain(), place, linked, freed) };
        item.map(|item| _ = item.into_raw()).map_err(|_| OLF_INVALID)
    });
    border::number(made)
}

/// Gives the caller one more count of an item of which the caller has one.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_hold(thread: *mut olf_thread, link: *mut olf_link) -> c_int {
    // SAFETY: the caller's promise.
    let held = unsafe { border::of(thread).and_then(|thread| borrowed(link, thread.owner())) };
    border::number(held.map(|count| _ = olf_link::of(Arc::clone(&count))))
}

/// Ends a count of the caller's. The last one makes olf_maintain call what olf_link_init was given, once no one reaches
/// the item.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_retire(thread: *mut olf_thread, link: *mut olf_link) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        border::of(thread).and_then(|thread| {
            let count = borrowed(link, thread.owner())?;
            ManuallyDrop::into_inner(count).end(thread.here());
            Ok(())
        })
    };
    border::number(outcome)
}
