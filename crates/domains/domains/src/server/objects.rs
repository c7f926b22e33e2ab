//! Objects: attributes, who keeps them, data.

use messages::DomainNumber;
use posix_calls::data::MAX_FILE_BYTES;
use posix_calls::{Attributes, Fields, Kind, Need, PermissionChange, Permissions, PipeEnd, Space, TimesRight};
use sync::mutant::planted;

use super::PAGE_BYTES;
use super::file::File;
use super::object::{Body, Directory, Object};
use super::{Served, Server};
use crate::identity::ObjectNumber;
use crate::wire::{Bytes, Caller, NoticeKind, Refusal, Reply};

/// Bytes of a write that are kept until the rest has come, at most.
pub(crate) const STAGED_BYTES: usize = 1 << 20;

impl Server {
    /// An object as it is now.
    pub(super) fn object(&mut self, number: ObjectNumber) -> Result<&mut Object, Refusal> {
        self.settle_object(number);
        self.objects.get_mut(&number).ok_or(Refusal::Stale)
    }

    pub(super) fn file(&mut self, number: ObjectNumber) -> Result<&mut File, Refusal> {
        match &mut self.object(number)?.body {
            Body::File(file) => Ok(file),
            _ => Err(Refusal::Garbled),
        }
    }

    pub(super) fn attributes(&mut self, number: ObjectNumber, fields: u32) -> Served {
        self.settle_closing(number);
        let object = self.object(number)?;
        let fields = Fields::from_bits_truncate(fields);
        let Permissions { mode, user, group } = object.permissions;
        let mut attributes = Attributes::identity(number.inode(), object.body.kind());
        if fields.contains(Fields::PERMISSIONS) {
            attributes = Attributes { mode, user, group, accessed_ns: object.accessed_ns, ..attributes };
        }
        if fields.contains(Fields::LINK_COUNT) {
            attributes.link_count = if object.body.kind() == Kind::Pipe { 1 } else { object.links };
        }
        if fields.contains(Fields::SIZE) {
            attributes.size_bytes = match &object.body {
                Body::File(file) => file.size_bytes,
                Body::Symlink(target) => target.len() as u64,
                Body::Directory(_) | Body::Pipe(_) | Body::Outside(..) => 0,
            };
        }
        if fields.contains(Fields::TIMES) {
            let (modified_ns, changed_ns) = (object.modified_ns, object.changed_ns);
            attributes = Attributes { modified_ns, changed_ns, ..attributes };
        }
        Ok(Reply::Attributes { attributes })
    }

    pub(super) fn permissions(&mut self, from: DomainNumber, number: ObjectNumber, keeps: bool) -> Served {
        let own = self.own;
        let object = self.object(number)?;
        // Files change theirs when they are written: not worth to be kept.
        let may_keep = keeps && from != own && object.body.kind() == Kind::Directory;
        if may_keep {
            object.readers.add(from);
        }
        Ok(Reply::Permissions { permissions: object.permissions, may_keep })
    }

    pub(super) fn change_permissions(
        &mut self,
        from: DomainNumber,
        number: ObjectNumber,
        change: PermissionChange,
        Caller(credentials): &Caller,
    ) -> Served {
        let now_ns = self.now_ns();
        let object = self.object(number)?;
        match change.of(credentials, object.body.kind(), object.permissions) {
            Err(errno) => return Ok(Reply::Failed { errno }),
            Ok(permissions) => object.permissions = permissions,
        }
        object.changed_ns = now_ns;
        self.notify_readers_of_directory(number, from);
        Ok(Reply::Done {})
    }

    pub(super) fn set_times(
        &mut self,
        number: ObjectNumber,
        right: TimesRight,
        (accessed, modified): (Option<i64>, Option<i64>),
        Caller(credentials): &Caller,
    ) -> Served {
        let now_ns = self.now_ns();
        let object = self.object(number)?;
        if let Err(errno) = right.check(credentials, object.permissions) {
            return Ok(Reply::Failed { errno });
        }
        object.accessed_ns = accessed.unwrap_or(object.accessed_ns);
        object.modified_ns = modified.unwrap_or(object.modified_ns);
        object.changed_ns = now_ns;
        Ok(Reply::Done {})
    }

    pub(super) fn link_target(&mut self, number: ObjectNumber) -> Served {
        match &self.object(number)?.body {
            Body::Symlink(target) => Ok(Reply::Bytes { bytes: Bytes(target.clone()) }),
            _ => Err(Refusal::Garbled),
        }
    }

    pub(super) fn device(&mut self, number: ObjectNumber) -> Served {
        match self.object(number)?.body {
            Body::Outside(_, device) => Ok(Reply::Number { number: device }),
            _ => Err(Refusal::Garbled),
        }
    }

    pub(super) fn state(&mut self, from: DomainNumber, number: ObjectNumber, keeps: bool) -> Served {
        self.settle_closing(number);
        let own = self.own;
        let is_closing = self.shards.get(&number).is_some_and(|shard| shard.closing.is_some());
        let object = self.object(number)?;
        let Directory { parent, moves, is_split } = *object.directory().ok_or(Refusal::Garbled)?;
        let is_removed = object.links == 0;
        let may_keep = keeps && from != own && !is_removed && !is_closing && object.pending.is_empty();
        if may_keep {
            object.readers.add(from);
        }
        Ok(Reply::State { parent, moves, is_removed, is_split, may_keep })
    }

    /// Lets those know who keep something of a directory, but the one who changes it and knows.
    pub(super) fn notify_readers_of_directory(&mut self, directory: ObjectNumber, changer: DomainNumber) {
        if planted("domains: who keeps a directory hears of no change") {
            return;
        }
        let Some(object) = self.objects.get_mut(&directory) else { return };
        for reader in object.readers.take().filter(|reader| *reader != changer) {
            self.outgoing.notices.push((reader, NoticeKind::Directory { directory }));
        }
    }

