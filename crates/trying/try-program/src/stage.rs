//! The stage: each object that a commit publishes is made whole beforehand, on the mount where it will be.
//!
//! A file of the layer that lies on the same mount is linked, not copied. Elsewhere it is copied, by sharing its blocks where the file
//! system can do that.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::attributes::Kind;
use crate::changes::{Change, What};
use crate::extended::{self, Extended};
use crate::failure::Failure;
use crate::layer::{Held, Object};
use crate::machine::Right;
use crate::place::Place;
use crate::step::{Does, Step, Trouble, Where, give_to};
use crate::tree::{Tree, attributes_of, stat_at};
use crate::workspace::{Workspace, random_name};

/// A free name for what a commit stages in the directory of its place. It is the commit's own: neither another workspace's nor one that
/// was there, since all that has this name is removed in the end.
fn name_beside(parent: &OwnedFd, number: usize) -> rustix::io::Result<String> {
    loop {
        let name = format!(".commutant-try-{}-{number}", random_name());
        if stat_at(parent, name.as_bytes())?.is_none() {
            return Ok(name);
        }
    }
}

/// Which mount an open directory is on.
fn mount_of(directory: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    let found = rustix::fs::statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    Ok((found.stx_mnt_id, rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor)))
}

/// Where each change will be staged, in order, and under which name.
pub(crate) fn places(
    workspace: &Workspace,
    tree: &Tree,
    changes: &[Change],
    stage: &OwnedFd,
) -> Result<Vec<(Where, String)>, Failure> {
    let own = mount_of(stage).map_err(Failure::calling(workspace.path.display()))?;
    let where_of = |(number, change): (usize, &Change)| {
        let failed = || Failure::calling(format!("{}: its directory", change.place));
        let parent = tree.open_parent(&change.place).map_err(failed())?;
        let is_own = mount_of(&parent).map_err(failed())? == own;
        let name = if is_own { number.to_string() } else { name_beside(&parent, number).map_err(failed())? };
        Ok((if is_own { Where::Workspace } else { Where::Beside }, name))
    };
    changes.iter().enumerate().map(where_of).collect()
}

/// Makes what a change publishes, and says which step will do it.
pub(crate) fn prepare(
    layer: &Tree,
    right: Right,
    tree: &Tree,
    change: &Change,
    stage: &OwnedFd,
    (at, name): &(Where, String),
) -> Result<Step, Failure> {
    let step = |does| Step { place: change.place.clone(), at: *at, name: name.clone(), does };
    let failed = || Failure::calling(format!("preparing {}", change.place));
    let old = || change.base.clone().ok_or_else(|| Failure::Run(format!("preparing {}: it has gone", change.place)));
    if change.what == What::Remove {
        return Ok(step(Does::Remove { old: old()? }));
    }
    let object =
        change.object.as_ref().ok_or_else(|| Failure::Run(format!("preparing {}: it has gone", change.place)))?;
    if change.what == What::Attributes {
        let of = |tree: &Tree| extended::read(tree, &change.place).map_err(failed());
        let (new, old) = ((object.attributes.clone(), of(layer)?), (old()?, of(tree)?));
        return Ok(step(Does::Attributes { new, old }));
    }
    let beside = match at {
        Where::Workspace => None,
        Where::Beside => Some(tree.open_parent(&change.place).map_err(failed())?),
    };
    let into = beside.as_ref().unwrap_or(stage);
    let stager = Stager { layer, right, may_link: *at == Where::Workspace };
    let put = match &change.merged {
        Some(bytes) => stager.write(&change.place, object, bytes, into, name.as_bytes()),
        None => stager.put(&change.place, object, into, name.as_bytes()),
    };
    put.map_err(|trouble| match trouble {
        Trouble::Foreign(why) => Failure::Run(format!("preparing {}: {why}", change.place)),
        Trouble::Refused(error) => failed()(error),
    })?;
    let new = stat_at(into, name.as_bytes()).map_err(failed())?;
    let new = new.ok_or_else(|| Failure::Run(format!("preparing {}: it has gone", change.place)))?;
    Ok(step(match change.what {
        What::Create => Does::Create { new },
        _ => Does::Replace { new, old: old()? },
    }))
}

struct Stager<'a> {
    layer: &'a Tree,
    right: Right,
    may_link: bool,
}

