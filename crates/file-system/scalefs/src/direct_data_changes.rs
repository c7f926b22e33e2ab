//! Changes of data under the decision of names. The mechanism for one file: `file::changes`.

use pages::PageNumber;
use percpu::{Core, OutOfMemory};
use posix_calls::{AnswerOf, DataChanges, FileChanges, ReservedPages};
use sync::mutant::planted;

use crate::description::DescriptionRef;
use crate::direct::OperationError;
use crate::direct_changes::PreparedChanges;
use crate::direct_data::InProcess;
use crate::file::{FileRoom, PageRoom, Wanted};
use crate::host::Host;
use crate::instance::ScaleFs;
use crate::node::Node;
use crate::pipe::LockedSides;

/// Both ends of a pipe, which nobody else uses.
pub struct PipeLock<'v> {
    sides: LockedSides<'v>,
    // Dropped after the locks.
    _note: PipeNote<'v>,
}

/// What the core notes for its heir while it has a pipe locked.
struct PipeNote<'v> {
    fs: &'v ScaleFs,
    core: &'v Core<'v>,
    pipe: u64,
}

impl Drop for PipeNote<'_> {
    fn drop(&mut self) {
        self.fs.locked_pipes(self.core).forget_one(self.core, self.pipe);
    }
}

impl<H: Host> DataChanges for InProcess<'_, H> {
    type FileRoom<'v>
        = FileRoom<'v>
    where
        Self: 'v;
    type PageRoom<'v>
        = PageRoom<'v>
    where
        Self: 'v;

    fn pipe_room(&self, pipe: Node<'_>, at_most: usize) -> AnswerOf<usize, Self> {
        Ok(pipe.at.pipe().room(at_most))
    }

    type PipeLock<'v>
        = PipeLock<'v>
    where
        Self: 'v;

    fn pipe_place(&self, pipe: Node<'_>) -> u64 {
        pipe.at.to_bits()
    }

    fn lock_pipe<'v>(&'v self, pipe: Node<'v>, put_bytes: usize) -> Result<PipeLock<'v>, OperationError> {
        let no_space = |OutOfMemory| OperationError::NoSpace;
        let core: &'v Core<'v> = self.core();
        self.working_on(&[pipe.at]);
        let bits = pipe.at.to_bits();
        // In a list of its own: what the commit notes besides is forgotten before the pipe is unlocked.
        if !planted("scalefs: a pipe that a commit has locked is not noted") {
            self.fs.locked_pipes(core).add_more(core, core::iter::once(bits)).map_err(no_space)?;
        }
        let _note = PipeNote { fs: self.fs, core, pipe: bits };
        let sides = pipe.at.pipe().lock(self.fs, core, put_bytes, self.host).map_err(no_space)?;
        Ok(PipeLock { sides, _note })
    }

    fn finish_pipe(&self, lock: PipeLock<'_>, taken_bytes: usize, put: &[u8]) -> AnswerOf<(), Self> {
        lock.sides.take_and_put(self.fs, self.core(), taken_bytes, put);
        Ok(())
    }

    fn identity(&self, description: DescriptionRef<'_>) -> u64 {
        description.address()
    }

    fn reserve_page(&self) -> AnswerOf<Option<u64>, Self> {
        Ok(self.fs.pages().allocate(self.core()).ok().map(|page| page.get().into()))
    }

    #[allow(unsafe_code)]
    fn give_page_back(&self, page: u64) -> AnswerOf<(), Self> {
        // SAFETY: it comes from `reserve_page`, and no slot has got it, as the caller promises by giving it back.
        unsafe { self.fs.pages().free(self.core(), PageNumber::new(page as u32)) };
        Ok(())
    }

    fn prepare_data<'p, 'v>(
        &'v self,
        prepared: &mut PreparedChanges<'p, 'v, H>,
        changes: &'p [FileChanges<'p, Node<'v>>],
        reserved: &ReservedPages<'_>,
        (files, pages): (&'p mut [FileRoom<'v>], &'p mut [PageRoom<'v>]),
    ) -> Result<(), OperationError>
    where
        'v: 'p,
    {
        assert!(files.len() >= changes.len(), "there is room for each file");
        let no_space = |OutOfMemory| OperationError::NoSpace;
        let nodes = changes.iter().map(|change| change.file.at.to_bits());
        self.fs.noted(self.core()).add_more(self.core(), nodes).map_err(no_space)?;
        let (files, pages) = prepared.attach(files, pages);
        // All locks of one kind before the first of the next, each kind by address: so no two wait for each other.
        let by_address = || {
            let mut last = 0;
            core::iter::from_fn(move || {
                let behind = |(_, change): &(usize, &FileChanges<'_, Node<'_>>)| change.file.at.to_bits() > last;
                let next = changes.iter().enumerate().filter(behind);
                let (index, change) = next.min_by_key(|(_, change)| change.file.at.to_bits())?;
                last = change.file.at.to_bits();
                Some((index, change))
            })
        };
        for (place, (_, change)) in files.iter_mut().zip(by_address()) {
            place.lock_appends(self.access(), change.file.at);
        }
        let mut from = 0;
        for (place, (_, change)) in files.iter_mut().zip(by_address()) {
            place.lock(self.access(), change.file.at, Wanted::of(change), &mut pages[from..]).map_err(no_space)?;
            from += place.page_count();
        }
        from = 0;
        for (place, (_, change)) in files.iter_mut().zip(by_address()) {
            let end = from + place.page_count();
            place.mark_pages(self.access(), Wanted::of(change), &mut pages[from..end], reserved).map_err(no_space)?;
            from = end;
        }
        for (place, (_, change)) in files.iter_mut().zip(by_address()) {
            place.mark_size(self.access(), Wanted::of(change));
        }
        Ok(())
    }
}