    pub(super) fn retain(&mut self, number: ObjectNumber, need: Option<(u32, Caller)>) -> Served {
        let object = self.object(number)?;
        if let Some((bits, Caller(credentials))) = need
            && let Err(errno) = Need::from_bits(bits).check(&credentials, object.body.kind(), object.permissions)
        {
            return Ok(Reply::Failed { errno });
        }
        object.references += 1;
        Ok(Reply::Done {})
    }

    pub(super) fn release(&mut self, number: ObjectNumber, end: Option<PipeEnd>) -> Served {
        if number == ObjectNumber::ROOT {
            return Ok(Reply::Done {});
        }
        if let Some(end) = end {
            self.close_end(number, end)?;
        }
        let object = self.object(number)?;
        object.references = object.references.saturating_sub(1);
        self.forget_unused(number, true);
        Ok(Reply::Done {})
    }

    pub(super) fn read(&mut self, number: ObjectNumber, offset: u64, length: u32) -> Served {
        let bytes = self.file(number)?.read(offset, u64::from(length).min(STAGED_BYTES as u64));
        Ok(Reply::Bytes { bytes: Bytes(bytes) })
    }

    /// Bytes of a write that has come whole; nothing as long as more is to come.
    pub(super) fn stage(
        &mut self,
        key: (DomainNumber, ObjectNumber),
        bytes: Vec<u8>,
        more: bool,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        let staged = self.staged.get(&key).map_or(0, Vec::len);
        if staged + bytes.len() > STAGED_BYTES {
            self.staged.remove(&key);
            return Err(Refusal::Garbled);
        }
        if more {
            self.staged.entry(key).or_default().extend_from_slice(&bytes);
            return Ok(None);
        }
        Ok(Some(match self.staged.remove(&key) {
            Some(mut first) => {
                first.extend_from_slice(&bytes);
                first
            }
            None => bytes,
        }))
    }

    pub(super) fn write(
        &mut self,
        from: DomainNumber,
        (number, offset): (ObjectNumber, Option<u64>),
        (bytes, more): (Vec<u8>, bool),
        caller: &Caller,
    ) -> Served {
        match self.stage((from, number), bytes, more)? {
            Some(bytes) => self.write_by(number, offset, &bytes, caller),
            None => Ok(Reply::Done {}),
        }
    }

    /// Writes a file at an offset, or at its end. Set-id bits go with what a user writes.
    pub(super) fn write_by(
        &mut self,
        number: ObjectNumber,
        offset: Option<u64>,
        bytes: &[u8],
        caller: &Caller,
    ) -> Served {
        let now_ns = self.now_ns();
        let mut pages = self.pages;
        let file = self.file(number)?;
        let offset = offset.unwrap_or(file.size_bytes);
        if offset >= MAX_FILE_BYTES {
            return Ok(Reply::Written { offset, length: 0 });
        }
        let length = file.write(offset, bytes, &mut pages);
        self.pages = pages;
        self.drop_set_ids(number, caller)?;
        if length > 0 {
            self.note_change_of_data(number, now_ns);
        }
        Ok(Reply::Written { offset, length })
    }

    /// Set-id bits go with what a user writes.
    pub(super) fn drop_set_ids(&mut self, number: ObjectNumber, Caller(credentials): &Caller) -> Result<(), Refusal> {
        let now_ns = self.now_ns();
        let object = self.object(number)?;
        if !credentials.is_superuser() && !planted("domains: who writes leaves set-id bits") {
            let old = object.permissions;
            let new = PermissionChange::DropSetIds.of(credentials, Kind::Regular, old).unwrap_or(old);
            if new != old {
                (object.permissions, object.changed_ns) = (new, now_ns);
            }
        }
        Ok(())
    }

    pub(super) fn note_change_of_data(&mut self, number: ObjectNumber, now_ns: i64) {
        if let Some(object) = self.objects.get_mut(&number) {
            (object.modified_ns, object.changed_ns) = (now_ns, now_ns);
        }
    }

    pub(super) fn resize(&mut self, number: ObjectNumber, size_bytes: u64) -> Served {
        let now_ns = self.now_ns();
        let mut pages = self.pages;
        self.file(number)?.resize(size_bytes, &mut pages);
        self.pages = pages;
        self.drop_copies(number, size_bytes);
        self.note_change_of_data(number, now_ns);
        Ok(Reply::Done {})
    }

    pub(super) fn extent(&mut self, number: ObjectNumber, offset: u64) -> Served {
        let (kind, end) = self.file(number)?.extent(offset);
        Ok(Reply::Extent { kind, end })
    }

    pub(super) fn space(&self) -> Reply {
        let inodes = (self.limits.inodes, self.limits.inodes - self.inodes);
        Reply::Space { pages: (self.limits.pages, self.limits.pages - self.pages.used), inodes }
    }
}

/// Space of several owners together.
pub(crate) fn sum(spaces: impl Iterator<Item = ((u64, u64), (u64, u64))>) -> Space {
    let mut sum = Space { block_bytes: PAGE_BYTES, blocks: 0, free_blocks: 0, inodes: 0, free_inodes: 0 };
    let (mut used_pages, mut used_inodes) = (0, 0);
    for ((pages, free_pages), (inodes, free_inodes)) in spaces {
        sum.blocks = sum.blocks.saturating_add(pages);
        sum.inodes = sum.inodes.saturating_add(inodes);
        used_pages += pages - free_pages;
        used_inodes += inodes - free_inodes;
    }
    sum.free_blocks = sum.blocks - used_pages;
    sum.free_inodes = sum.inodes - used_inodes;
    sum
}
