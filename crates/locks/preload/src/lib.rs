//! The C library's own functions, for libraries that stand in front of it (`LD_PRELOAD`).
//!
//! [`next!`] calls the function that a program would have called without the library: it is looked up at its first use.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library that one of ours stands in front of; looked up at its first use.
pub struct Next {
    name: &'static CStr,
    /// The version that programs are linked with today, where there are several (condition variables).
    version: Option<&'static CStr>,
    address: AtomicPtr<c_void>,
}

impl Next {
    /// The function of that name.
    pub const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Self { name, version, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address. Ends the program if there is none: it would call what does not exist.
    pub fn address(&self) -> *mut c_void {
        // Relaxed: every thread finds the same address.
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the names are NUL-terminated.
        let found = unsafe {
            match self.version {
                Some(version) => libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()),
                None => libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()),
            }
        };
        if found.is_null() {
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Calls the C library's function of the same name: `next!(pthread_mutex_lock(mutex: *mut pthread_mutex_t))`.
#[macro_export]
macro_rules! next {
    ($name:ident $(@ $version:literal)? ($($argument:ident: $type:ty),*)) => {
        $crate::next!($name $(@ $version)? ($($argument: $type),*) -> std::ffi::c_int)
    };
    ($name:ident $(@ $version:literal)? ($($argument:ident: $type:ty),*) -> $result:ty) => {{
        const VERSION: Option<&std::ffi::CStr> = $crate::version!($($version)?);
        static NEXT: $crate::Next = $crate::Next::new(
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name with a NUL"),
            },
            VERSION,
        );
        // SAFETY: the C library's function of this name has these parameters and this result.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> $result = std::mem::transmute(NEXT.address());
            function($($argument),*)
        }
    }};
}

/// The version of a function as [`next!`] is given it.
#[macro_export]
#[doc(hidden)]
macro_rules! version {
    () => {
        None
    };
    ($version:literal) => {
        Some($version)
    };
}
