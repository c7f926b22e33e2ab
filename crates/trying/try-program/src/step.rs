//! Steps of a publication, each of which is seen whole or not at all, and can be undone.
//!
//! ```text
//! create      the staged object gets its name                rename, only if the name is free
//! replace     the staged object and the old one change places    rename, exchanged: what was is the undo
//! remove      the old object goes to the stage               rename
//! attributes  mode, owner, time, extended attributes         one call each, with the old ones in the journal
//! ```
//! A step knows both objects by their inodes. So one who comes later sees whether it was done: a recovery does it then, or undoes it,
//! and what somebody else has put there in the end is left alone.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid, renameat_with};
use rustix::io::Errno;

use crate::attributes::{Attributes, Kind};
use crate::extended::{self, Extended};
use crate::place::Place;
use crate::stops::planted;
use crate::tree::{Tree, attributes_of, stat_at};

/// Where an object waits for its step, or what was replaced for its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// In the workspace: it lies on the mount of the place.
    Workspace,
    /// In the place's own directory, under a name that the workspace has made up.
    Beside,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Create { new: Attributes },
    Replace { new: Attributes, old: Attributes },
    Remove { old: Attributes },
    Attributes { new: (Attributes, Extended), old: (Attributes, Extended) },
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) place: Place,
    pub(crate) at: Where,
    /// The name on the stage.
    pub(crate) name: String,
    pub(crate) does: Does,
}

/// Why a step was not made.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Somebody else has changed what is there.
    Foreign(String),
    Refused(Errno),
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Trouble {
        match error {
            Errno::EXIST => Trouble::Foreign("somebody else has made it by now".to_owned()),
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Trouble::Foreign("its directory is gone".to_owned()),
            error => Trouble::Refused(error),
        }
    }
}

fn is(found: Option<&Attributes>, wanted: &Attributes) -> bool {
    found.is_some_and(|found| found.identity() == wanted.identity())
}

/// Whether an object still has the data that it was replaced for, and no name that it had not. Its time of change moves with the rename.
fn is_untouched(found: &Attributes, wanted: &Attributes) -> bool {
    found.kind == Kind::Directory
        || (found.size_bytes, found.modified) == (wanted.size_bytes, wanted.modified) && found.links <= wanted.links
}

fn changed_by_others() -> Trouble {
    Trouble::Foreign("somebody else has changed it by now".to_owned())
}

/// A place with its directory open, and the stage.
struct Position<'a> {
    parent: OwnedFd,
    name: CString,
    stage: &'a OwnedFd,
    staged: CString,
    at: Where,
}

impl Position<'_> {
    fn stage(&self) -> &OwnedFd {
        match self.at {
            Where::Workspace => self.stage,
            Where::Beside => &self.parent,
        }
    }

    fn here(&self) -> rustix::io::Result<Option<Attributes>> {
        stat_at(&self.parent, self.name.as_bytes())
    }

    fn there(&self) -> rustix::io::Result<Option<Attributes>> {
        stat_at(self.stage(), self.staged.as_bytes())
    }

    fn publish(&self, flags: RenameFlags) -> rustix::io::Result<()> {
        renameat_with(self.stage(), &self.staged, &self.parent, &self.name, flags)
    }

    /// Whether the stage holds the old object as it was. If not, it goes back: between the look and the rename somebody may have come,
    /// or have written into it since.
    fn is_taken(&self, old: &Attributes, back: RenameFlags) -> Result<(), Trouble> {
        match self.there()? {
            Some(taken) if is(Some(&taken), old) && is_untouched(&taken, old) => return Ok(()),
            Some(_) => self.publish(back)?,
            None => {}
        }
        Err(changed_by_others())
    }

    fn take_back(&self) -> rustix::io::Result<()> {
        renameat_with(&self.parent, &self.name, self.stage(), &self.staged, RenameFlags::NOREPLACE)
    }
}

