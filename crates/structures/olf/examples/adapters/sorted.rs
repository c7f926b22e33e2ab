//! The interface `lists` on lists of `olf` in the order of their keys:
//!
//!     cargo build --release -p olf --example sorted
//!     commutant check lists --target library:path=target/release/examples/libsorted.so

mod shared;

use olf::Sorted;

shared::lists_adapter! {
    Sorted<'static, shared::ByKey>: Sorted::new(shared::domain()).expect("a number for a list")
}
