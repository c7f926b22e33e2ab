//! What a transaction is over: calls of the base, with names alone or with data, too.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use posix_calls::{
    Answer, DataChanges, Failed, FileChanges, InodeNumber, NameChanges, ObjectOperations, Outcome, ReservedPages,
    WriteAt,
};

use sync::mutant::planted;

use crate::decided::Decided;
use crate::descriptors::Descriptors;
use crate::pipe::OwnPipe;
use crate::question::{AboutData, Described, Objects, Reply};

/// The objects of a base.
pub(crate) type NodeIn<'v, P> = <<P as Base>::Objects as ObjectOperations>::Node<'v>;
/// What its operations fail with.
pub(crate) type FaultIn<P> = <<P as Base>::Objects as ObjectOperations>::Fault;
/// What keeps its objects.
pub(crate) type HandleIn<P> = <<P as Base>::Objects as ObjectOperations>::Handle;
/// What it has prepared.
pub(crate) type PreparedIn<'p, 'v, P> = <<P as Base>::Objects as NameChanges>::Prepared<'p, 'v>;

/// A call of the base: any implementation of [`Decided`], or [`WithData`].
pub trait Base: Sized {
    /// The operations on objects.
    type Objects: Decided;

    /// The operations on objects in the same call.
    fn objects(&self) -> &Self::Objects;

    /// Asks about data. `introduce` tells the number of an object.
    #[doc(hidden)]
    fn ask_data<'v>(
        &'v self,
        subject: InodeNumber,
        objects: &'v Objects<HandleIn<Self>>,
        about: &AboutData,
        introduce: &mut dyn FnMut(NodeIn<'v, Self>) -> Answer<InodeNumber, Self::Objects>,
    ) -> Answer<Reply, Self::Objects>;

    /// Room for one file while it is prepared.
    #[doc(hidden)]
    type FileRoom<'v>: Default
    where
        Self: 'v;

    /// Room for one page that is written.
    #[doc(hidden)]
    type PageRoom<'v>: Default
    where
        Self: 'v;

    /// See [`DataChanges::reserve_page`].
    #[doc(hidden)]
    fn reserve_page(&self) -> Answer<Option<u64>, Self::Objects>;

    /// See [`DataChanges::give_page_back`].
    #[doc(hidden)]
    fn give_page_back(&self, page: u64);

    /// See [`DataChanges::prepare_data`].
    #[doc(hidden)]
    fn prepare_data<'p, 'v>(
        &'v self,
        prepared: &mut PreparedIn<'p, 'v, Self>,
        changes: &'p [FileChanges<'p, NodeIn<'v, Self>>],
        reserved: &ReservedPages<'_>,
        room: (&'p mut [Self::FileRoom<'v>], &'p mut [Self::PageRoom<'v>]),
    ) -> Outcome<(), Self::Objects>
    where
        'v: 'p;

    /// Writes to a file that nobody else knows.
    #[doc(hidden)]
    fn write_made(&self, file: NodeIn<'_, Self>, change: FileChange<'_>) -> Outcome<usize, Self::Objects>;

    /// The right to move offsets, and to use pipes.
    #[doc(hidden)]
    type Locks<'v>: Default
    where
        Self: 'v;

    /// Keeps others from the offsets of these descriptors, and from these pipes, before all are asked for again. Of a pipe
    /// that changes it says what becomes of it.
    #[doc(hidden)]
    fn lock<'v>(
        &'v self,
        offsets: &mut dyn Iterator<Item = u32>,
        pipes: &mut dyn Iterator<Item = (NodeIn<'v, Self>, &'v OwnPipe)>,
    ) -> Outcome<Self::Locks<'v>, Self::Objects>;

    /// Lets pipes and descriptors be as the transaction has left them, or, if it has not happened, as they were.
    #[doc(hidden)]
    fn end_data(&self, descriptors: &Descriptors, locks: Self::Locks<'_>, happened: bool);
}

/// A change of a file that the transaction has made.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum FileChange<'d> {
    Write(u64, &'d [u8]),
    Resize(u64),
}

impl<B: Decided> Base for B {
    type Objects = B;
    type FileRoom<'v>
        = ()
    where
        Self: 'v;
    type PageRoom<'v>
        = ()
    where
        Self: 'v;

    fn reserve_page(&self) -> Answer<Option<u64>, B> {
        unreachable!("{NO_DATA}")
    }

    fn give_page_back(&self, _: u64) {
        unreachable!("{NO_DATA}")
    }

    fn objects(&self) -> &B {
        self
    }

    fn ask_data<'v>(
        &'v self,
        _: InodeNumber,
        _: &'v Objects<B::Handle>,
        _: &AboutData,
        _: &mut dyn FnMut(B::Node<'v>) -> Answer<InodeNumber, B>,
    ) -> Answer<Reply, B> {
        unreachable!("{NO_DATA}")
    }