impl Step {
    fn position<'a>(&self, tree: &Tree, stage: &'a OwnedFd) -> Result<Position<'a>, Trouble> {
        use std::os::unix::ffi::OsStrExt;
        Ok(Position {
            parent: tree.open_parent(&self.place)?,
            name: CString::new(self.place.name().as_bytes()).map_err(|_| Errno::INVAL)?,
            stage,
            staged: CString::new(self.name.as_str()).map_err(|_| Errno::INVAL)?,
            at: self.at,
        })
    }

    /// Makes the step, unless it was made.
    pub(crate) fn make(&self, tree: &Tree, stage: &OwnedFd) -> Result<(), Trouble> {
        let position = self.position(tree, stage)?;
        match &self.does {
            Does::Create { new } => {
                if is(position.here()?.as_ref(), new) {
                    return Ok(());
                }
                Ok(position.publish(RenameFlags::NOREPLACE)?)
            }
            Does::Replace { new, old } => {
                let here = position.here()?;
                if is(here.as_ref(), new) {
                    return position.is_taken(old, RenameFlags::EXCHANGE);
                }
                let is_old = here.is_some_and(|here| is(Some(&here), old) && is_untouched(&here, old));
                if planted("try-program: an exchange takes whatever is there") {
                    return Ok(position.publish(RenameFlags::EXCHANGE)?);
                }
                if !is_old {
                    return Err(changed_by_others());
                }
                position.publish(RenameFlags::EXCHANGE)?;
                position.is_taken(old, RenameFlags::EXCHANGE)
            }
            Does::Remove { old } => {
                if position.there()?.is_some() {
                    return position.is_taken(old, RenameFlags::NOREPLACE);
                }
                if !position.here()?.is_some_and(|here| is(Some(&here), old) && is_untouched(&here, old)) {
                    return Err(changed_by_others());
                }
                position.take_back()?;
                position.is_taken(old, RenameFlags::NOREPLACE)
            }
            Does::Attributes { new, old } => give(tree, &self.place, old, new),
        }
    }

    /// Undoes the step if it was made; what somebody has changed since is left alone.
    ///
    /// What the stage holds is put back also where it is not the object that was meant: a commit that was cut short has taken it.
    pub(crate) fn undo(&self, tree: &Tree, stage: &OwnedFd) -> Result<(), Trouble> {
        let position = self.position(tree, stage)?;
        match &self.does {
            Does::Create { new } => {
                if is(position.here()?.as_ref(), new) {
                    position.take_back()?;
                }
            }
            Does::Replace { new, .. } => {
                if is(position.here()?.as_ref(), new) && position.there()?.is_some() {
                    position.publish(RenameFlags::EXCHANGE)?;
                    if !is(position.there()?.as_ref(), new) {
                        position.publish(RenameFlags::EXCHANGE)?;
                        return Err(changed_by_others());
                    }
                }
            }
            Does::Remove { .. } => {
                if position.there()?.is_some() {
                    position.publish(RenameFlags::NOREPLACE)?;
                }
            }
            Does::Attributes { new, old } => take_back(tree, &self.place, old, new)?,
        }
        Ok(())
    }

    /// The numbers of the file systems of its objects.
    pub(crate) fn devices(&mut self) -> Vec<&mut u64> {
        match &mut self.does {
            Does::Create { new } => vec![&mut new.device],
            Does::Replace { new, old } => vec![&mut new.device, &mut old.device],
            Does::Remove { old } => vec![&mut old.device],
            // The new ones are those of a layer.
            Does::Attributes { old, .. } => vec![&mut old.0.device],
        }
    }

    /// Whether the stage holds what the step has taken from its place, and so perhaps the only copy of it.
    pub(crate) fn holds_original(&self, tree: &Tree, stage: &OwnedFd) -> rustix::io::Result<bool> {
        let new = match &self.does {
            Does::Replace { new, .. } => Some(new),
            Does::Remove { .. } => None,
            Does::Create { .. } | Does::Attributes { .. } => return Ok(false),
        };
        let beside = match self.at {
            Where::Workspace => None,
            Where::Beside => match tree.open_parent(&self.place) {
                Err(error) if crate::tree::is_absence(error) => return Ok(false),
                parent => Some(parent?),
            },
        };
        let found = stat_at(beside.as_ref().unwrap_or(stage), self.name.as_bytes())?;
        Ok(found.is_some_and(|found| new.is_none_or(|new| !is(Some(&found), new))))
    }
}

/// Gives the object at a place the old attributes, as far as it has the new ones: others may have set some since.
fn take_back(
    tree: &Tree,
    place: &Place,
    old: &(Attributes, Extended),
    new: &(Attributes, Extended),
) -> Result<(), Trouble> {
    let object = tree.open_at(place, OFlags::PATH)?;
    let found = attributes_of(&File::from(object.try_clone().map_err(|_| Errno::MFILE)?))?;
    if !is(Some(&found), &old.0) {
        return Err(changed_by_others());
    }
    let extended = extended::read(tree, place)?;
    let mut wanted = (found.clone(), extended.clone());
    if found.user == new.0.user {
        wanted.0.user = old.0.user;
    }
    if found.group == new.0.group {
        wanted.0.group = old.0.group;
    }
    if found.mode == new.0.mode {
        wanted.0.mode = old.0.mode;
    }
    if found.modified == new.0.modified {
        wanted.0.modified = old.0.modified;
    }
    if extended == new.1 {
        wanted.1 = old.1.clone();
    }
    if wanted == (found.clone(), extended.clone()) {
        return Ok(());
    }
    give_to(&object, found.kind, &extended, &wanted)
}

/// Gives the object at a place other attributes; it must be the one that is meant.
fn give(tree: &Tree, place: &Place, old: &(Attributes, Extended), new: &(Attributes, Extended)) -> Result<(), Trouble> {
    let object = tree.open_at(place, OFlags::PATH)?;
    let found = attributes_of(&File::from(object.try_clone().map_err(|_| Errno::MFILE)?))?;
    if !is(Some(&found), &old.0) {
        return Err(changed_by_others());
    }
    give_to(&object, found.kind, &old.1, new)
}

/// Gives an open object attributes: the owner first, since a change of owner takes set-id bits away.
pub(crate) fn give_to(
    object: &OwnedFd,
    kind: Kind,
    old: &Extended,
    (new, extended): &(Attributes, Extended),
) -> Result<(), Trouble> {
    let found = attributes_of(&File::from(object.try_clone().map_err(|_| Errno::MFILE)?))?;
    if (found.user, found.group) != (new.user, new.group) {
        let (user, group) = (Uid::from_raw(new.user), Gid::from_raw(new.group));
        rustix::fs::chownat(object, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    let path = format!("/proc/self/fd/{}", object.as_raw_fd());
    if kind != Kind::Symlink {
        rustix::fs::chmod(&path, Mode::from_raw_mode(new.mode))?;
        extended::write(&path, old, extended)?;
    }
    let time = Timespec { tv_sec: new.modified.0, tv_nsec: new.modified.1.into() };
    let times = Timestamps { last_access: time, last_modification: time };
    match rustix::fs::utimensat(object, "", &times, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW) {
        // Before Linux 5.8 a descriptor that was opened for its path alone has no times to set.
        Err(Errno::INVAL | Errno::NOENT) if kind != Kind::Symlink => {
            rustix::fs::utimensat(rustix::fs::CWD, &path, &times, AtFlags::empty())?;
        }
        set => set?,
    }
    Ok(())
}
