//! Adapters of Rust libraries for Commutant (docs/guides/libraries.md): no `unsafe` in an adapter, and a panic fails
//! its call alone.
//!
//! ```
//! use std::sync::atomic::{AtomicI64, Ordering};
//! use commutant_adapter::Arguments;
//!
//! fn add(sum: &AtomicI64, arguments: Arguments) {
//!     sum.fetch_add(arguments.number(0), Ordering::Relaxed);
//! }
//!
//! fn read(sum: &AtomicI64, _: Arguments) -> i64 {
//!     sum.load(Ordering::Relaxed)
//! }
//!
//! commutant_adapter::library! { AtomicI64: || AtomicI64::new(0); "add(amount)" => add, "read()" => read }
//! ```

mod answer;
#[doc(hidden)]
pub mod foreign;

pub use answer::{Answer, Errno, Fields, Handle, Items, Member, Record, Results, Sequence};

use foreign::Value;

/// What a call is given, by the place of a parameter in its signature. Asking for a place that there is not is a panic.
#[derive(Clone, Copy)]
pub struct Arguments<'call>(&'call [Value]);

impl<'call> Arguments<'call> {
    /// A number; of a member of a sort one that is new in each test, of a handle what the library chose.
    #[must_use]
    pub fn number(&self, place: usize) -> i64 {
        self.0[place].number
    }

    /// A truth value.
    #[must_use]
    pub fn truth(&self, place: usize) -> bool {
        self.0[place].number != 0
    }

    /// The text of a member of a sort, its own in each test; empty for other kinds.
    #[must_use]
    pub fn text(&self, place: usize) -> &'call str {
        self.0[place].text()
    }

    #[doc(hidden)]
    #[must_use]
    pub fn over(values: &'call [Value]) -> Self {
        Self(values)
    }
}

/// Defines `commutant_adapter`: the type of the objects under test, what makes one, and the calls.
///
/// `library! { commutant_adapter_NAME => Type: ... }` defines it under that name, one of several in a library: the
/// target is given `name=NAME`.
///
/// `library! { Type: make; "name(parameter, ...)" => function, ... }`, where `make` is callable as `fn() -> Type` and
/// each function as `fn(&Type, Arguments) -> impl Answer`. After `make` may stand, in this order, `reset = function`
/// (a `fn(&Type)` that empties an object, where making one is slow), `settle = function` (a `fn(&Type)`, on each core's
/// thread before each test) and `enter = function` (a `fn(u32)`, once on each core's thread).
#[macro_export]
macro_rules! library {
    ($object:ty: $($rest:tt)*) => { $crate::library! { commutant_adapter => $object: $($rest)* } };
    ($constant:ident => $object:ty: $make:expr $(, reset = $reset:expr)? $(, settle = $settle:expr)? $(, enter = $enter:expr)?;
     $($signature:expr => $function:expr),+ $(,)?) => {
        const _: () = {
            use $crate::foreign;
            extern "C-unwind" fn commutant_make() -> *mut ::std::ffi::c_void {
                foreign::make::<$object>($make)
            }
            static COMMUTANT_CALLS: foreign::Calls<{ [$($signature),+].len() + 1 }> = foreign::Calls([
                $({
                    unsafe extern "C-unwind" fn commutant_call(
                        object: *mut ::std::ffi::c_void,
                        arguments: *const foreign::Value,
                        result: *mut $crate::Results,
                    ) {
                        const PARAMETERS: usize = foreign::parameters($signature);
                        // SAFETY: the runner calls it, with an object of `make`, as many arguments as the signature
                        // has, and a result of its own.
                        unsafe { foreign::call::<$object, _>(object, arguments, PARAMETERS, result, $function) }
                    }
                    foreign::Call { signature: concat!($signature, "\0").as_ptr().cast(), function: Some(commutant_call) }
                },)+
                foreign::Call { signature: ::std::ptr::null(), function: None },
            ]);
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            pub static $constant: foreign::Adapter = {
                #[allow(unused_mut)]
                let mut adapter = foreign::Adapter::new(&COMMUTANT_CALLS.0, commutant_make, foreign::drop::<$object>);
                $(adapter.reset = {
                    unsafe extern "C-unwind" fn commutant_reset(object: *mut ::std::ffi::c_void) {
                        // SAFETY: the runner calls it with an object of `make`.
                        unsafe { foreign::visit::<$object>(object, $reset) }
                    }
                    Some(commutant_reset)
                };)?
                $(adapter.settle = {
                    unsafe extern "C-unwind" fn commutant_settle(object: *mut ::std::ffi::c_void) {
                        // SAFETY: the runner calls it with an object of `make`.
                        unsafe { foreign::visit::<$object>(object, $settle) }
                    }
                    Some(commutant_settle)
                };)?
                $(adapter.enter = {
                    extern "C-unwind" fn commutant_enter(core: u32) {
                        $enter(core)
                    }
                    Some(commutant_enter)
                };)?
                adapter
            };
        };
    };
}
