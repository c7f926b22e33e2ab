//! The verbs on locks of files.
//!
//! **Who closes gives up.** A process's locks go with the number that it closes (`process.rs`), a description's with its last
//! one (`description.rs`); what has locks says so before it gets them, and no one closes the number by which it gets
//! them.
//!
//! **Death of a process** in a verb: the file was noted first ([`LockNote`](crate::file_locks::LockNote)), with who was giving
//! its locks up.
#![allow(unsafe_code)]

use percpu::{Core, OutOfMemory};
use posix_calls::{
    AnswerOf, Errno, ForeignLock, LockKind, LockMode, LockOperations, LockRefusal, LockRequest, LockWait, Patience,
    ProcessNumber,
};
use sync::mutant::planted;
use sync::{Wait, WaitReason};

use crate::description::{DescriptionPtr, DescriptionRef};
use crate::direct_data::InProcess;
use crate::file_locks::{Asked, FileLocks, Leaving, Locking};
use crate::host::Host;
use crate::inode_ref::InodeRef;
use crate::instance::ScaleFs;
use crate::lock_list::LockOwner;
use crate::lock_waits::NoWait;

impl ScaleFs {
    fn locking<'a, W: Wait>(&'a self, core: &'a Core<'a>, node: InodeRef, wait: &'a W) -> Locking<'a, W> {
        let waits = self.lock_waits();
        Locking { core, wait, word: waits.word(waits.word_of(node.inode().header.number())) }
    }

    /// Gives up locks of a file, of these owners.
    pub(crate) fn give_up_locks(
        &self,
        core: &Core<'_>,
        node: InodeRef,
        wait: &impl Wait,
        owns: impl Fn(LockOwner) -> bool,
    ) {
        if let Some(locks) = FileLocks::of(node.inode()) {
            locks.give_up(&self.locking(core, node, wait), owns);
        }
    }

    /// Gives up the locks that a process has of a file.
    pub(crate) fn give_up_locks_of(&self, core: &Core<'_>, node: InodeRef, process: ProcessNumber, wait: &impl Wait) {
        let owner = LockOwner { kind: LockKind::Process, identity: process.0 };
        self.give_up_locks(core, node, wait, |other| other == owner);
    }

    /// Ends what a dead core was doing with locks.
    ///
    /// # Safety
    /// `heir` was taken over from a dead owner.
    pub(crate) unsafe fn repair_locks_taken_over(&self, heir: &Core<'_>, wait: &impl Wait) {
        // SAFETY: the caller's promise; what was noted was in use by the dead core's call, which has not ended.
        unsafe {
            self.lock_waits().repair_taken_over(heir);
            let Some((file, leaving)) = self.lock_note(heir).left() else { return };
            let node = InodeRef::from_bits(file);
            if let Some(locks) = FileLocks::of(node.inode()) {
                locks.repair_taken_over(&self.locking(heir, node, wait));
            }
            if !planted("scalefs: an heir forgets the locks of files") {
                if leaving.process != 0 {
                    self.give_up_locks_of(heir, node, ProcessNumber(leaving.process), wait);
                }
                if leaving.description != 0 {
                    DescriptionPtr::from_address(leaving.description).give_up_locks(self, heir, wait);
                }
            }
        }
        self.lock_note(heir).forget();
    }

    /// Waits as a host likes to, at best until the lock may be free that a request was refused for
    /// ([`LockRefusal::Busy`]). No call of the caller is under way.
    pub fn wait_for_lock(&self, wait_for: LockWait, host: &impl Wait, round: u32) {
        host.wait_while(self.lock_waits().word(wait_for.word), wait_for.seen, WaitReason::FileLock, round);
    }

    /// The word that a request waits for, for hosts that let others wait: it is 32 bits of the instance's memory.
    pub fn lock_word(&self, wait_for: LockWait) -> &sync::atomic::AtomicU32 {
        self.lock_waits().word(wait_for.word)
    }
}

