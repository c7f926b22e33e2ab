//! Calls on maps and on lists in order.

use core::ffi::c_int;
use core::mem::ManuallyDrop;

use olf::Refused;

use crate::border;
use crate::domain::olf_thread;
use crate::link::{borrowed, olf_link};
use crate::lists::{Kind, both, olf_list};
use crate::reason::{OLF_ABSENT, OLF_BUSY, OLF_EXISTS, OLF_INVALID, of_move};

/// Does something with a map or a list in order, whichever it is.
macro_rules! keyed {
    ($kind:expr, $list:ident => $body:expr) => {
        match $kind {
            Kind::Sorted($list) => $body,
            Kind::Map(map) => {
                let $list = &**map;
                $body
            }
            Kind::List(_) => Err(OLF_INVALID),
        }
    };
}
pub(crate) use keyed;

/// Inserts an item, and takes the caller's count of it. Returns -EEXIST if there is one with its key, -EBUSY if it stands in a
/// map or a list in order; then the count stays the caller's.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_insert(thread: *mut olf_thread, list: *mut olf_list, link: *mut olf_link) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, list).and_then(|(thread, kind)| {
            let count = ManuallyDrop::into_inner(borrowed(link, thread.owner())?);
            let outcome = match kind {
                Kind::Sorted(list) => list.insert(thread.here(), count),
                Kind::Map(list) => list.insert(thread.here(), count),
                Kind::List(_) => {
                    _ = olf_link::of(count);
                    return Err(OLF_INVALID);
                }
            };
            outcome.map_err(|refused| {
                let error = if matches!(refused, Refused::Exists(_)) { OLF_EXISTS } else { OLF_BUSY };
                _ = olf_link::of(refused.into_item());
                error
            })
        })
    };
    border::number(outcome)
}

/// Takes the item with a key out, and gives the caller the list's count of it. Returns -ENOENT if there is none.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_remove(
    thread: *mut olf_thread,
    list: *mut olf_list,
    key: u64,
    taken: *mut *mut olf_link,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, list).and_then(|(thread, kind)| {
            if taken.is_null() {
                return Err(OLF_INVALID);
            }
            let item = keyed!(kind, list => Ok(list.remove(thread.here(), &key)))?;
            border::answer(taken, olf_link::of(item.ok_or(OLF_ABSENT)?))
        })
    };
    border::number(outcome)
}

/// Finds the item with a key, and gives the caller a count of it; with NULL for found, only tells whether it is there. Returns
/// -ENOENT if there is none.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_find(
    thread: *mut olf_thread,
    list: *mut olf_list,
    key: u64,
    found: *mut *mut olf_link,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, list).and_then(|(thread, kind)| {
            let guard = thread.here().pin();
            let item = keyed!(kind, list => Ok(list.get(&guard, &key)))?.ok_or(OLF_ABSENT)?;
            if found.is_null() {
                return Ok(());
            }
            border::answer(found, olf_link::of(item.to_arc().ok_or(OLF_ABSENT)?))
        })
    };
    border::number(outcome)
}

/// Moves the item with a key to another map or list in order, with the list's count; everybody sees it in exactly one of them.
/// Returns -ENOENT if it is not there, -EEXIST if the other one has the key, -ELOOP for one list twice.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_move(thread: *mut olf_thread, from: *mut olf_list, to: *mut olf_list, key: u64) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, from).and_then(|(thread, from)| {
            let (_, to) = both(thread, to)?;
            let here = thread.here();
            keyed!(from, from => keyed!(to, to => Ok(of_move(from.move_to(to, here, &key)))))
        })
    };
    outcome.unwrap_or_else(|error| error)
}

/// Exchanges the item with a key for an item of another map or list in order. Returns -ENOENT if one of them is not there,
/// -EEXIST if one would then hold a key twice, -ELOOP for one list twice.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_swap(
    thread: *mut olf_thread,
    list: *mut olf_list,
    key: u64,
    other: *mut olf_list,
    its_key: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, list).and_then(|(thread, list)| {
            let (_, other) = both(thread, other)?;
            let here = thread.here();
            keyed!(list, list => keyed!(other, other => Ok(of_move(list.swap(&key, other, &its_key, here)))))
        })
    };
    outcome.unwrap_or_else(|error| error)
}
