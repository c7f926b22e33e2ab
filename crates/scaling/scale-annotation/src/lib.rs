//! Marks the operations of a program for `commutant scale -- PROGRAM`, which counts the lines that go from core to core.
//! `include/commutant_scale.h` is the same for C and C++.
//!
//! Each thread that marks operations is a core. Under `commutant scale` threads take turns, so that one runs at a time. A
//! program that runs by itself loads a word at each mark, and does nothing else. What lies between two operations, such as the
//! choice of the next one, is not measured.
//!
//! ```
//! use std::sync::Mutex;
//!
//! let sum = Mutex::new(0);
//! std::thread::scope(|scope| {
//!     for thread in 0..2 {
//!         let sum = &sum;
//!         scope.spawn(move || {
//!             for _ in 0..100 {
//!                 scale_annotation::operation(|| *sum.lock().unwrap() += thread);
//!             }
//!         });
//!     }
//! });
//! assert_eq!(*sum.lock().unwrap(), 100);
//! ```

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A mark's function in the library that has threads take turns; on a line of its own, which is read only once it is known.
#[repr(align(64))]
struct Mark {
    name: &'static std::ffi::CStr,
    /// Null before the first look. [`nothing`] if the library is not there.
    function: AtomicPtr<c_void>,
}

static BEGIN: Mark = Mark { name: c"commutant_scale_turns_begin", function: AtomicPtr::new(ptr::null_mut()) };
static END: Mark = Mark { name: c"commutant_scale_turns_end", function: AtomicPtr::new(ptr::null_mut()) };

extern "C" fn nothing() {}

impl Mark {
    #[inline]
    fn set(&self) {
        // Relaxed: all threads find the same function, which is code.
        let mut function = self.function.load(Ordering::Relaxed);
        if function.is_null() {
            function = self.find();
        }
        // SAFETY: `find` put it there: a function without parameters and result.
        unsafe { transmute::<*mut c_void, extern "C" fn()>(function)() };
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: the name is NUL-terminated.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) };
        let function = if found.is_null() { nothing as extern "C" fn() as *mut c_void } else { found };
        self.function.store(function, Ordering::Relaxed);
        function
    }
}

/// An operation of this thread begins.
#[inline]
pub fn begin() {
    BEGIN.set();
}

/// The operation ends.
#[inline]
pub fn end() {
    END.set();
}

/// Makes an operation: what `action` does is measured.
#[inline]
pub fn operation<T>(action: impl FnOnce() -> T) -> T {
    begin();
    let result = action();
    end();
    result
}
