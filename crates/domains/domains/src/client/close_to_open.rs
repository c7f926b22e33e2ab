//! Level `close-to-open`: files of other domains are read and written here, from when they are opened until they are closed.
//!
//! ```text
//! open         Acquire ─► the owner keeps the file, says how long it is and where its pages lie
//! read, write  no message: pages lie in shared memory, what is written lies here
//! close        pages that were written into the own part, written back ─► LetKnow ─► the owner copies these lines
//! ```
//! Whatever goes through the owner (attributes, lengths, appending, descriptions that domains share) lets it know first what was
//! written here, and looks again afterwards. So within a domain all is as POSIX has it.

use messages::{Class, Transport};
use posix_calls::data::MAX_FILE_BYTES;
use posix_calls::{Credentials, Kind, Written};
use sync::mutant::planted;

use super::copies::{Copy, Found, OwnCopy, Page, Told};
use super::domain::Domain;
use crate::identity::{ObjectNumber, Target};
use crate::level::Level;
use crate::server::PAGE_BYTES;
use crate::shared_pages::{Lines, OwnPage, SharedPage, runs};
use crate::wire::{Bytes, Caller, Content, GrantedPage, Refusal, Released, Reply, Request};

/// With this many pages written, others are let know before a close: memory has an end.
const MOST_WRITTEN_PAGES: u64 = 1024;
/// Pages in shared memory that one message tells of.
const PAGES_PER_RELEASE: usize = 64;

/// The parts of bytes of a file that lie in one page each: the page, where they start there, and which of the bytes they are.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % PAGE_BYTES) as usize;
        let bytes = done..(done + PAGE_BYTES as usize - start).min(length);
        done = bytes.end;
        (!bytes.is_empty()).then_some((at / PAGE_BYTES, start, bytes))
    })
}

fn empty_page() -> Page {
    Box::new([0; PAGE_BYTES as usize])
}

impl<T: Transport> Domain<T> {
    /// Whether the domain keeps copies of what it opens of this object.
    pub(super) fn keeps_copies_of(&self, target: Target) -> bool {
        self.level.get() == Level::CloseToOpen && target.kind == Kind::Regular && target.number.home() != self.own()
    }

    /// Whether it has a copy of a file.
    pub(super) fn has_copy(&self, file: ObjectNumber) -> bool {
        self.copies.borrow().contains_key(&file)
    }

    /// The length of a file as the domain has it, if it has a copy.
    pub(super) fn copied_size(&self, file: ObjectNumber) -> Option<u64> {
        self.copies.borrow().get(&file).map(|copy| copy.size_bytes)
    }

    fn uses_part(&self) -> bool {
        self.techniques.get().direct && self.part.borrow().is_some()
    }

    /// Opens a file: lets others know what was written here, and looks what there is. With `keep` the owner keeps the file, if
    /// these permissions are there.
    pub(super) fn acquire(&self, file: ObjectNumber, keep: Option<Option<(u32, Caller)>>) -> Result<(), Reply> {
        self.asking_in_between(file, Vec::new(), keep).map(drop)
    }

    /// Opens a file that was made by this domain at another, where it is kept.
    pub(super) fn acquire_made(&self, file: ObjectNumber) {
        // Without a copy, data go through the owner.
        if self.acquire(file, None).is_ok()
            && let Some(copy) = self.copies.borrow_mut().get_mut(&file)
        {
            copy.handles += 1;
        }
    }

    /// Asks a file's owner, who knows by then what was written here; afterwards the domain looks again at what there
    /// is, if it has a copy. One round trip.
    pub(super) fn ask_about(&self, file: ObjectNumber, requests: Vec<Request>) -> Result<Vec<Reply>, Reply> {
        if self.has_copy(file) {
            return self.asking_in_between(file, requests, None);
        }
        let questions = requests.into_iter().map(|request| (file.home(), request)).collect();
        Ok(self.ask_all(Class::Requests, questions))
    }

