//! The instance as a transaction sees it: all requests of a mount are calls of one transaction, one at a time.
//!
//! **What is kept.** The kernel wants attributes with each name that it looks up, and asks again before it tells them to anybody,
//! since it caches nothing. So those of a look-up are passed on only ([`Call::in_passing`]); what `stat` asks for is kept. Of a
//! directory `stat` keeps no times: every shell asks for those of the directory in which it starts, and they change with each name
//! that somebody makes there.
//!
//! **Who calls.** The kernel lets root alone in, who may do everything: so no answer rests on permissions but where a program
//! asks for them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use scalefs::{
    Attributes, Credentials, Decision, Errno, Fields, FileSystem, InProcess, InodeNumber, Kind, ObjectOperations,
    OpenNode, Outside, Process, Start, handles,
};
use transact::{Call, Conflict, Sharing, Subject, Transaction, WithData};

use super::name_of;
use super::nodes::ROOT;
use super::view::{Look, NodeOf, View, Who, call_as};
use crate::planted::planted;

/// How many of the things that conflict are named.
const NAMED: usize = 3;

type Calls<'c> = Call<'c, WithData<InProcess<'c, Outside>>>;

/// How a transaction has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All of it has happened.
    Done,
    /// Nothing has happened, as was asked.
    Undone,
    /// Nothing has happened, since others have changed what it rests on: this, as far as that is known.
    Refused(String),
    /// Nothing has happened: that is why.
    Failed(Errno),
}

/// A transaction, and the process that makes its calls. It ends with [`InTransaction::end`], or when this is dropped.
pub(crate) struct InTransaction {
    files: FileSystem,
    open: Mutex<Option<Open>>,
    /// By number: under which name of which directory the kernel has found an object.
    names: Mutex<HashMap<u64, (u64, Vec<u8>)>>,
}

struct Open {
    process: Process,
    transaction: Transaction<OpenNode>,
    /// What others have changed, once a call was refused for that.
    conflicts: Vec<Conflict>,
}

