//! Any operations as one: a function of the caller's that makes steps, which happen at one moment or not at all.

use core::cell::RefCell;
use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;
use core::ptr;

use olf::{Atomic, Held, Stop};

use crate::border::{self, Handle, Seal};
use crate::domain::{olf_domain, olf_thread};
use crate::keyed::keyed;
use crate::link::{Count, Linked, borrowed, olf_link};
use crate::lists::{Kind, of_domain, olf_list};
use crate::reason::{OLF_INVALID, of_stop};

/// Makes steps by the handle that it gets, with the argument given to olf_atomically; returns 0 for all of them to happen, and
/// anything else for none. A step that has failed returns an error number, which it returns if it does not know better.
/// It is called again if something has changed under it, so it keeps its own results for itself until olf_atomically returns.
pub type olf_body = Option<unsafe extern "C" fn(*mut olf_steps, *mut c_void) -> c_int>;

/// What olf_atomically gives to its body.
pub struct olf_steps {
    seal: Seal,
    owner: *const olf_domain,
    // Of the body's run alone.
    atomic: *mut Atomic<'static, 'static, 'static>,
    /// Counts of items that were taken out: the caller's, if all happens.
    taken: RefCell<Vec<Count>>,
    /// Items that were inserted: the caller's counts end, if all happens.
    given: RefCell<Vec<*mut olf_link>>,
}

impl Handle for olf_steps {
    const KIND: u64 = 0x6f6c_665f_7374_6570;

    fn seal(&self) -> &Seal {
        &self.seal
    }
}

/// Why steps did not happen.
enum Failed {
    Stop(Stop),
    /// The body said so.
    Said(c_int),
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Failed {
        Failed::Stop(stop)
    }
}

/// Makes the steps of a body happen at one moment, or none. What it looked at was so at that moment, too, whether it returns 0 or
/// an error. Counts go with the items, as in single calls. At most eight words change, which is four items or fewer. Returns what
/// the body returned, or -EDEADLK inside of another body of this thread.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_atomically(thread: *mut olf_thread, body: olf_body, argument: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let checked = unsafe { border::of(thread) }.and_then(|thread| body.map(|body| (thread, body)).ok_or(OLF_INVALID));
    let (thread, body) = match checked {
        Ok(both) => both,
        Err(error) => return error,
    };
    let (mut taken, mut given) = (Vec::new(), Vec::new());
    let outcome = thread.here().atomically(|atomic| {
        // What an earlier run has taken was not taken.
        taken.drain(..).for_each(|count: Count| count.end(thread.here()));
        let mut steps = olf_steps {
            seal: Seal::new(olf_steps::KIND),
            owner: thread.owner(),
            atomic: ptr::from_mut(atomic).cast(),
            taken: RefCell::default(),
            given: RefCell::default(),
        };
        // SAFETY: the promise of those who gave it.
        let said = unsafe { body(&raw mut steps, argument) };
        steps.seal.break_up();
        (taken, given) = (steps.taken.take(), steps.given.take());
        // If it has lost, it runs again whatever it said.
        if said == 0 { Ok(()) } else { Err(Failed::Said(said)) }
    });
    match outcome {
        Ok(()) => {
            taken.into_iter().for_each(|count| _ = olf_link::of(count));
            for link in given {
                // SAFETY: a link that was checked, with a count of the caller's.
                unsafe { borrowed(link, thread.owner()) }
                    .map(|count| ManuallyDrop::into_inner(count).end(thread.here()))
                    .expect("a link that was just inserted");
            }
            0
        }
        Err(failed) => {
            taken.into_iter().for_each(|count| count.end(thread.here()));
            match failed {
                Failed::Stop(stop) => of_stop(stop),
                Failed::Said(error) => error,
            }
        }
    }
}

