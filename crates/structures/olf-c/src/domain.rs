//! Domains, and the threads in them.

use core::ffi::c_int;

use olf::{Domain, DomainError, Here, Limits};
use sync::atomic::{AtomicUsize, Ordering};

use crate::border::{self, Handle, Seal};
use crate::reason::{OLF_BUSY, OLF_INVALID, OLF_NO_MEMORY, OLF_TOO_MANY};

/// What lists and items share between which items move.
pub struct olf_domain {
    seal: Seal,
    /// Atomic: threads and lists that are there.
    users: AtomicUsize,
    domain: Domain,
}

/// A thread of a domain.
pub struct olf_thread {
    seal: Seal,
    owner: *const olf_domain,
    here: Here<'static>,
}

impl Handle for olf_domain {
    const KIND: u64 = 0x6f6c_665f_646f_6d61;

    fn seal(&self) -> &Seal {
        &self.seal
    }
}

impl Handle for olf_thread {
    const KIND: u64 = 0x6f6c_665f_7468_7265;

    fn seal(&self) -> &Seal {
        &self.seal
    }
}

impl olf_domain {
    /// For as long as C says that it lives.
    pub(crate) fn domain(&self) -> &'static Domain {
        // SAFETY: threads, lists and items are given up before the domain, and the domain itself refuses to go while the first
        // two are there.
        unsafe { &*core::ptr::from_ref(&self.domain) }
    }

    pub(crate) fn has_one_more(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn has_one_less(&self) {
        // Release pairs with the acquire in `olf_domain_free`.
        self.users.fetch_sub(1, Ordering::Release);
    }
}

impl olf_thread {
    pub(crate) fn owner(&self) -> *const olf_domain {
        self.owner
    }

    pub(crate) fn here(&self) -> &Here<'static> {
        &self.here
    }
}

/// Makes a domain for this many threads (1 to 255) and lists (1 to 524287) at once.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_domain_new(threads: usize, lists: usize, made: *mut *mut olf_domain) -> c_int {
    let domain = match Domain::with(Limits { threads, lists }) {
        Ok(domain) => domain,
        Err(DomainError::OutOfMemory) => return OLF_NO_MEMORY,
        Err(_) => return OLF_INVALID,
    };
    if made.is_null() {
        return OLF_INVALID;
    }
    let domain = Box::new(olf_domain { seal: Seal::new(olf_domain::KIND), users: AtomicUsize::new(0), domain });
    // SAFETY: the caller's promise.
    border::number(unsafe { border::answer(made, Box::into_raw(domain)) })
}

/// Gives a domain up, and frees what was retired in it. Returns -EBUSY while it has threads or lists. No count of an item of
/// it may be left.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_domain_free(domain: *mut olf_domain) -> c_int {
    // SAFETY: the caller's promise.
    let checked = unsafe { border::of(domain) }.and_then(|of| {
        // Acquire pairs with the release in `has_one_less`.
        if of.users.load(Ordering::Acquire) != 0 {
            return Err(OLF_BUSY);
        }
        of.seal.break_up();
        Ok(())
    });
    if checked.is_ok() {
        // SAFETY: made in `olf_domain_new`, and in no one's use.
        drop(unsafe { Box::from_raw(domain) });
    }
    border::number(checked)
}

/// Makes the calling thread one of a domain. The handle is used by one thread at a time.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_enter(domain: *mut olf_domain, made: *mut *mut olf_thread) -> c_int {
    // SAFETY: the caller's promise.
    let outcome = unsafe { border::of(domain) }.and_then(|of| {
        if made.is_null() {
            return Err(OLF_INVALID);
        }
        let here = of.domain().enter().map_err(|_| OLF_TOO_MANY)?;
        of.has_one_more();
        let thread = olf_thread { seal: Seal::new(olf_thread::KIND), owner: domain, here };
        // SAFETY: the caller's promise.
        unsafe { border::answer(made, Box::into_raw(Box::new(thread))) }
    });
    border::number(outcome)
}

/// Ends the thread's part in its domain.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_leave(thread: *mut olf_thread) -> c_int {
    // SAFETY: the caller's promise.
    let owner = unsafe { border::of(thread) }.map(|of| {
        of.seal.break_up();
        of.owner
    });
    border::number(owner.map(|owner| {
        // SAFETY: made in `olf_enter`; its domain is there as long as it has threads.
        unsafe {
            drop(Box::from_raw(thread));
            (*owner).has_one_less();
        }
    }))
}

/// Frees what was retired and is looked at by no one any more. To be called between operations, every now and then.
/// Returns 1 if something is left, 0 if not.
///
/// # Safety
/// As for every call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn olf_maintain(thread: *mut olf_thread) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { border::of(thread) } {
        Ok(thread) => thread.here.maintain().into(),
        Err(error) => error,
    }
}