impl InTransaction {
    pub(crate) fn begin(files: &FileSystem) -> Result<InTransaction, Errno> {
        let lease = files.begin().map_err(|_| Errno::EIO)?;
        let process = lease.begin_process(Credentials::SUPERUSER)?;
        // The kernel takes the mask off before it asks.
        process.context().set_umask(0);
        let begun = Transaction::begin(&WithData(lease.calls_of(&process)), Sharing::Shared);
        match begun {
            Ok(transaction) => Ok(InTransaction {
                files: files.clone(),
                open: Mutex::new(Some(Open { process, transaction, conflicts: Vec::new() })),
                names: Mutex::default(),
            }),
            Err(failed) => {
                lease.end_process(process);
                Err(failed.into())
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets all happen, or nothing; calls that come later fail. `changed` hears the numbers of the files whose data have become others.
    pub(crate) fn end(&self, decision: Decision, mut changed: impl FnMut(u64)) -> Ending {
        let Some(Open { process, mut transaction, mut conflicts }) = self.open().take() else {
            return Ending::Failed(Errno::ENOTCONN);
        };
        let attempted = call_as(&self.files, &process, |base| {
            let base = WithData(base);
            let outcome = match decision {
                Decision::Commit => transaction.attempt(&base).map_err(Errno::from),
                Decision::Abort if transaction.is_still_so(&base).map_err(Errno::from)? => Ok(()),
                Decision::Abort => Err(Errno::ECANCELED),
            };
            if outcome == Err(Errno::ECANCELED) && conflicts.is_empty() {
                conflicts = transaction.conflicts(&base);
            }
            outcome
        });
        let happens = decision == Decision::Commit && attempted.is_ok();
        if happens {
            let data = |changes: &transact::Changes<'_>| {
                let of_files = changes.objects().filter(|object| object.data.is_changed());
                of_files.map(|object| object.number.0).collect::<Vec<_>>()
            };
            transaction.changes(data).into_iter().for_each(&mut changed);
        }
        let decided = if happens { Decision::Commit } else { Decision::Abort };
        if let Ok(lease) = self.files.begin() {
            transaction.close(&WithData(lease.calls_of(&process)), decided);
            lease.end_process(process);
        }
        match attempted {
            Ok(()) if happens => Ending::Done,
            Ok(()) => Ending::Undone,
            Err(Errno::ECANCELED) => Ending::Refused(self.named(&conflicts)),
            Err(errno) => Ending::Failed(errno),
        }
    }

    /// What others have changed, in words.
    fn named(&self, conflicts: &[Conflict]) -> String {
        let mut named: Vec<_> = conflicts.iter().take(NAMED).map(|conflict| self.name_of(conflict)).collect();
        if conflicts.len() > NAMED {
            named.push(format!("{} more", conflicts.len() - NAMED));
        }
        match named.is_empty() {
            true => "what it had seen, and that is as before again".to_owned(),
            false => named.join(", "),
        }
    }

    fn name_of(&self, Conflict { object: InodeNumber(number), about }: &Conflict) -> String {
        let path = self.path_of(*number);
        let shown = path.display();
        match about {
            Subject::Name(name) if number == &ROOT => name_of(name).display().to_string(),
            Subject::Name(name) => path.join(name_of(name)).display().to_string(),
            Subject::Names => format!("the names in {shown}"),
            Subject::Place => format!("where {shown} is"),
            Subject::Data => format!("the data of {shown}"),
            Subject::Permissions => format!("owner or mode of {shown}"),
            Subject::Status => format!("size, times or link count of {shown}"),
            Subject::Process => "what its process has".to_owned(),
        }
    }

    /// Where an object was found, seen from the root.
    fn path_of(&self, number: u64) -> PathBuf {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut number, mut path) = (number, Vec::new());
        // As many steps as there are names: a directory that was moved can seem to be above itself.
        for _ in 0..=names.len() {
            let Some((directory, name)) = names.get(&number).filter(|_| number != ROOT) else { break };
            path.push(name_of(name));
            number = *directory;
        }
        match path.is_empty() {
            true => PathBuf::from("."),
            false => path.iter().rev().collect(),
        }
    }
}

impl Drop for InTransaction {
    fn drop(&mut self) {
        self.end(Decision::Abort, |_| ());
    }
}

impl View for InTransaction {
    type Objects<'c> = Calls<'c>;
    type Calls<'c> = Calls<'c>;
    type Handle = transact::OpenNode;
    // Its own holes and the instance's are not distinguished.
    const KNOWS_HOLES: bool = false;
    const KEEPS_ANSWERS: bool = true;

    fn call<T>(&self, _: Who<'_>, mut call: impl for<'c> FnMut(&Calls<'c>) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut open = self.open();
        let Open { process, transaction, conflicts } = open.as_mut().ok_or(Errno::ENOTCONN)?;
        let transaction = &*transaction;
        call_as(&self.files, process, |base| {
            let calls = Call::new(WithData(base), transaction);
            let outcome = match planted("transaction: what it has seen is not asked again") {
                true => calls.in_passing(&mut call),
                false => call(&calls),
            };
            if matches!(outcome, Err(Errno::ECANCELED)) && conflicts.is_empty() {
                *conflicts = transaction.conflicts(&calls.into_base());
            }
            outcome
        })
    }

    fn release(&self, _: transact::OpenNode) {}

    fn attributes<'v, 'c>(
        objects: &'v Calls<'c>,
        node: NodeOf<'v, 'c, InTransaction>,
        look: Look,
    ) -> Result<Attributes, Errno> {
        match (look, objects.kind(node)) {
            (Look::Asked, Kind::Directory) => _ = objects.attributes(node, Fields::PERMISSIONS)?,
            (Look::Asked, _) => return Ok(objects.attributes(node, Fields::ALL)?),
            (Look::InPassing, _) => {}
        }
        Ok(objects.in_passing(|objects| objects.attributes(node, Fields::ALL))?)
    }

    fn link<'v, 'c>(
        objects: &'v Calls<'c>,
        node: NodeOf<'v, 'c, InTransaction>,
        new: (Start<NodeOf<'v, 'c, InTransaction>>, &[u8]),
    ) -> Result<(), Errno> {
        handles::link_found(objects, &node, new)
    }

    fn found(&self, directory: u64, name: &[u8], number: u64) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(number, (directory, name.to_vec()));
    }
}
