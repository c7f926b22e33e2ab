//! Calls in transactions (crate `transact`), for targets `tx=both` and `tx=one`, and sequences cut into transactions.
//!
//! A transaction belongs to the actor that has begun it, and to no process: each call of it begins as one of its process.
//! It stays open in the actor's slot from one operation to the next, so that others make theirs in between.

use posix_calls::{Errno, ObjectOperations};
use transact::{Call, Fault, Sharing, Transaction, WithData};

use crate::calls;
use crate::name_calls::NameCall;
use crate::paths::{Named, Path};
use crate::subject::Subject;
use crate::values::PAGE_BYTES;

/// What an operation has to do with a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// Nothing.
    #[default]
    Alone,
    /// It begins one.
    Begin,
    /// It is one of its calls.
    Within,
    /// It ends one.
    End,
}

/// What comes instead of a result: the call, or all of them together, are not offered in a transaction.
pub const NOT_TRANSACTIONAL: i64 = i64::MIN;
/// What comes instead of a result: others have changed what the transaction has seen, so nothing of it has happened.
pub const ABORTED: i64 = i64::MIN + 1;

fn number(errno: Errno) -> i64 {
    -i64::from(errno.number())
}

/// Begins a transaction; gives 0 or a negative error number.
pub fn begin<S: Subject>(actor: &S, process: usize, place: &mut Option<Transaction<S::Handle>>) -> i64 {
    let sharing = if S::ONE_THREAD { Sharing::Alone } else { Sharing::Shared };
    match Transaction::begin(&WithData(actor.enter(process)), sharing) {
        Ok(transaction) => *place = Some(transaction),
        Err(failed) => return number(failed.into()),
    }
    0
}

/// Begins a call of a transaction.
pub fn call<'t, S: Subject>(
    actor: &'t S,
    process: usize,
    transaction: &'t Transaction<S::Handle>,
) -> Call<'t, WithData<S::Call<'t>>> {
    Call::new(WithData(actor.enter(process)), transaction)
}

/// Makes a call on names. What it opens is closed at once.
///
/// # Errors
/// Those of the call.
pub fn name<V: ObjectOperations, H>(
    objects: &V,
    call: NameCall,
    paths: &[Path; 2],
    page: &mut [u8; PAGE_BYTES],
) -> Result<Named<H>, Errno> {
    Ok(match call.perform(objects, paths, page)? {
        Named::Done => Named::Done,
        Named::Status(attributes) => Named::Status(attributes),
        Named::Leads(length) => Named::Leads(length),
        Named::Opened(opened) => {
            calls::close_node(objects, opened);
            Named::Done
        }
    })
}

/// Ends a transaction; gives 0, [`ABORTED`], [`NOT_TRANSACTIONAL`] or a negative error number.
///
/// # Panics
/// If none is open: an error of this program.
pub fn end<S: Subject>(actor: &S, process: usize, place: &mut Option<Transaction<S::Handle>>) -> i64 {
    match place.take().expect("it has begun").commit(&WithData(actor.enter(process))) {
        Ok(()) => 0,
        Err(Fault::Stale) => ABORTED,
        Err(Fault::NotTransactional) => NOT_TRANSACTIONAL,
        Err(fault) => number(fault.into()),
    }
}