    fn asking_in_between(
        &self,
        file: ObjectNumber,
        requests: Vec<Request>,
        keep: Option<Option<(u32, Caller)>>,
    ) -> Result<Vec<Reply>, Reply> {
        let keeps = keep.is_some();
        let mut all = requests;
        all.push(Request::Acquire { file, keep, direct: self.uses_part() });
        let (released, mut answers) = self.let_know_and_ask(file, all);
        let granted = answers.pop();
        match granted {
            Some(Reply::Granted { size_bytes, until, pages }) => {
                // Also with an error: the owner uses the pages again of which it gave notice before.
                let is_kept = keeps && released.is_ok();
                let mut copies = self.copies.borrow_mut();
                let copy = copies.entry(file).or_default();
                copy.handles += u64::from(is_kept);
                if copy.handles < 2 || !planted("domains: what is opened again is read as it was") {
                    copy.begin(size_bytes);
                    note_told(copy, 0, until, &pages);
                }
                drop(copies);
                if keeps && !is_kept {
                    self.post(file.home(), Request::Release { object: file, end: None });
                }
                released.map(|()| answers)
            }
            // Of two errors, the one that says that data are lost.
            Some(reply) => released.and(Err(reply)),
            None => Err(Reply::Refused { why: Refusal::Garbled }),
        }
    }

    /// Lets others know what was written to a file here (POSIX `close`, `fsync`).
    pub(super) fn release_written(&self, file: ObjectNumber) -> Result<(), Refusal> {
        if planted("domains: what is closed is not written back") {
            return Ok(());
        }
        let (known, _) = self.let_know_and_ask(file, Vec::new());
        if known.is_err() {
            // What others know is still there.
            let _ = self.acquire(file, None);
        }
        known.map_err(why)
    }

    /// Lets a file's owner know what was written here, and then asks it: what came of that, and what it answers.
    fn let_know_and_ask(&self, file: ObjectNumber, mut requests: Vec<Request>) -> (Result<(), Reply>, Vec<Reply>) {
        let owner = file.home();
        let direct = self.uses_part() && !self.unreadable_at.borrow().contains(&owner);
        let (mut known, mut answers) = self.try_to_let_know(file, direct, requests.clone());
        if known.contains(&Reply::Refused { why: Refusal::Unreadable }) {
            self.unreadable_at.borrow_mut().insert(owner);
            if let (Some(Reply::Granted { .. }), Some(Request::Acquire { keep, .. })) =
                (answers.last(), requests.last_mut())
            {
                // It keeps the file already. What else is asked changes nothing if it is asked twice.
                *keep = None;
            }
            (known, answers) = self.try_to_let_know(file, false, requests);
        }
        (self.note_answers(file, &known), answers)
    }

    fn try_to_let_know(&self, file: ObjectNumber, direct: bool, requests: Vec<Request>) -> (Vec<Reply>, Vec<Reply>) {
        let (mut all, pages) = self.released(file, direct);
        let first = all.len();
        all.extend(requests);
        if all.is_empty() {
            return Default::default();
        }
        let questions = all.into_iter().map(|request| (file.home(), request)).collect();
        let mut known = self.ask_all(Class::Requests, questions);
        drop(pages);
        let answers = known.split_off(first.min(known.len()));
        (known, answers)
    }

    /// What came of requests that let others know. What found no space is lost, and the domain has to look again.
    fn note_answers(&self, file: ObjectNumber, replies: &[Reply]) -> Result<(), Reply> {
        let refused = replies.iter().find(|reply| **reply != Reply::Done {});
        if let Some(copy) = self.copies.borrow_mut().get_mut(&file) {
            copy.note_released();
            if refused.is_some() {
                copy.own.clear();
            }
        }
        refused.map_or(Ok(()), |reply| Err(reply.clone()))
    }