    fn prepare_data<'p, 'v>(
        &'v self,
        _: &mut B::Prepared<'p, 'v>,
        changes: &'p [FileChanges<'p, B::Node<'v>>],
        _: &ReservedPages<'_>,
        _: (&'p mut [()], &'p mut [()]),
    ) -> Outcome<(), B>
    where
        'v: 'p,
    {
        assert!(changes.is_empty(), "{NO_DATA}");
        Ok(())
    }

    fn write_made(&self, _: B::Node<'_>, _: FileChange<'_>) -> Outcome<usize, B> {
        // A file without data is as it was made.
        Ok(0)
    }

    type Locks<'v>
        = ()
    where
        Self: 'v;

    fn lock<'v>(
        &'v self,
        _: &mut dyn Iterator<Item = u32>,
        _: &mut dyn Iterator<Item = (B::Node<'v>, &'v OwnPipe)>,
    ) -> Outcome<(), B> {
        Ok(())
    }

    fn end_data(&self, descriptors: &Descriptors, (): (), _: bool) {
        assert!(descriptors.is_empty(), "{NO_DATA}");
    }
}

/// So much of a file or a pipe is looked at first.
const FIRST_LOOK_BYTES: usize = 64 << 10;
/// Calls on data do not compile without [`WithData`].
const NO_DATA: &str = "a base without data is not asked for data";

/// What a commit has locked of descriptions, by their identity, and of pipes, with what becomes of each.
#[doc(hidden)]
pub struct DataLocks<'v, D: DataChanges + 'v> {
    offsets: Vec<(u64, D::OffsetLock<'v>)>,
    pipes: Vec<(D::PipeLock<'v>, &'v OwnPipe)>,
}

impl<D: DataChanges> Default for DataLocks<'_, D> {
    fn default() -> Self {
        DataLocks { offsets: Vec::new(), pipes: Vec::new() }
    }
}

/// What one look sees, of so many bytes at most. A caller's buffer may be larger than all that there is, and than memory: the
/// one that is looked into grows with what is seen.
fn look<F>(length: usize, look: impl Fn(&mut [u8]) -> Result<usize, Failed<F>>) -> Result<Box<[u8]>, Failed<F>> {
    let first = if planted("transact: a look takes what memory its caller has") { length } else { FIRST_LOOK_BYTES };
    let mut bytes = vec![0; length.min(first)];
    let seen = loop {
        let seen = look(&mut bytes)?;
        if seen < bytes.len() || seen == length {
            break seen;
        }
        bytes.resize(length.min(2 * seen.max(1)), 0);
    };
    bytes.truncate(seen);
    Ok(bytes.into())
}

/// A base whose data changes, too: its transactions have the calls on data (`posix_calls::data`).
#[derive(Debug)]
pub struct WithData<D>(pub D);

impl<D: DataChanges<Objects: Decided>> Base for WithData<D> {
    type Objects = D::Objects;
    type FileRoom<'v>
        = D::FileRoom<'v>
    where
        Self: 'v;
    type PageRoom<'v>
        = D::PageRoom<'v>
    where
        Self: 'v;

    fn reserve_page(&self) -> Answer<Option<u64>, Self::Objects> {
        self.0.reserve_page()
    }

    fn give_page_back(&self, page: u64) {
        // It was taken in an earlier call; nothing is refused.
        let _ = self.0.give_page_back(page);
    }

    fn objects(&self) -> &D::Objects {
        self.0.objects()
    }

    fn ask_data<'v>(
        &'v self,
        subject: InodeNumber,
        objects: &'v Objects<HandleIn<Self>>,
        about: &AboutData,
        introduce: &mut dyn FnMut(NodeIn<'v, Self>) -> Answer<InodeNumber, Self::Objects>,
    ) -> Answer<Reply, Self::Objects> {
        let file = || self.objects().held(&objects[&subject].handle);
        let description = |number| self.0.description(number);
        Ok(match *about {
            AboutData::Bytes(offset, length) => {
                Reply::Bytes(look(length, |bytes| self.0.read_range(file(), offset, bytes))?)
            }
            AboutData::EndsAt(offset) => Reply::Truth(self.0.ends_at(file(), offset)?),
            AboutData::IsShorterThan(length) => Reply::Truth(self.0.is_shorter_than(file(), length)?),
            AboutData::MayServe(number, usage) => Reply::Truth(self.0.may_serve(number, usage)?),
            AboutData::Descriptor(number) => {
                let described = |description| -> Answer<Described, Self::Objects> {
                    let node = introduce(self.0.node(description))?;
                    Ok(Described { identity: self.0.identity(description), node, mode: self.0.mode(description) })
                };
                Reply::Description(description(number)?.map(described).transpose()?)
            }
            AboutData::Offset(number) => {
                let offset = |description| Ok(self.0.offset(description)?.bytes);
                Reply::Offset(description(number)?.map(offset).transpose()?)
            }
            AboutData::Reaches(number, bytes) => {
                let reaches = |description| -> Answer<bool, Self::Objects> {
                    Ok(self.0.may_reach(description, bytes)? && self.0.offset(description)?.bytes >= bytes)
                };
                // If it is not there any more, that is told by what it leads to.
                Reply::Truth(description(number)?.map_or(Ok(true), reaches)?)
            }
            AboutData::PipeBytes(length) => Reply::Bytes(look(length, |bytes| self.0.peek_pipe(file(), bytes))?),
            AboutData::PipeRoom(at_most) => Reply::Count(self.0.pipe_room(file(), at_most)? as u64),
            AboutData::PipeIsAlone(end) => Reply::Truth(self.0.pipe_state(file(), end)?.other_end_gone),
            AboutData::Status(number) => {
                Reply::Status(description(number)?.map(|description| self.0.status(description)).transpose()?)
            }
        })
    }

