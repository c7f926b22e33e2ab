//! Calls on doubly linked lists.

use core::ffi::c_int;
use core::mem::ManuallyDrop;

use crate::border;
use crate::domain::olf_thread;
use crate::link::{borrowed, olf_link};
use crate::lists::{both, olf_list};
use crate::reason::{OLF_ABSENT, OLF_BUSY, OLF_INVALID, of_move};

/// Puts an item after all others of a list, or before them if at_front is not zero, and takes the caller's count of it.
/// Returns -EBUSY if it stands in a doubly linked list; then the count stays the caller's.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_push(
    thread: *mut olf_thread,
    list: *mut olf_list,
    link: *mut olf_link,
    at_front: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, list).and_then(|(thread, kind)| {
            let (list, here) = (kind.ends()?, thread.here());
            let count = ManuallyDrop::into_inner(borrowed(link, thread.owner())?);
            let outcome = if at_front != 0 { list.push_front(here, count) } else { list.push_back(here, count) };
            outcome.map_err(|refused| {
                _ = olf_link::of(refused.into_item());
                OLF_BUSY
            })
        })
    };
    border::number(outcome)
}

/// Takes the last item of a list, or the first one if at_front is not zero, and gives the caller the list's count of it. Returns
/// -ENOENT if the list is empty.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_pop(
    thread: *mut olf_thread,
    list: *mut olf_list,
    at_front: c_int,
    taken: *mut *mut olf_link,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, list).and_then(|(thread, kind)| {
            let (list, here) = (kind.ends()?, thread.here());
            if taken.is_null() {
                return Err(OLF_INVALID);
            }
            let item = if at_front != 0 { list.pop_front(here) } else { list.pop_back(here) };
            border::answer(taken, olf_link::of(item.ok_or(OLF_ABSENT)?))
        })
    };
    border::number(outcome)
}

/// Takes an item out of a list, wherever it stands there, and gives the caller the list's count of it in addition to
/// the one that the caller has. Returns -ENOENT if it does not stand there.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_take(thread: *mut olf_thread, list: *mut olf_list, link: *mut olf_link) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, list).and_then(|(thread, kind)| {
            let item = borrowed(link, thread.owner())?;
            let taken = kind.ends()?.remove(thread.here(), &*item).ok_or(OLF_ABSENT)?;
            _ = olf_link::of(taken);
            Ok(())
        })
    };
    border::number(outcome)
}

/// Moves an item, of which the caller has a count, from a list to the back of another, or to its front if at_front is not zero.
/// Everybody sees it in exactly one place. Returns -ENOENT if it does not stand in the first list.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_pass(
    thread: *mut olf_thread,
    from: *mut olf_list,
    to: *mut olf_list,
    link: *mut olf_link,
    at_front: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        both(thread, from).and_then(|(thread, from)| {
            let (from, to, here) = (from.ends()?, both(thread, to)?.1.ends()?, thread.here());
            let item = borrowed(link, thread.owner())?;
            let outcome =
                if at_front != 0 { from.move_to_front(to, here, &*item) } else { from.move_to_back(to, here, &*item) };
            Ok(of_move(outcome))
        })
    };
    outcome.unwrap_or_else(|error| error)
}