    /// Requests that let the owner know what was written to a file here, and the pages in which that lies, which stay until it has
    /// answered.
    fn released(&self, file: ObjectNumber, direct: bool) -> (Vec<Request>, Vec<OwnPage>) {
        let copies = self.copies.borrow();
        let Some(copy) = copies.get(&file).filter(|copy| copy.is_written()) else { return Default::default() };
        let part = self.part.borrow().clone().filter(|_| direct);
        let (mut shared, mut sent, mut pages) = (Vec::new(), Vec::new(), Vec::new());
        for (index, own) in copy.own.iter().filter(|(_, own)| own.written != 0) {
            let (index, lines) = (*index, own.written);
            match part.as_ref().and_then(|part| part.put(&own.bytes, lines)) {
                Some(page) => {
                    shared.push(Released { index, lines, content: Content::Shared { number: page.number } });
                    pages.push(page);
                }
                None => sent.push(Released { index, lines, content: in_message(own, lines) }),
            }
        }
        if let Some(part) = part.filter(|_| !pages.is_empty())
            && !part.release()
        {
            drop(pages);
            drop(copies);
            return self.released(file, false);
        }
        let caller = Caller(copy.writer.unwrap_or(Credentials::SUPERUSER));
        let request = |pages: Vec<Released>| Request::LetKnow {
            file,
            pages,
            end: copy.end,
            modified_ns: copy.modified_ns,
            caller,
        };
        let shared = shared.chunks(PAGES_PER_RELEASE).map(|pages| request(pages.to_vec()));
        let requests = shared.chain(sent.into_iter().map(|page| request(vec![page]))).collect();
        (requests, pages)
    }

    /// Something that has a file open lets it go.
    pub(super) fn let_copy_go(&self, file: ObjectNumber) {
        if !self.has_copy(file) {
            return;
        }
        // Who closes has heard of it; no one is left to hear.
        let _ = self.release_written(file);
        let mut copies = self.copies.borrow_mut();
        let Some(copy) = copies.get_mut(&file) else { return };
        copy.handles = copy.handles.saturating_sub(1);
        if copy.handles == 0 {
            copies.remove(&file);
            drop(copies);
            self.post(file.home(), Request::EndGrant { file });
        }
    }

    /// Reads a file of which there is a copy.
    pub(super) fn read_copy(&self, file: ObjectNumber, offset: u64, bytes: &mut [u8]) -> Result<usize, Refusal> {
        loop {
            let left = |size_bytes: u64| size_bytes.saturating_sub(offset).min(bytes.len() as u64) as usize;
            let length = left(self.copied_size(file).ok_or(Refusal::Stale)?);
            for (index, start, part) in parts(offset, length) {
                self.read_page(file, index, (start, &mut bytes[part]))?;
            }
            // The owner may have reported that the file has become shorter.
            if self.copied_size(file).is_some_and(|size_bytes| size_bytes >= offset + length as u64) || length == 0 {
                return Ok(length);
            }
        }
    }

    /// Reads a part of a page. If the owner tells that the file has become shorter, what lies after that is zero.
    fn read_page(&self, file: ObjectNumber, index: u64, (start, into): (usize, &mut [u8])) -> Result<(), Refusal> {
        loop {
            let found = self.copies.borrow().get(&file).ok_or(Refusal::Stale)?.read(index, start, into);
            match found {
                Found::Read => return Ok(()),
                Found::Shared { number, version } => {
                    if self.read_shared_page(SharedPage { domain: file.home(), number }, version, (start, into)) {
                        return Ok(());
                    }
                    self.fetch(file, index)?;
                }
                Found::Unknown if self.uses_part() => self.learn_pages(file, index)?,
                Found::Unknown => self.fetch(file, index)?,
            }
        }
    }

    /// Reads a page where it lies; what the domain's caches hold of it is forgotten first, unless it is of this version.
    fn read_shared_page(&self, page: SharedPage, version: u64, (start, into): (usize, &mut [u8])) -> bool {
        let Some(part) = self.part.borrow().clone() else { return false };
        let mut seen = self.seen_versions.borrow_mut();
        if seen.get(&page) != Some(&version) {
            if !planted("domains: data are read from an old copy") && !part.acquire(page, Lines::MAX) {
                return false;
            }
            seen.insert(page, version);
        }
        part.read(page, start, into)
    }