impl olf_steps {
    /// Makes a step.
    ///
    /// # Safety
    /// Within the body that got the handle.
    unsafe fn step<R>(
        &self,
        act: impl FnOnce(&mut Atomic<'static, 'static, 'static>) -> Result<R, Stop>,
    ) -> Result<R, c_int> {
        // SAFETY: the body runs within the closure that has it, and makes one step at a time. Lists live for as long as the
        // domain says, items as long as the closure's guard.
        act(unsafe { &mut *self.atomic }).map_err(of_stop)
    }

    /// Takes note of an item that a step has taken out.
    fn take(&self, item: &Held<'_, 'static, Linked>) -> Result<*mut olf_link, Stop> {
        let link = olf_link::of(item.to_arc().ok_or(Stop::Again)?);
        // SAFETY: the count that was just made.
        let count = unsafe { borrowed(link, self.owner) }.map_err(|_| Stop::Again)?;
        self.taken.borrow_mut().push(ManuallyDrop::into_inner(count));
        Ok(link)
    }
}

/// The steps, and a list of their domain.
///
/// # Safety
/// As for every call.
unsafe fn checked<'h>(steps: *const olf_steps, list: *const olf_list) -> Result<(&'h olf_steps, &'h Kind), c_int> {
    // SAFETY: the caller's promise.
    unsafe {
        let steps = border::of(steps)?;
        Ok((steps, of_domain(list, steps.owner)?))
    }
}

/// As olf_insert, as a step.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_step_insert(steps: *mut olf_steps, list: *mut olf_list, link: *mut olf_link) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        checked(steps, list).and_then(|(steps, kind)| {
            let count = borrowed(link, steps.owner)?;
            // What is held is the item, not this.
            let count: &'static Count = &*ptr::from_ref::<Count>(&count);
            keyed!(kind, list => steps.step(|atomic| {
                let held = atomic.hold(count);
                atomic.insert(list, held)
            }))?;
            steps.given.borrow_mut().push(link);
            Ok(())
        })
    };
    border::number(outcome)
}

/// As olf_remove, as a step. The link may be used in further steps; the count is the caller's once olf_atomically has returned 0.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_step_remove(
    steps: *mut olf_steps,
    list: *mut olf_list,
    key: u64,
    taken: *mut *mut olf_link,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        checked(steps, list).and_then(|(steps, kind)| {
            if taken.is_null() {
                return Err(OLF_INVALID);
            }
            let link = keyed!(kind, list => steps.step(|atomic| atomic.remove(list, &key).and_then(|item| steps.take(&item))))?;
            border::answer(taken, link)
        })
    };
    border::number(outcome)
}

/// Whether there is an item with a key: 1 or 0, or an error.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_step_contains(steps: *mut olf_steps, list: *mut olf_list, key: u64) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        checked(steps, list)
            .and_then(|(steps, kind)| keyed!(kind, list => steps.step(|atomic| atomic.contains(list, &key))))
    };
    outcome.map_or_else(|error| error, c_int::from)
}

/// As olf_push, as a step.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_step_push(
    steps: *mut olf_steps,
    list: *mut olf_list,
    link: *mut olf_link,
    at_front: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        checked(steps, list).and_then(|(steps, kind)| {
            let (list, count) = (kind.ends()?, borrowed(link, steps.owner)?);
            // What is held is the item, not this.
            let count: &'static Count = &*ptr::from_ref::<Count>(&count);
            steps.step(|atomic| {
                let held = atomic.hold(count);
                if at_front != 0 { atomic.push_front(list, held) } else { atomic.push_back(list, held) }
            })?;
            steps.given.borrow_mut().push(link);
            Ok(())
        })
    };
    border::number(outcome)
}

/// As olf_pop, as a step. The link may be used in further steps; the count is the caller's once olf_atomically has returned 0.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_step_pop(
    steps: *mut olf_steps,
    list: *mut olf_list,
    at_front: c_int,
    taken: *mut *mut olf_link,
) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe {
        checked(steps, list).and_then(|(steps, kind)| {
            let list = kind.ends()?;
            if taken.is_null() {
                return Err(OLF_INVALID);
            }
            let link = steps.step(|atomic| {
                let item = if at_front != 0 { atomic.pop_front(list) } else { atomic.pop_back(list) };
                item.and_then(|item| steps.take(&item))
            })?;
            border::answer(taken, link)
        })
    };
    border::number(outcome)
}
