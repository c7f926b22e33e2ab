//! A transaction that several threads are in: each makes calls of it, and it commits when the last has ended.
//!
//! Among themselves members are not isolated: each sees what the others have done, call by call. A member that is dropped
//! without an end, as by a panic, has died: nothing of the transaction happens, and the others are told ECANCELED.

use core::ops;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use posix_calls::Errno;
use scalefs::FileSystem;

use crate::attempts::{Attempts, Claims};
use crate::hooks::Hooks;
use crate::path_calls::{End, PathCalls};

/// One of those who are in a transaction, with its calls; it may go to another thread. `Drop` is its death.
#[derive(Debug)]
#[must_use = "a member that is dropped without `end` has died, and nothing happens"]
pub struct Member(Option<Arc<Together>>);

#[derive(Debug)]
struct Together {
    calls: PathCalls<FileSystem>,
    members: Mutex<Members>,
    decided: Condvar,
}

#[derive(Debug)]
struct Members {
    /// So many have not ended.
    inside: usize,
    /// How the transaction has ended, for all of them: or an error's number.
    outcome: Option<Result<(), i32>>,
}

impl Together {
    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the transaction, for all that are in it.
    fn decide(&self, members: &mut Members, commits: bool) {
        self.settle(members, || match self.calls.end(commits, &Hooks::default(), &mut |_| ()) {
            Ok(End::Done) if commits => Ok(()),
            Ok(_) => Err(Errno::ECANCELED.number()),
            // Without a number it is a child of `fork` that ends what is its parent's.
            Err(error) => Err(error.raw_os_error().unwrap_or(Errno::EPERM.number())),
        });
    }

    /// Tells all how it has ended: if the end panics, that it has not happened.
    fn settle(&self, members: &mut Members, end: impl FnOnce() -> Result<(), i32>) {
        struct Told<'m>(&'m mut Members, &'m Condvar);
        impl Drop for Told<'_> {
            fn drop(&mut self) {
                self.0.outcome.get_or_insert(Err(Errno::ECANCELED.number()));
                self.1.notify_all();
            }
        }
        let told = Told(members, &self.decided);
        told.0.outcome = Some(end());
    }
}

impl Member {
    pub(crate) fn begin(files: FileSystem) -> io::Result<Member> {
        let calls = PathCalls::begin(files, &mut Attempts::new(Claims::default(), |_| ()))?;
        let members = Mutex::new(Members { inside: 1, outcome: None });
        Ok(Member(Some(Arc::new(Together { calls, members, decided: Condvar::new() }))))
    }

    fn together(&self) -> &Arc<Together> {
        self.0.as_ref().expect("it is there until the end")
    }

    /// Another member, for another thread: the transaction waits for it, too.
    pub fn join(&self) -> Member {
        let together = self.together();
        together.members().inside += 1;
        Member(Some(together.clone()))
    }

    /// Ends this member's part, and waits for the others: with the last one's end, all that they have done happens at one
    /// moment. So a thread that is two members never ends.
    ///
    /// # Errors
    /// ECANCELED if something seen is not so any more, or a member has died: nothing has happened. ENOSPC without memory for the
    /// changes.
    pub fn end(mut self) -> io::Result<()> {
        let together = self.0.take().expect("it is there until the end");
        let mut members = together.members();
        members.inside -= 1;
        if members.inside == 0 && members.outcome.is_none() {
            together.decide(&mut members, true);
        }
        loop {
            if let Some(outcome) = members.outcome {
                return outcome.map_err(io::Error::from_raw_os_error);
            }
            members = together.decided.wait(members).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl ops::Deref for Member {
    type Target = PathCalls<FileSystem>;

    fn deref(&self) -> &PathCalls<FileSystem> {
        &self.together().calls
    }
}

impl Drop for Member {
    /// Its death, unless it has ended.
    fn drop(&mut self) {
        let Some(together) = self.0.take() else { return };
        let mut members = together.members();
        members.inside -= 1;
        if members.outcome.is_none() {
            together.decide(&mut members, false);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use posix_calls::Errno;
    use scalefs::{FileSystem, OwnedConfig};

    use super::Member;

    /// The last one's end has a fault of its own: whoever waits is told, and does not wait for ever.
    #[test]
    fn an_end_that_panics_is_told_to_all() {
        let files = FileSystem::create(OwnedConfig { core_count: 2, ..OwnedConfig::default() }).unwrap();
        let last = Member::begin(files).unwrap();
        let waits = last.join();
        let waiting = thread::spawn(move || waits.end());
        let together = last.together();
        let settled = catch_unwind(AssertUnwindSafe(|| together.settle(&mut together.members(), || panic!("a fault"))));
        assert!(settled.is_err());
        let told = waiting.join().unwrap().map_err(|error| error.raw_os_error());
        assert_eq!(told, Err(Some(Errno::ECANCELED.number())));
        assert_eq!(last.end().map_err(|error| error.raw_os_error()), Err(Some(Errno::ECANCELED.number())));
    }
}
