//! What `stat` says of an object, and which parts of it were asked for.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
}

impl Kind {
    const ALL: [(Kind, &'static str); 7] = [
        (Kind::File, "file"),
        (Kind::Directory, "directory"),
        (Kind::Symlink, "symlink"),
        (Kind::Fifo, "fifo"),
        (Kind::Socket, "socket"),
        (Kind::CharacterDevice, "character-device"),
        (Kind::BlockDevice, "block-device"),
    ];

    pub(crate) fn of(file_type: std::fs::FileType) -> Kind {
        match () {
            () if file_type.is_dir() => Kind::Directory,
            () if file_type.is_symlink() => Kind::Symlink,
            () if file_type.is_fifo() => Kind::Fifo,
            () if file_type.is_socket() => Kind::Socket,
            () if file_type.is_char_device() => Kind::CharacterDevice,
            () if file_type.is_block_device() => Kind::BlockDevice,
            () => Kind::File,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, _)| *kind == self).map_or("file", |(_, name)| name)
    }

    pub(crate) fn of_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().find(|(_, own)| *own == name).map(|(kind, _)| *kind)
    }
}

/// A time in seconds and nanoseconds since 1970.
pub(crate) type Time = (i64, u32);

/// Attributes of an object, without the time of its last access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attributes {
    pub(crate) kind: Kind,
    /// The twelve bits of rights, set-id and sticky.
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) links: u64,
    pub(crate) size_bytes: u64,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    /// Which device it is, of a device.
    pub(crate) special: u64,
}

impl Attributes {
    pub(crate) fn of(metadata: &Metadata) -> Attributes {
        Attributes {
            kind: Kind::of(metadata.file_type()),
            mode: metadata.mode() & 0o7777,
            user: metadata.uid(),
            group: metadata.gid(),
            device: metadata.dev(),
            inode: metadata.ino(),
            links: metadata.nlink(),
            size_bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec() as u32),
            changed: (metadata.ctime(), metadata.ctime_nsec() as u32),
            special: metadata.rdev(),
        }
    }

    /// Which object of the machine it is.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether one who walked through it, or opened it, would have met the same.
    pub(crate) fn has_same_rights(&self, other: &Attributes) -> bool {
        (self.kind, self.mode, self.user, self.group) == (other.kind, other.mode, other.user, other.group)
    }

    /// Whether it is the same object with the same data: its time of change moves with each change of either.
    pub(crate) fn is_same_version(&self, other: &Attributes) -> bool {
        self.identity() == other.identity()
            && (self.kind, self.size_bytes, self.modified, self.changed)
                == (other.kind, other.size_bytes, other.modified, other.changed)
    }

    /// Whether a name leads to the same object with the same data. Of an object with several names the time of change says nothing: it
    /// moves when another name comes or goes. Of an empty file no time does: whoever has touched it has left nothing in it.
    pub(crate) fn is_same_under_name(&self, other: &Attributes) -> bool {
        let has_one_name = self.links == 1 && other.links == 1;
        let is_same_object =
            self.identity() == other.identity() && (self.kind, self.size_bytes) == (other.kind, other.size_bytes);
        let is_empty = self.kind == Kind::File && self.size_bytes == 0;
        is_same_object
            && (is_empty || self.modified == other.modified && (!has_one_name || self.changed == other.changed))
    }

    /// Whether `stat` says the same. Which inode holds a file is not asked; of a directory, its size is the file system's affair.
    pub(crate) fn is_same_to_stat(&self, other: &Attributes) -> bool {
        let size = |attributes: &Attributes| (attributes.kind != Kind::Directory).then_some(attributes.size_bytes);
        self.has_same_rights(other)
            && size(self) == size(other)
            && (self.links, self.modified, self.changed, self.special)
                == (other.links, other.modified, other.changed, other.special)
    }

    /// Whether a copy of it keeps the same, besides the bytes. How many names it has, and when it was changed, a copy does not keep.
    pub(crate) fn is_same_to_copy(&self, other: &Attributes) -> bool {
        self.has_same_rights(other)
            && (self.size_bytes, self.modified, self.special) == (other.size_bytes, other.modified, other.special)
    }

    /// As words of a line.
    pub(crate) fn words(&self) -> String {
        format!(
            "{} {:o} {} {} {} {} {} {} {}.{:09} {}.{:09} {}",
            self.kind.name(),
            self.mode,
            self.user,
            self.group,
            self.device,
            self.inode,
            self.links,
            self.size_bytes,
            self.modified.0,
            self.modified.1,
            self.changed.0,
            self.changed.1,
            self.special,
        )
    }

    /// From words of a line.
    pub(crate) fn of_words<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Attributes> {
        let kind = Kind::of_name(words.next()?)?;
        let mode = u32::from_str_radix(words.next()?, 8).ok().filter(|mode| *mode <= 0o7777)?;
        Some(Attributes {
            kind,
            mode,
            user: words.next()?.parse().ok()?,
            group: words.next()?.parse().ok()?,
            device: words.next()?.parse().ok()?,
            inode: words.next()?.parse().ok()?,
            links: words.next()?.parse().ok()?,
            size_bytes: words.next()?.parse().ok()?,
            modified: time_of(words.next()?)?,
            changed: time_of(words.next()?)?,
            special: words.next()?.parse().ok()?,
        })
    }
}

fn time_of(word: &str) -> Option<Time> {
    let (seconds, nanoseconds) = word.split_once('.')?;
    Some((seconds.parse().ok()?, nanoseconds.parse().ok().filter(|part| *part < 1_000_000_000)?))
}
