//! What is compared: empty file systems in which several users make calls. The fuzzer compares them too (`fuzz/calls.rs`).

pub mod comparison;
pub mod maps;
pub mod ours;

use call_language::{Answer, Call, Operation, Outcome};
use scalefs::{Credentials, Kind, Space};

/// A file system with a process of every user, which all work in one directory.
pub trait System {
    /// Makes the call with this number in its sequence.
    fn call(&self, index: usize, call: &Call) -> Outcome;

    /// Makes a call that is not compared.
    fn by_superuser(&self, operation: &Operation) -> Outcome;

    /// Closes and removes everything; what then is left, if there is something.
    fn remains(self: Box<Self>) -> Option<String>;
}

/// One system after the other.
pub trait Systems {
    /// What it is called in messages.
    const NAME: &'static str;

    /// Runs `test` on an empty system whose root everybody may write and the first user owns. If it has a limit of pages,
    /// space that a call gives up is free for the next one.
    fn with_empty<T>(
        &mut self,
        page_limit: Option<usize>,
        first_user: Credentials,
        test: impl FnOnce(Box<dyn System + '_>) -> T,
    ) -> T;
}

/// Removes what is below a directory.
pub fn remove_below(system: &dyn System, path: &str) {
    let names = system.by_superuser(&Operation::List(path.into()));
    let Ok(Answer::Names(names)) = names else { panic!("{path} is a directory") };
    for (name, kind) in names {
        let below = format!("{path}/{name}");
        let removed = if kind == Kind::Directory as u8 {
            remove_below(system, &below);
            system.by_superuser(&Operation::RemoveDirectory(below))
        } else {
            system.by_superuser(&Operation::Unlink(below))
        };
        removed.unwrap();
    }
}

/// What of the space is in use.
pub fn left(space: Space) -> Option<String> {
    let (inodes, pages) = (space.inodes - space.free_inodes, space.blocks - space.free_blocks);
    (inodes + pages > 0).then(|| format!("{inodes} inodes and {pages} pages are left when all is removed"))
}
