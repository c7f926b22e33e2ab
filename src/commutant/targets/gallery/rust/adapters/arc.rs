//! The standard library's shared pointer.
use std::sync::Arc;

use commutant_adapter::{Arguments, Errno, Handle};

/// What is shared; on lines apart from the counts.
#[repr(align(128))]
pub struct Shared(bool);

fn acquire(shared: &Arc<Shared>, _: Arguments) -> Handle {
    Handle { sort: "Reference", number: gallery::keep(Arc::clone(shared)) }
}

fn release(_: &Arc<Shared>, arguments: Arguments) -> Result<(), Errno> {
    gallery::take::<Arc<Shared>>(arguments.number(0)).map(drop).ok_or(Errno::EINVAL)
}

fn read(_: &Arc<Shared>, arguments: Arguments) -> Result<bool, Errno> {
    gallery::kept::<Arc<Shared>>(arguments.number(0)).map(|shared| shared.0).ok_or(Errno::EINVAL)
}

fn count(shared: &Arc<Shared>, _: Arguments) -> i64 {
    Arc::strong_count(shared) as i64 - 1
}

commutant_adapter::library! { Arc<Shared>: || Arc::new(Shared(true));
"acquire()" => acquire, "release(reference)" => release, "read(reference)" => read, "count()" => count }
