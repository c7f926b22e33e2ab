//! arc-swap: a shared pointer that readers borrow from without counting.
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use commutant_adapter::{Arguments, Errno, Handle};

/// What is shared; on lines apart from the counts.
#[repr(align(128))]
pub struct Shared(bool);

type Borrowed = Guard<Arc<Shared>>;

fn acquire(shared: &ArcSwap<Shared>, _: Arguments) -> Handle {
    Handle { sort: "Reference", number: gallery::keep(shared.load()) }
}

fn release(_: &ArcSwap<Shared>, arguments: Arguments) -> Result<(), Errno> {
    gallery::take::<Borrowed>(arguments.number(0)).map(drop).ok_or(Errno::EINVAL)
}

fn read(_: &ArcSwap<Shared>, arguments: Arguments) -> Result<bool, Errno> {
    gallery::kept::<Borrowed>(arguments.number(0)).map(|shared| shared.0).ok_or(Errno::EINVAL)
}

commutant_adapter::library! { ArcSwap<Shared>: || ArcSwap::from_pointee(Shared(true));
"acquire()" => acquire, "release(reference)" => release, "read(reference)" => read }
