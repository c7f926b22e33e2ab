//! A call: what of the state it lends, and how it fails if it was told to.

use std::cell::{Ref, RefMut};
use std::marker::PhantomData;

use posix_calls::{Errno, Failed, Kind};

use crate::object::Number;
use crate::process::Process;
use crate::state::{Plain, State};

/// One call of one process.
#[derive(Debug)]
pub struct Call<'c> {
    pub(crate) file_system: &'c Plain,
    pub(crate) process: &'c Process,
}

/// What an operation failed with that was told to ([`Plain::fail_after`]): as if the object lay where nobody answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable;

impl From<Unreachable> for Errno {
    fn from(_: Unreachable) -> Errno {
        Errno::EIO
    }
}

/// An object during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node<'v> {
    pub(crate) number: Number,
    pub(crate) kind: Kind,
    pub(crate) call: PhantomData<&'v ()>,
}

impl Plain {
    /// Begins a call of a process.
    pub fn begin<'c>(&'c self, process: &'c Process) -> Call<'c> {
        Call { file_system: self, process }
    }
}

impl Call<'_> {
    /// The state, for an operation that may fail.
    pub(crate) fn ask(&self) -> Result<Ref<'_, State>, Failed<Unreachable>> {
        self.count_operation()?;
        Ok(self.file_system.state.borrow())
    }

    /// As [`Call::ask`], to be changed.
    pub(crate) fn change(&self) -> Result<RefMut<'_, State>, Failed<Unreachable>> {
        self.count_operation()?;
        Ok(self.file_system.state.borrow_mut())
    }

    fn count_operation(&self) -> Result<(), Failed<Unreachable>> {
        match self.file_system.successes_left.get() {
            None => Ok(()),
            Some(0) => Err(Failed(Unreachable)),
            Some(left) => {
                self.file_system.successes_left.set(Some(left - 1));
                Ok(())
            }
        }
    }

    pub(crate) fn lend(&self, number: Number) -> Node<'_> {
        let kind = self.file_system.state.borrow().get(number).body.kind();
        Node { number, kind, call: PhantomData }
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.file_system.now_ns() as i64
    }
}