    fn prepare_data<'p, 'v>(
        &'v self,
        prepared: &mut PreparedIn<'p, 'v, Self>,
        changes: &'p [FileChanges<'p, NodeIn<'v, Self>>],
        reserved: &ReservedPages<'_>,
        room: (&'p mut [D::FileRoom<'v>], &'p mut [D::PageRoom<'v>]),
    ) -> Outcome<(), Self::Objects>
    where
        'v: 'p,
    {
        if changes.is_empty() { Ok(()) } else { self.0.prepare_data(prepared, changes, reserved, room) }
    }

    fn write_made(&self, file: NodeIn<'_, Self>, change: FileChange<'_>) -> Outcome<usize, Self::Objects> {
        Ok(match change {
            FileChange::Write(offset, bytes) => self.0.write_range(file, WriteAt::Offset(offset), bytes)?.length,
            FileChange::Resize(size) => self.0.resize(file, size).map(|()| 0)?,
        })
    }

    type Locks<'v>
        = DataLocks<'v, D>
    where
        Self: 'v;

    fn lock<'v>(
        &'v self,
        offsets: &mut dyn Iterator<Item = u32>,
        pipes: &mut dyn Iterator<Item = (NodeIn<'v, Self>, &'v OwnPipe)>,
    ) -> Outcome<DataLocks<'v, D>, Self::Objects> {
        let mut descriptions = BTreeMap::new();
        for number in offsets {
            if let Some(description) = self.0.description(number)? {
                descriptions.insert(self.0.identity(description), description);
            }
        }
        let mut locks = DataLocks::default();
        // By identity and by place, so that no two wait for each other.
        for (identity, description) in descriptions {
            let lock = self.0.lock_offset(description)?;
            // All that the transaction changes is known at its decision, the offset after it.
            self.0.will_reach(&lock, u64::MAX)?;
            locks.offsets.push((identity, lock));
        }
        let mut pipes: Vec<_> = pipes.map(|(node, own)| (self.0.pipe_place(node), node, own)).collect();
        pipes.sort_unstable_by_key(|(place, ..)| *place);
        for (_, node, own) in pipes {
            locks.pipes.push((self.0.lock_pipe(node, own.put.len())?, own));
        }
        Ok(locks)
    }

    fn end_data(&self, descriptors: &Descriptors, locks: DataLocks<'_, D>, happened: bool) {
        for (lock, own) in locks.pipes {
            let OwnPipe { taken_bytes, put } = own;
            let _ =
                if happened { self.0.finish_pipe(lock, *taken_bytes, put) } else { self.0.finish_pipe(lock, 0, &[]) };
        }
        for (identity, lock) in locks.offsets {
            if let Some(bytes) = descriptors.offset(identity).filter(|_| happened) {
                let _ = self.0.unlock_offset(lock, bytes);
            }
        }
        if happened {
            // What leads somewhere came to be in this call or is open since before; so nothing is refused but for memory, which
            // leaves a descriptor as it was.
            for (real, status) in descriptors.changed_statuses() {
                if let Ok(Some(description)) = self.0.description(real) {
                    let _ = self.0.set_status(description, status);
                }
            }
            for step in descriptors.moves() {
                let _ = self.0.duplicate_to(step.from, step.to, step.on_exec);
            }
            for (number, _) in descriptors.changed().filter(|(_, own)| own.is_none()) {
                if !descriptors.has_taken(number) {
                    let _ = self.0.uninstall(number);
                }
            }
        }
        for real in descriptors.taken().filter(|real| !happened || !descriptors.is_own(*real)) {
            let _ = self.0.uninstall(real);
        }
    }
}
