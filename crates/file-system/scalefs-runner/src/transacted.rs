//! Calls in transactions (crate `transact`), for targets `tx=both` and `tx=one`, and sequences cut into transactions.
//!
//! A transaction belongs to the actor that has begun it, and to no process: each call of it begins as one of its process.
//! It stays open in the actor's slot from one operation to the next, so that others make theirs in between.

use posix_calls::Errno;
use transact::{Call, Fault, Sharing, Transaction};

use crate::calls;
use crate::name_calls::{NameCall, Named, Path};
use crate::subject::Subject;

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
    match Transaction::begin(&actor.objects(process), sharing) {
        Ok(transaction) => *place = Some(transaction),
        Err(failed) => return number(failed.into()),
    }
    0
}

/// Makes a call of a transaction. What it opens is closed at once.
///
/// # Errors
/// A negative error number, or [`NOT_TRANSACTIONAL`]; then the transaction goes on as if the call had not been made.
pub fn make<S: Subject>(
    actor: &S,
    process: usize,
    transaction: &Transaction<S::Handle>,
    call: NameCall,
    paths: &[Path; 2],
) -> Result<Named<S::Handle>, i64> {
    let objects = Call::new(actor.objects(process), transaction);
    let before = transaction.savepoint();
    match call.perform(&objects, paths) {
        Ok(Named::Done) => Ok(Named::Done),
        Ok(Named::Status(attributes)) => Ok(Named::Status(attributes)),
        Ok(Named::Opened(opened)) => {
            calls::close_node(&objects, opened);
            Ok(Named::Done)
        }
        Err(Errno::EOPNOTSUPP) => {
            transaction.go_back(before);
            Err(NOT_TRANSACTIONAL)
        }
        Err(errno) => Err(number(errno)),
    }
}

/// Ends a transaction; gives 0, [`ABORTED`], [`NOT_TRANSACTIONAL`] or a negative error number.
///
/// # Panics
/// If none is open: an error of this program.
pub fn end<S: Subject>(actor: &S, process: usize, place: &mut Option<Transaction<S::Handle>>) -> i64 {
    match place.take().expect("it has begun").commit(&actor.objects(process)) {
        Ok(()) => 0,
        Err(Fault::Stale) => ABORTED,
        Err(Fault::NotTransactional) => NOT_TRANSACTIONAL,
        Err(fault) => number(fault.into()),
    }
}
