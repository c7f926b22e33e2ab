//! Lists of all kinds behind one handle.

use core::ffi::c_int;

use olf::{List, Map, Sorted, TooManyLists};

use crate::border::{self, Handle, Seal};
use crate::domain::{olf_domain, olf_thread};
use crate::link::{ByKey, ByOrder};
use crate::reason::{OLF_INVALID, OLF_NO_MEMORY, OLF_TOO_MANY};

/// A list or a map of a domain.
pub struct olf_list {
    seal: Seal,
    owner: *const olf_domain,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Sorted(Sorted<'static, ByKey>),
    Map(Box<Map<'static, ByKey>>),
    List(List<'static, ByOrder>),
}

impl Handle for olf_list {
    const KIND: u64 = 0x6f6c_665f_6c69_7374;

    fn seal(&self) -> &Seal {
        &self.seal
    }
}

/// A thread and a list of one domain.
///
/// # Safety
/// As for every call.
pub(crate) unsafe fn both<'h>(
    thread: *const olf_thread,
    list: *const olf_list,
) -> Result<(&'h olf_thread, &'h Kind), c_int> {
    // SAFETY: the caller's promise.
    unsafe {
        let thread = border::of(thread)?;
        Ok((thread, of_domain(list, thread.owner())?))
    }
}

/// A list of this domain.
///
/// # Safety
/// As for every call.
pub(crate) unsafe fn of_domain<'h>(list: *const olf_list, owner: *const olf_domain) -> Result<&'h Kind, c_int> {
    // SAFETY: the caller's promise.
    let list = unsafe { border::of(list)? };
    if core::ptr::eq(owner, list.owner) { Ok(&list.kind) } else { Err(OLF_INVALID) }
}

impl Kind {
    /// Of doubly linked lists.
    pub(crate) fn ends(&self) -> Result<&List<'static, ByOrder>, c_int> {
        if let Kind::List(list) = self { Ok(list) } else { Err(OLF_INVALID) }
    }
}

/// # Safety
/// As for every call.
unsafe fn made(
    domain: *mut olf_domain,
    place: *mut *mut olf_list,
    kind: impl FnOnce(&olf_domain) -> Result<Kind, TooManyLists>,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe { border::of(domain) }.and_then(|of| {
        if place.is_null() {
            return Err(OLF_INVALID);
        }
        let kind = kind(of).map_err(|_| OLF_TOO_MANY)?;
        of.has_one_more();
        let list = Box::new(olf_list { seal: Seal::new(olf_list::KIND), owner: domain, kind });
        // SAFETY: the caller's promise.
        unsafe { border::answer(place, Box::into_raw(list)) }
    });
    border::number(outcome)
}

/// Makes an empty list in the order of keys: for some twenty items.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_sorted_new(domain: *mut olf_domain, list: *mut *mut olf_list) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { made(domain, list, |of| Sorted::new(of.domain()).map(Kind::Sorted)) }
}

/// Makes an empty map by hash.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_map_new(domain: *mut olf_domain, list: *mut *mut olf_list) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { made(domain, list, |of| Map::new(of.domain()).map(|map| Kind::Map(Box::new(map)))) }
}

/// Makes an empty doubly linked list in the order of insertion.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_list_new(domain: *mut olf_domain, list: *mut *mut olf_list) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { made(domain, list, |of| List::new(of.domain()).map(Kind::List)) }
}

/// Gives a list up, which no thread uses any more. Its counts of items end.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_list_free(list: *mut olf_list) -> c_int {
    // SAFETY: the caller's promise.
    let owner = unsafe { border::of(list) }.map(|of| {
        of.seal.break_up();
        of.owner
    });
    border::number(owner.map(|owner| {
        // SAFETY: made in `made`; its domain is there as long as it has lists.
        unsafe {
            drop(Box::from_raw(list));
            (*owner).has_one_less();
        }
    }))
}

/// Doubles the buckets of a map if they are full. To be called between operations, every now and then: a map does not grow by
/// itself. Returns 1 if it grew, 0 if not; other lists do not grow.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_grow(thread: *mut olf_thread, list: *mut olf_list) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { both(thread, list) } {
        Ok((thread, Kind::Map(map))) => map.maintain(thread.here()).map_or(OLF_NO_MEMORY, c_int::from),
        Ok(_) => 0,
        Err(error) => error,
    }
}