impl<H: Host> InProcess<'_, H> {
    fn lock_owner(&self, description: DescriptionRef<'_>, kind: LockKind) -> LockOwner {
        let identity = match kind {
            LockKind::Process => self.process().relatives.number().0,
            LockKind::Description | LockKind::WholeFile => description.address(),
        };
        LockOwner { kind, identity }
    }

    /// What a caller waits for who has found this owner's lock in the way.
    fn begin_waiting(&self, owner: LockOwner, holder: LockOwner, wait_for: LockWait) -> Result<(), Errno> {
        // Linux `posix_locks_deadlock`: a description's lock may be given up by anybody.
        if [owner.kind, holder.kind] != [LockKind::Process; 2] {
            return Ok(());
        }
        let edge = (owner.identity, holder.identity);
        self.fs.lock_waits().put(self.core(), edge, wait_for, self.host).map_err(|no_wait| match no_wait {
            NoWait::Circle => Errno::EDEADLK,
            NoWait::Full => Errno::ENOLCK,
        })
    }
}

impl<H: Host> LockOperations for InProcess<'_, H> {
    fn set_lock(
        &self,
        number: u32,
        description: DescriptionRef<'_>,
        request: &LockRequest,
        patience: Patience,
    ) -> Result<(), LockRefusal> {
        let LockRequest { kind, range, mode, seen_as } = *request;
        let (node, owner) = (description.get().opened.node, self.lock_owner(description, kind));
        let locks = match mode {
            None => FileLocks::of(node.inode()),
            Some(_) => Some(FileLocks::made_for(node.inode(), self.core()).map_err(|OutOfMemory| Errno::ENOLCK)?),
        };
        let Some(locks) = locks else { return Ok(()) };
        let note = self.fs.lock_note(self.core());
        note.note(node.to_bits(), Leaving::default());
        let mut wait_for = None;
        let mut waits = || {
            if patience == Patience::Wait {
                locks.be_awaited_locked();
                wait_for = Some(self.fs.lock_waits().wait_for(node.inode().header.number()));
            }
        };
        let locking = self.fs.locking(self.core(), node, self.host);
        let gives_up_first = kind == LockKind::WholeFile;
        // Anyone who closes the number comes before, or finds what it has to give up.
        let asked = self.process().while_open(&self.guard, (number, description), self.host, || {
            // Also who waits: another thread may close the descriptor.
            DescriptionPtr::from_address(description.address()).will_have_locks();
            self.process().will_have_locks();
            locks.set(&locking, (owner, range, mode), seen_as, (gives_up_first, &mut waits))
        });
        note.forget();
        match asked? {
            Ok(Asked::Done) => Ok(()),
            Ok(Asked::Foreign(foreign)) => Err(match wait_for {
                None => LockRefusal::Failed(Errno::EAGAIN),
                Some(wait_for) => match self.begin_waiting(owner, foreign.owner, wait_for) {
                    Ok(()) => LockRefusal::Busy(wait_for),
                    Err(errno) => LockRefusal::Failed(errno),
                },
            }),
            Err(OutOfMemory) => Err(LockRefusal::Failed(Errno::ENOLCK)),
        }
    }

    fn foreign_lock(
        &self,
        description: DescriptionRef<'_>,
        request: &LockRequest,
    ) -> AnswerOf<Option<ForeignLock>, Self> {
        let (node, owner) = (description.get().opened.node, self.lock_owner(description, request.kind));
        let Some(locks) = FileLocks::of(node.inode()) else { return Ok(None) };
        let note = self.fs.lock_note(self.core());
        note.note(node.to_bits(), Leaving::default());
        let mode = request.mode.unwrap_or(LockMode::Shared);
        let found = locks.foreign(&self.fs.locking(self.core(), node, self.host), (owner, request.range, mode));
        note.forget();
        Ok(found)
    }

    fn stop_waiting(&self, wait: LockWait) -> AnswerOf<(), Self> {
        self.fs.lock_waits().take(self.core(), self.process().relatives.number().0, wait, self.host);
        Ok(())
    }
}
