//! The real tree: each place is found from the root, and no symbolic link is followed on the way.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::attributes::{Attributes, Kind};
use crate::place::Place;
use crate::question::{Answer, Listed, Question};
use crate::stops::planted;

/// The system takes no longer path at once.
const LONGEST_PATH_BYTES: usize = 4000;
/// How often a look is tried again that somebody's renames disturb.
const ATTEMPTS: usize = 64;

/// A tree below a directory; what is hidden is as if it were not there.
#[derive(Debug)]
pub(crate) struct Tree {
    root: OwnedFd,
    hidden: BTreeSet<Place>,
    /// A directory that is reached by itself, since something lies over it.
    covered: Option<(Place, OwnedFd)>,
}

/// What holds a change of attributes that a kernel's overlay keeps for itself.
pub(crate) fn is_of_overlay(name: &[u8]) -> bool {
    name.starts_with(b"trusted.overlay.") || name.starts_with(b"user.overlay.")
}

impl Tree {
    /// The tree below `root`.
    pub(crate) fn open(root: &Path, hidden: impl IntoIterator<Item = Place>) -> io::Result<Tree> {
        let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Tree { root, hidden: hidden.into_iter().collect(), covered: None })
    }

    /// The same tree, where something may lie over a directory: what is in that is found as before.
    pub(crate) fn below(self, covered: Option<(Place, OwnedFd)>) -> Tree {
        Tree { covered, ..self }
    }

    pub(crate) fn is_hidden(&self, place: &Place) -> bool {
        self.hidden.contains(place)
    }

    /// Opens what a place leads to; a symbolic link on the way is `ELOOP`, one at the end is opened itself with `PATH`.
    pub(crate) fn open_at(&self, place: &Place, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut rest = place.relative();
        let mut from: Option<OwnedFd> = None;
        if let Some((directory, covered)) = &self.covered
            && place.is_at_or_below(directory)
        {
            rest = &rest[directory.relative().len()..];
            rest = rest.strip_prefix(b"/").unwrap_or(rest);
            from = Some(covered.try_clone().map_err(|_| Errno::MFILE)?);
        }
        while rest.len() > LONGEST_PATH_BYTES {
            let cut = rest[..LONGEST_PATH_BYTES].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
            let next = self.open_below(from.as_ref(), &rest[..cut], OFlags::PATH | OFlags::DIRECTORY)?;
            from = Some(next);
            rest = &rest[cut + 1..];
        }
        self.open_below(from.as_ref(), rest, flags | OFlags::NOFOLLOW)
    }

    fn open_below(&self, from: Option<&OwnedFd>, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { &b"."[..] } else { path };
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        if planted("try-program: links in the way are followed") {
            resolve = ResolveFlags::empty();
        }
        let from = from.unwrap_or(&self.root);
        let mut opened = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            opened = openat2(from, &path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        opened
    }

    /// The directory that holds a place, to change names in.
    pub(crate) fn open_parent(&self, place: &Place) -> rustix::io::Result<OwnedFd> {
        let parent = place.parent().ok_or(Errno::BUSY)?;
        self.open_at(&parent, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// What is at a place; `None` if nothing is.
    pub(crate) fn attributes(&self, place: &Place) -> rustix::io::Result<Option<Attributes>> {
        if self.is_hidden(place) {
            return Ok(None);
        }
        match self.open_at(place, OFlags::PATH) {
            Ok(found) => Ok(Some(attributes_of(&File::from(found))?)),
            Err(error) if is_absence(error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Which names a directory holds, in order.
    pub(crate) fn listing(&self, place: &Place) -> rustix::io::Result<Vec<Listed>> {
        let directory = self.open_at(place, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut listed = listing_of(&directory)?;
        if !self.hidden.is_empty() {
            listed.retain(|(name, _)| !self.is_hidden(&place.join(name)));
        }
        Ok(listed)
    }

    /// The extended attributes of a place by name, without those that overlays keep.
    pub(crate) fn extended_names(&self, place: &Place) -> rustix::io::Result<Vec<Vec<u8>>> {
        let path = self.through_descriptor(place)?;
        let mut names = split_names(&grown(|buffer| rustix::fs::listxattr(&path.1, buffer))?);
        names.retain(|name| !is_of_overlay(name));
        names.sort();
        Ok(names)
    }

    /// The value of an extended attribute; `NODATA` if there is none.
    pub(crate) fn extended(&self, place: &Place, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
        if is_of_overlay(name) {
            return Err(Errno::NODATA);
        }
        let path = self.through_descriptor(place)?;
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        grown(|buffer| rustix::fs::getxattr(&path.1, &name, buffer))
    }

    /// A path that leads to a place's object and nowhere else: a descriptor that was opened for its path alone reads no attributes.
    fn through_descriptor(&self, place: &Place) -> rustix::io::Result<(OwnedFd, String)> {
        use std::os::fd::AsRawFd;
        let opened = self.open_at(place, OFlags::PATH)?;
        if attributes_of(&File::from(opened.try_clone().map_err(|_| Errno::MFILE)?))?.kind == Kind::Symlink {
            // The path below would lead to where the link leads.
            return Err(Errno::NODATA);
        }
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        Ok((opened, path))
    }

    /// Asks a question about a place.
    pub(crate) fn ask(&self, place: &Place, question: &Question) -> Answer {
        let answered = match question {
            Question::Name | Question::Attributes | Question::Copy | Question::EmptyCopy | Question::Version => {
                self.attributes(place).map(|found| found.map_or(Answer::Absent, Answer::Attributes))
            }
            Question::Size => self
                .attributes(place)
                .map(|found| found.map_or(Answer::Absent, |attributes| Answer::Size(attributes.size_bytes))),
            Question::Listing => self.listing(place).map(Answer::Listing),
            Question::Data { offset, length_bytes } => {
                self.data(place, *offset, *length_bytes).map(|bytes| Answer::about_bytes(&bytes))
            }
            Question::Target => {
                let link = self.open_at(place, OFlags::PATH);
                link.and_then(|link| target_of(&link)).map(Answer::Target)
            }
            Question::Extended(name) => self.extended(place, name).map(|value| Answer::about_bytes(&value)),
            Question::ExtendedNames => self.extended_names(place).map(Answer::Names),
        };
        answered.unwrap_or_else(fault)
    }

    fn data(&self, place: &Place, offset: u64, length_bytes: u32) -> rustix::io::Result<Vec<u8>> {
        let file = File::from(self.open_file(place)?);
        let mut bytes = vec![0; length_bytes as usize];
        let length = read_at(&file, &mut bytes, offset)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Opens a regular file to be read; whatever else is there is not opened.
    pub(crate) fn open_file(&self, place: &Place) -> rustix::io::Result<OwnedFd> {
        let found = File::from(self.open_at(place, OFlags::PATH)?);
        if attributes_of(&found)?.kind != Kind::File {
            return Err(Errno::STALE);
        }
        // What was looked at may be something else by now: a pipe would wait without this flag.
        let opened = self.open_at(place, OFlags::RDONLY | OFlags::NONBLOCK)?;
        Ok(opened)
    }
}

/// The answer when the system refuses.
pub(crate) fn fault(error: Errno) -> Answer {
    if is_absence(error) || error == Errno::NODATA { Answer::Absent } else { Answer::Fault(error.raw_os_error()) }
}

/// Whether an error says that nothing is at a path, or that a link is in its way, which makes it another path.
pub(crate) fn is_absence(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}

/// The attributes of an open object.
pub(crate) fn attributes_of(file: &File) -> rustix::io::Result<Attributes> {
    file.metadata().map(|metadata| Attributes::of(&metadata)).map_err(errno_of)
}

/// The number of an error of the system.
pub(crate) fn errno_of(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Which names an open directory holds, in order.
pub(crate) fn listing_of(directory: &OwnedFd) -> rustix::io::Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            rustix::fs::FileType::RegularFile => Kind::File,
            rustix::fs::FileType::Directory => Kind::Directory,
            rustix::fs::FileType::Symlink => Kind::Symlink,
            rustix::fs::FileType::Fifo => Kind::Fifo,
            rustix::fs::FileType::Socket => Kind::Socket,
            rustix::fs::FileType::CharacterDevice => Kind::CharacterDevice,
            rustix::fs::FileType::BlockDevice => Kind::BlockDevice,
            rustix::fs::FileType::Unknown => match kind_at(directory, entry.file_name()) {
                Ok(kind) => kind,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            },
        };
        listed.push((name.to_vec(), kind));
    }
    listed.sort();
    Ok(listed)
}

fn kind_at(directory: &OwnedFd, name: &std::ffi::CStr) -> rustix::io::Result<Kind> {
    let opened = rustix::fs::openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    attributes_of(&File::from(opened)).map(|attributes| attributes.kind)
}

/// Where an open symbolic link leads.
pub(crate) fn target_of(link: &OwnedFd) -> rustix::io::Result<Vec<u8>> {
    // An empty path means the descriptor itself; of what is no link it is an error.
    rustix::fs::readlinkat(link, c"", Vec::new()).map(CString::into_bytes)
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> rustix::io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(errno_of(error)),
        }
    }
    Ok(length)
}

/// Names that the system has given one after the other, each with a zero byte at its end.
pub(crate) fn split_names(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Asks with a larger buffer until what comes fits.
pub(crate) fn grown(mut ask: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
    let mut bytes = vec![0; 1024];
    loop {
        match ask(&mut bytes) {
            Ok(length) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Err(Errno::RANGE) if bytes.len() < 1 << 17 => bytes.resize(bytes.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
}

/// What a path leads to, without following a link at its end: for what lies in a workspace.
pub(crate) fn stat_at(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<Option<Attributes>> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, &name, flags, Mode::empty()) {
        Ok(found) => Ok(Some(attributes_of(&File::from(found))?)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes a name and all below it, and nothing of another mount, which is `EBUSY`; nothing to remove is no error.
pub(crate) fn remove_all(directory: &OwnedFd, name: &[u8]) -> rustix::io::Result<()> {
    let c_name = CString::new(name).map_err(|_| Errno::INVAL)?;
    match stat_at(directory, name)?.map(|found| found.kind) {
        None => Ok(()),
        Some(Kind::Directory) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            let open = || openat2(directory, &c_name, flags, Mode::empty(), resolve);
            let inner = match open() {
                Err(Errno::XDEV) => return Err(Errno::BUSY),
                Err(Errno::ACCESS) => {
                    // Its owner may not list it: it is about to go.
                    rustix::fs::chmodat(directory, &c_name, Mode::RWXU, AtFlags::empty())?;
                    open()?
                }
                opened => opened?,
            };
            let listed = listing_of(&inner)?;
            if !listed.is_empty() {
                // Its owner may have taken the right to remove from it.
                let _ = rustix::fs::fchmod(&inner, Mode::RWXU);
            }
            for (below, _) in listed {
                remove_all(&inner, &below)?;
            }
            rustix::fs::unlinkat(directory, &c_name, AtFlags::REMOVEDIR)
        }
        Some(_) => rustix::fs::unlinkat(directory, &c_name, AtFlags::empty()),
    }
}
