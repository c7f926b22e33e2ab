//! The operations on locks: by byte where anything changes, of each file in a list of owners.

use std::collections::BTreeSet;

use posix_calls::{
    AnswerOf, Errno, ForeignLock, LockKind, LockMode, LockOperations, LockRange, LockRefusal, LockRequest, LockWait,
    Patience,
};

use crate::call::Call;
use crate::data::Description;
use crate::lock_state::{Locks, Owner};
use crate::object::Number;
use crate::state::State;

impl State {
    /// The first lock that is in the way.
    fn foreign(&self, file: Number, owner: Owner, range: LockRange, mode: LockMode) -> Option<(Owner, ForeignLock)> {
        let is_whole = |kind| kind == LockKind::WholeFile;
        let others = self
            .locks
            .get(&file)?
            .iter()
            .filter(|locks| locks.owner != owner && is_whole(locks.owner.kind) == is_whole(owner.kind));
        others
            .flat_map(|locks| locks.ranges().map(move |(range, mode)| (locks, range, mode)))
            .find(|(_, other, held)| [*held, mode].contains(&LockMode::Exclusive) && other.meets(range))
            .map(|(locks, range, mode)| {
                let kind = locks.owner.kind;
                let seen_as = (kind == LockKind::Process).then_some(locks.seen_as);
                (locks.owner, ForeignLock { kind, range, mode, seen_as })
            })
    }

    fn set_locks(&mut self, file: Number, owner: Owner, request: &LockRequest) {
        let all = self.locks.entry(file).or_default();
        let place = all.iter().position(|locks| locks.owner == owner).unwrap_or_else(|| {
            all.push(Locks { owner, seen_as: request.seen_as, marks: vec![(0, None)] });
            all.len() - 1
        });
        let gives_up = all[place].ranges().any(|(range, mode)| range.meets(request.range) && request.mode < Some(mode));
        all[place].set(request.range, request.mode);
        self.forget_unlocked();
        if gives_up {
            self.look_again(file);
        }
    }

    /// Anyone who waits for a lock of a file asks for it again.
    fn look_again(&mut self, file: Number) {
        self.waits.retain(|_, (_, other)| *other != file);
    }

    fn forget_unlocked(&mut self) {
        self.locks.retain(|_, all| {
            all.retain(|locks| !locks.is_empty());
            !all.is_empty()
        });
    }

    fn give_up(&mut self, gives_up: impl Fn(Number, Owner) -> bool) {
        let mut given_up = Vec::new();
        for (file, all) in &mut self.locks {
            let before = all.len();
            all.retain(|locks| !gives_up(*file, locks.owner));
            given_up.extend((all.len() < before).then_some(*file));
        }
        self.forget_unlocked();
        given_up.into_iter().for_each(|file| self.look_again(file));
    }

    /// A process closes a descriptor of a file.
    pub(crate) fn unlock_of_process(&mut self, file: Number, process: u64) {
        self.give_up(|other, owner| other == file && owner == Owner { kind: LockKind::Process, number: process });
    }

    /// No descriptor leads to a description any more.
    pub(crate) fn unlock_of_description(&mut self, description: u64) {
        self.give_up(|_, owner| owner.kind != LockKind::Process && owner.number == description);
    }

    /// Whether a process waits for another one, perhaps by way of others.
    fn leads_to(&self, from: u64, to: u64) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = Some(from);
        while let Some(process) = next.filter(|process| seen.insert(*process)) {
            if process == to {
                return true;
            }
            next = self.waits.get(&process).map(|(holder, _)| *holder);
        }
        false
    }
}

impl Call<'_> {
    fn owner(&self, description: Description<'_>, kind: LockKind) -> Owner {
        let number = if kind == LockKind::Process { self.process.number } else { description.number };
        Owner { kind, number }
    }
}

impl LockOperations for Call<'_> {
    fn set_lock(
        &self,
        _: u32,
        description: Description<'_>,
        request: &LockRequest,
        patience: Patience,
    ) -> Result<(), LockRefusal> {
        let (file, owner) = (description.node.number, self.owner(description, request.kind));
        let mut state = self.change().map_err(Errno::from)?;
        state.waits.remove(&self.process.number);
        if request.kind == LockKind::WholeFile {
            let has = state.locks.get(&file).and_then(|all| all.iter().find(|locks| locks.owner == owner));
            if has.is_some_and(|locks| locks.at(0) != request.mode) {
                state.set_locks(file, owner, &LockRequest { mode: None, ..*request });
            }
        }
        let foreign = request.mode.and_then(|mode| state.foreign(file, owner, request.range, mode));
        match (foreign, patience) {
            (None, _) => {
                state.set_locks(file, owner, request);
                Ok(())
            }
            (Some(_), Patience::Refuse) => Err(Errno::EAGAIN.into()),
            (Some((holder, _)), Patience::Wait) => {
                if [owner.kind, holder.kind] == [LockKind::Process; 2] {
                    if state.leads_to(holder.number, owner.number) {
                        return Err(Errno::EDEADLK.into());
                    }
                    state.waits.insert(owner.number, (holder.number, file));
                }
                Err(LockRefusal::Busy(LockWait { word: 0, seen: 0 }))
            }
        }
    }

    fn foreign_lock(&self, description: Description<'_>, request: &LockRequest) -> AnswerOf<Option<ForeignLock>, Self> {
        let owner = self.owner(description, request.kind);
        let mode = request.mode.unwrap_or(LockMode::Shared);
        let foreign = self.ask()?.foreign(description.node.number, owner, request.range, mode);
        Ok(foreign.map(|(_, lock)| lock))
    }

    fn stop_waiting(&self, _: LockWait) -> AnswerOf<(), Self> {
        self.change()?.waits.remove(&self.process.number);
        Ok(())
    }
}