impl Stager<'_> {
    /// Makes an object of the layer, with all below it, under a name.
    fn put(&self, place: &Place, object: &Object, into: &OwnedFd, name: &[u8]) -> Result<(), Trouble> {
        use std::os::fd::AsFd;
        let c_name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let kind = object.attributes.kind;
        if self.may_link && kind != Kind::Directory {
            use std::os::unix::ffi::OsStrExt;
            let parent = self.layer.open_parent(place)?;
            let own_name = CString::new(place.name().as_bytes()).map_err(|_| Errno::INVAL)?;
            rustix::fs::linkat(parent.as_fd(), &own_name, into, &c_name, AtFlags::empty())?;
            self.clean(into, &c_name, kind)?;
            return self.keep_group(into, &c_name, object);
        }
        match kind {
            Kind::Directory => {
                rustix::fs::mkdirat(into, &c_name, Mode::RWXU)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let directory = rustix::fs::openat(into, &c_name, flags, Mode::empty())?;
                for (below, held) in &object.names {
                    if let Held::Object(held) = held {
                        self.put(&place.join(below), held, &directory, below)?;
                    }
                }
            }
            Kind::File => self.copy(place, into, &c_name)?,
            Kind::Symlink => {
                let link = self.layer.open_at(place, OFlags::PATH)?;
                let target = CString::new(crate::tree::target_of(&link)?).map_err(|_| Errno::INVAL)?;
                rustix::fs::symlinkat(&target, into, &c_name)?;
            }
            Kind::Fifo | Kind::CharacterDevice | Kind::BlockDevice | Kind::Socket => {
                let file_type = match kind {
                    Kind::CharacterDevice => FileType::CharacterDevice,
                    Kind::BlockDevice => FileType::BlockDevice,
                    Kind::Socket => FileType::Socket,
                    _ => FileType::Fifo,
                };
                rustix::fs::mknodat(into, &c_name, file_type, Mode::RUSR | Mode::WUSR, object.attributes.special)?;
            }
        }
        let made = rustix::fs::openat(into, &c_name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let extended = extended::read(self.layer, place)?;
        give_to(&made, kind, &Extended::new(), &(object.attributes.clone(), extended))
    }

    /// Makes a file of these bytes, with the attributes of the layer's object and the time of now.
    fn write(&self, place: &Place, object: &Object, bytes: &[u8], into: &OwnedFd, name: &[u8]) -> Result<(), Trouble> {
        use std::io::Write;
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(into, &name, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes).map_err(crate::tree::errno_of)?;
        let mut attributes = object.attributes.clone();
        attributes.modified = attributes_of(&file)?.modified;
        let extended = extended::read(self.layer, place)?;
        give_to(&file.into(), Kind::File, &Extended::new(), &(attributes, extended))
    }

    /// Copies a file's data, with its holes.
    fn copy(&self, place: &Place, into: &OwnedFd, name: &CString) -> Result<(), Trouble> {
        let mut from = File::from(self.layer.open_file(place)?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut to = File::from(rustix::fs::openat(into, name, flags, Mode::RUSR | Mode::WUSR)?);
        if rustix::fs::ioctl_ficlone(&to, &from).is_ok() {
            return Ok(());
        }
        let length = attributes_of(&from)?.size_bytes;
        copy_with_holes(&mut from, &mut to, length).map_err(|error| Trouble::from(crate::tree::errno_of(error)))
    }

    /// Gives a linked object the group that it is to have: a user's layer knows only the user's own.
    fn keep_group(&self, into: &OwnedFd, name: &CString, object: &Object) -> Result<(), Trouble> {
        let found = stat_at(into, name.as_bytes())?.ok_or(Errno::NOENT)?;
        if found.group != object.attributes.group {
            let group = rustix::fs::Gid::from_raw(object.attributes.group);
            rustix::fs::chownat(into, name, None, Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
            if found.kind != Kind::Symlink {
                // A change of group takes set-id bits away.
                rustix::fs::chmodat(into, name, Mode::from_raw_mode(object.attributes.mode), AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// Takes away what the overlay has noted at an object of its layer.
    fn clean(&self, into: &OwnedFd, name: &CString, kind: Kind) -> rustix::io::Result<()> {
        if !matches!(kind, Kind::File) {
            return Ok(());
        }
        let file = rustix::fs::openat(into, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let names = match crate::tree::grown(|buffer| rustix::fs::listxattr(&path, buffer)) {
            Ok(names) => crate::tree::split_names(&names),
            Err(Errno::OPNOTSUPP) => return Ok(()),
            Err(error) => return Err(error),
        };
        for own in names.iter().filter(|own| own.starts_with(self.right.overlay_prefix().as_bytes())) {
            rustix::fs::removexattr(&path, own.as_slice())?;
        }
        Ok(())
    }
}

/// Copies `length` bytes, and leaves holes where there are holes.
fn copy_with_holes(from: &mut File, to: &mut File, length: u64) -> std::io::Result<()> {
    use rustix::fs::SeekFrom;
    use std::io::{Read, Seek};
    let mut at = 0;
    while at < length {
        let data = match rustix::fs::seek(&*from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let hole = rustix::fs::seek(&*from, SeekFrom::Hole(data)).unwrap_or(length).min(length);
        from.seek(std::io::SeekFrom::Start(data))?;
        to.seek(std::io::SeekFrom::Start(data))?;
        std::io::copy(&mut from.take(hole.saturating_sub(data)), to)?;
        at = hole.max(data + 1);
    }
    to.set_len(length)
}
