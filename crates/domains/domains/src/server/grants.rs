//! Pages of files that other domains may read where they lie, and what these have written.
//!
//! A file's pages lie in its owner's own memory. When another domain opens it, copies of its pages are put into the owner's
//! part of shared memory, unless they are there; a page that is written loses its copy. A copy stays as it is until all who
//! were informed of it have said that they need it no more.

use std::rc::Rc;

use messages::DomainNumber;
use posix_calls::data::MAX_FILE_BYTES;
use sync::mutant::planted;

use super::PAGE_BYTES;
use super::{Served, Server};
use crate::identity::ObjectNumber;
use crate::shared_pages::{Part, SharedPage, runs};
use crate::wire::{Bytes, Caller, Content, GrantedPage, Refusal, Released, Reply};

/// Pages that one answer tells of, at most.
pub(crate) const PAGES_PER_GRANT: u64 = 64;

impl Server {
    /// From now on data come and go through pages of this part.
    pub(crate) fn use_part(&mut self, part: Rc<Part>) {
        self.part = Some(part);
    }

    /// The asker opens a file, which it keeps if that is wanted and it may: it reads what there is from now on.
    pub(super) fn acquire(
        &mut self,
        from: DomainNumber,
        number: ObjectNumber,
        keep: Option<Option<(u32, Caller)>>,
        direct: bool,
    ) -> Served {
        if let Some(need) = keep {
            match self.retain(number, need)? {
                Reply::Done {} => {}
                refused => return Ok(refused),
            }
        }
        self.file(number)?;
        // It reads no page any more that it was informed of before.
        self.grants.remove(&(number, from));
        self.grant(from, number, 0, direct)
    }

    /// Tells of pages from `first` on, which the asker may read from now on.
    pub(super) fn grant(&mut self, from: DomainNumber, number: ObjectNumber, first: u64, direct: bool) -> Served {
        let part = self.part.clone().filter(|_| direct && from != self.own);
        let file = self.file(number)?;
        let size_bytes = file.size_bytes;
        let wanted = size_bytes.div_ceil(PAGE_BYTES).min(first.saturating_add(PAGES_PER_GRANT));
        let Some(part) = part else { return Ok(Reply::Granted { size_bytes, until: first, pages: Vec::new() }) };
        let (mut until, mut shared) = (first, Vec::new());
        for index in first..wanted {
            match file.share(index, &part) {
                Ok(page) => shared.extend(page.map(|page| (index, page))),
                Err(()) => break,
            }
            until = index + 1;
        }
        if !shared.is_empty() && !part.release() {
            (until, shared) = (first, Vec::new());
        }
        let of = |(index, page): &(u64, Rc<crate::shared_pages::OwnPage>)| GrantedPage {
            index: *index,
            number: page.number,
            version: page.version,
        };
        let pages = shared.iter().map(of).collect();
        if !planted("domains: a page that another domain reads is used again") {
            self.grants.entry((number, from)).or_default().extend(shared.into_iter().map(|(_, page)| page));
        }
        Ok(Reply::Granted { size_bytes, until: until.max(first), pages })
    }

    /// Another domain has ended: what was lent to it is read by no one, and what it was writing has no end.
    pub(super) fn forget_data_of(&mut self, ended: DomainNumber) {
        if !planted("domains: pages lent to a domain are kept after its end") {
            self.grants.retain(|(_, holder), _| *holder != ended);
        }
        self.staged.retain(|(writer, _), _| *writer != ended);
    }

    /// The asker needs no page of a file any more.
    pub(super) fn end_grant(&mut self, from: DomainNumber, number: ObjectNumber) -> Served {
        self.grants.remove(&(number, from));
        Ok(Reply::Done {})
    }

    /// Another domain lets all know what it has written to a file: lines of pages, up to `end`. Set-id bits go with what a user
    /// writes.
    pub(super) fn take_released(
        &mut self,
        from: DomainNumber,
        number: ObjectNumber,
        pages: Vec<Released>,
        (end, modified_ns): (u64, i64),
        caller: &Caller,
    ) -> Served {
        let mut has_space = true;
        for Released { index, lines, content } in pages {
            let bytes = self.content(from, lines, content)?;
            let mut used = self.pages;
            let file = self.file(number)?;
            let size_bytes = file.size_bytes.max(end).min(MAX_FILE_BYTES);
            let page_start = index.checked_mul(PAGE_BYTES).ok_or(Refusal::Garbled)?;
            for (start, length) in runs(lines) {
                let at = page_start + start as u64;
                // What lies at the end or later is nothing that was written.
                let length = size_bytes.saturating_sub(at).min(length as u64) as usize;
                let written = file.write(at, &bytes[start..start + length], &mut used);
                has_space &= written == length as u64;
            }
            self.pages = used;
        }
        self.drop_set_ids(number, caller)?;
        let object = self.object(number)?;
        object.modified_ns = object.modified_ns.max(modified_ns);
        object.changed_ns = object.changed_ns.max(modified_ns);
        if has_space { Ok(Reply::Done {}) } else { Err(Refusal::NoSpace) }
    }

    /// A page of which these lines are as another domain has written them.
    fn content(&self, from: DomainNumber, lines: u64, content: Content) -> Result<SentPage, Refusal> {
        let mut page = Box::new([0; PAGE_BYTES as usize]);
        match content {
            Content::Bytes { bytes: Bytes(bytes) } => {
                let mut rest = &bytes[..];
                for (start, length) in runs(lines) {
                    let (run, behind) = rest.split_at_checked(length).ok_or(Refusal::Garbled)?;
                    page[start..start + length].copy_from_slice(run);
                    rest = behind;
                }
                if rest.is_empty() { Ok(page) } else { Err(Refusal::Garbled) }
            }
            Content::Shared { number } => {
                let part = self.part.as_ref().filter(|_| from != self.own).ok_or(Refusal::Unreadable)?;
                let place = SharedPage { domain: from, number };
                let is_acquired = planted("domains: what another domain has written is read from an old copy")
                    || part.acquire(place, lines);
                let is_read = is_acquired
                    && runs(lines).all(|(start, length)| part.read(place, start, &mut page[start..start + length]));
                if is_read { Ok(page) } else { Err(Refusal::Unreadable) }
            }
        }
    }
}

/// A page that another domain has written.
type SentPage = Box<[u8; PAGE_BYTES as usize]>;