    /// Asks where pages from this one on lie.
    fn learn_pages(&self, file: ObjectNumber, first: u64) -> Result<(), Refusal> {
        match self.ask(file.home(), Request::Grant { file, first }) {
            Reply::Granted { size_bytes, until, pages } => {
                if let Some(copy) = self.copies.borrow_mut().get_mut(&file) {
                    copy.shorten(size_bytes);
                    note_told(copy, first, until, &pages);
                }
                // The part of the owner may be full.
                if until <= first { self.fetch(file, first) } else { Ok(()) }
            }
            Reply::Refused { why } => Err(why),
            _ => Err(Refusal::Garbled),
        }
    }

    /// Has a page sent.
    fn fetch(&self, file: ObjectNumber, index: u64) -> Result<(), Refusal> {
        let offset = index * PAGE_BYTES;
        match self.ask(file.home(), Request::Read { file, offset, length: PAGE_BYTES as u32 }) {
            Reply::Bytes { bytes: Bytes(read) } => {
                let mut page = empty_page();
                let length = read.len().min(page.len());
                page[..length].copy_from_slice(&read[..length]);
                if let Some(copy) = self.copies.borrow_mut().get_mut(&file) {
                    if length < page.len() {
                        copy.shorten(offset + length as u64);
                    }
                    if length > 0 {
                        copy.own.entry(index).or_insert(OwnCopy { bytes: page, written: 0 });
                    }
                }
                Ok(())
            }
            Reply::Refused { why } => Err(why),
            _ => Err(Refusal::Garbled),
        }
    }

    /// Writes a file of which there is a copy.
    pub(super) fn write_copy(
        &self,
        file: ObjectNumber,
        offset: u64,
        bytes: &[u8],
        credentials: &Credentials,
    ) -> Result<Written, Refusal> {
        let length = MAX_FILE_BYTES.saturating_sub(offset).min(bytes.len() as u64) as usize;
        for (index, start, part) in parts(offset, length) {
            if !self.copies.borrow().get(&file).ok_or(Refusal::Stale)?.own.contains_key(&index) {
                let mut page = empty_page();
                if part.len() < page.len() {
                    self.read_page_to_write(file, index, &mut page)?;
                }
                let own = OwnCopy { bytes: page, written: 0 };
                self.copies.borrow_mut().get_mut(&file).ok_or(Refusal::Stale)?.own.entry(index).or_insert(own);
            }
            let now_ns = self.clock_ns() as i64;
            let mut copies = self.copies.borrow_mut();
            let copy = copies.get_mut(&file).ok_or(Refusal::Stale)?;
            copy.write(index, start, &bytes[part]);
            copy.modified_ns = now_ns;
            if copy.writer.is_none_or(|writer| writer.is_superuser()) {
                copy.writer = Some(*credentials);
            }
            let is_full = copy.written_pages > MOST_WRITTEN_PAGES;
            drop(copies);
            if is_full {
                self.acquire(file, None).map_err(why)?;
            }
        }
        Ok(Written { offset, length })
    }

    /// A page of which a part is to be written: what lies at the file's end or later is zero.
    fn read_page_to_write(&self, file: ObjectNumber, index: u64, page: &mut Page) -> Result<(), Refusal> {
        let length = self.read_copy(file, index * PAGE_BYTES, &mut page[..])?;
        page[length..].fill(0);
        Ok(())
    }
}

/// Why an owner has done nothing.
pub(super) fn why(reply: Reply) -> Refusal {
    if let Reply::Refused { why } = reply { why } else { Refusal::Garbled }
}

/// The owner has reported where pages of these lie.
fn note_told(copy: &mut Copy, first: u64, until: u64, pages: &[GrantedPage]) {
    let last = copy.told_bytes.div_ceil(PAGE_BYTES).min(until);
    copy.told.extend((first..last).map(|index| (index, Told::Hole)));
    for GrantedPage { index, number, version } in pages.iter().filter(|page| (first..last).contains(&page.index)) {
        copy.told.insert(*index, Told::Shared { number: *number, version: *version });
    }
}

fn in_message(own: &OwnCopy, lines: Lines) -> Content {
    let bytes = runs(lines).flat_map(|(start, length)| own.bytes[start..start + length].iter().copied()).collect();
    Content::Bytes { bytes: Bytes(bytes) }
}
