//! All files of a commit visible at one moment (`--live`).
//!
//! ```text
//! before        directory                         what was
//! show          overlay, to read alone            what the commit will leave: the layer of changes over the directory
//!                 └ directory, below it           the steps of the publication, one after the other
//! hide          directory                         what the commit has left
//! ```
//! The overlay lies over the nearest directory that holds all changes. It comes by one call and goes by one, and who looks in between sees
//! all changes. Steps reach the directory below by a descriptor that was opened before.
//!
//! The overlay's source names the workspace, so that a recovery finds it in the table of mounts, wherever its directory has been moved
//! since. Others may change the names on the way to it. So it is opened without following links, and what is unmounted is what is open.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{OFlags, StatVfsMountFlags};
use rustix::mount::{MountAttrFlags, MoveMountFlags, UnmountFlags, move_mount, unmount};

use crate::attributes::Kind;
use crate::changes::{Change, Changes, What};
use crate::escape;
use crate::failure::Failure;
use crate::machine::Right;
use crate::mounted;
use crate::mounting;
use crate::place::Place;
use crate::stops::{self, planted};
use crate::tree::Tree;
use crate::workspace::Workspace;

/// What the table of mounts says of such an overlay, before its workspace.
const SOURCE: &str = "commutant-try-live";
/// How often a mount is looked for whose directory others move.
const ATTEMPTS: usize = 64;

/// An overlay that shows a commit while its steps are made. It goes with this value.
#[derive(Debug)]
pub(crate) struct Live {
    place: Place,
    /// The directory below.
    below: OwnedFd,
    overlay: OwnedFd,
    is_shown: bool,
}

impl Live {
    /// Makes the overlay; nobody sees it yet. An error says why these changes cannot become visible at one moment.
    pub(crate) fn prepare(workspace: &Workspace, tree: &Tree, changes: &Changes) -> Result<Live, Failure> {
        if workspace.right != Right::Root {
            return Err(Failure::input(
                "--live makes a mount over the changed directory, which takes root: leave it out, or run as root",
            ));
        }
        let refused = |why: String| Err(Failure::input(format!("--live: {why}; nothing was changed")));
        let Some(place) = holder(&changes.changes).filter(|place| !place.is_root()) else {
            let top = |change: &Change| change.place.relative().split(|byte| *byte == b'/').next().map(escape::shown);
            let names: BTreeSet<String> =
                changes.changes.iter().filter_map(top).map(|name| format!("/{name}")).collect();
            let names: Vec<String> = names.into_iter().collect();
            return refused(format!(
                "one mount shows all changes, and no directory but / holds those in {}: leave it out, or choose paths with -I",
                names.join(", ")
            ));
        };
        if workspace.place.is_at_or_below(&place) {
            return refused(format!(
                "the workspace lies below {place}, which would be covered: take a directory elsewhere with -N"
            ));
        }
        if let Some(merged) = changes.merged().next() {
            return refused(format!(
                "{merged} is merged with what others have changed, which no layer holds: leave --merge or --live out"
            ));
        }
        if let Some(place) = changes.unwanted.first() {
            return refused(format!("-I or -E leave out {place}, which the layer would show: take all changes"));
        }
        if let Some(mount) = mounted::places()?.iter().find(|mount| **mount != place && mount.is_at_or_below(&place)) {
            return refused(format!("{mount} is a mount, which one over {place} would cover: leave it out"));
        }
        let failed = || Failure::calling(format!("--live: {place}"));
        let below = tree.open_at(&place, OFlags::PATH | OFlags::DIRECTORY).map_err(failed())?;
        let upper = Tree::open(&workspace.path.join("upper"), []).map_err(Failure::doing("--live"))?;
        let upper = upper.open_at(&place, OFlags::PATH | OFlags::DIRECTORY).map_err(failed())?;
        let layers = format!("/proc/self/fd/{}:/proc/self/fd/{}", upper.as_raw_fd(), below.as_raw_fd());
        let source = source_of(workspace)?;
        let strings = [
            ("source", source.as_str()),
            ("lowerdir", layers.as_str()),
            ("redirect_dir", "nofollow"),
            ("index", "off"),
            ("metacopy", "off"),
            ("xino", "off"),
        ];
        let overlay = mounting::made("overlay", &strings, &[], flags_of(&below).map_err(failed())?)?;
        Ok(Live { place, below, overlay, is_shown: false })
    }

    /// The directory below the overlay, and where it is.
    pub(crate) fn below(&self) -> Result<(Place, OwnedFd), Failure> {
        let below = self.below.try_clone().map_err(Failure::doing(&self.place))?;
        Ok((self.place.clone(), below))
    }

    /// Makes all changes visible.
    pub(crate) fn show(&mut self) -> Result<(), Failure> {
        let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&self.overlay, "", &self.below, "", both)
            .map_err(Failure::calling(format!("--live: mounting over {}", self.place)))?;
        self.is_shown = true;
        if planted("try-program: the overlay goes before the steps are made") {
            self.hide();
        }
        Ok(())
    }

    fn hide(&mut self) {
        if std::mem::take(&mut self.is_shown)
            && let Err(error) = take_away(&self.overlay)
        {
            eprintln!("commutant try: unmounting {}: {}", self.place, crate::failure::reason(&error.into()));
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Takes away the overlay of a commit that was cut short, if it is there: a machine that has started again has none.
pub(crate) fn recover(workspace: &Workspace, tree: &Tree) -> Result<(), Failure> {
    let source = source_of(workspace)?;
    for _ in 0..ATTEMPTS {
        let Some(overlay) = mounted::overlay_of(source.as_bytes())? else { return Ok(()) };
        stops::others_may_come("UNCOVERING");
        let failed = || Failure::calling(format!("unmounting {}", overlay.place));
        if planted("try-program: a recovery unmounts by a path") {
            use std::os::unix::ffi::OsStringExt;
            let at = std::ffi::OsString::from_vec(overlay.place.absolute());
            let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
            return unmount(at.as_os_str(), flags).map_err(failed());
        }
        // Where a link is in the way, or another mount is there, its directory was moved: the table says where it is now.
        let Ok(opened) = tree.open_at(&overlay.place, OFlags::PATH | OFlags::DIRECTORY) else { continue };
        if mounted::number_of(&opened).map_err(failed())? == overlay.number {
            take_away(&opened).map_err(failed())?;
        }
    }
    Err(Failure::Run(
        "others change the way to the overlay of the commit that was cut short, or have mounted something over it: recover again when \
         they have stopped"
            .to_owned(),
    ))
}

/// The source of a workspace's overlay: no other one has it as long as the machine runs.
fn source_of(workspace: &Workspace) -> Result<String, Failure> {
    let own = rustix::fs::fstat(&workspace.directory).map_err(Failure::calling(workspace.path.display()))?;
    Ok(format!("{SOURCE}:{}:{}", own.st_dev, own.st_ino))
}

/// Unmounts what is open, wherever it is.
fn take_away(mount: &OwnedFd) -> rustix::io::Result<()> {
    unmount(format!("/proc/self/fd/{}", mount.as_raw_fd()), UnmountFlags::DETACH)
}

/// The nearest directory that is there before and afterwards and holds all changes.
fn holder(changes: &[Change]) -> Option<Place> {
    let of_change = |change: &Change| {
        let is_directory = change.base.as_ref().is_some_and(|base| base.kind == Kind::Directory);
        if change.what == What::Attributes && is_directory { Some(change.place.clone()) } else { change.place.parent() }
    };
    let mut holders = changes.iter().map(of_change);
    let mut common = holders.next()??;
    for holder in holders {
        let holder = holder?;
        while !holder.is_at_or_below(&common) {
            common = common.parent()?;
        }
    }
    Some(common)
}

/// What a mount does not allow, its cover does not allow either.
fn flags_of(directory: &OwnedFd) -> rustix::io::Result<MountAttrFlags> {
    let found = rustix::fs::fstatvfs(directory)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountAttrFlags::MOUNT_ATTR_NOSUID),
        (StatVfsMountFlags::NODEV, MountAttrFlags::MOUNT_ATTR_NODEV),
        (StatVfsMountFlags::NOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC),
    ];
    let kept = pairs.into_iter().filter(|(flag, _)| found.contains(*flag)).map(|(_, attribute)| attribute);
    Ok(kept.fold(MountAttrFlags::MOUNT_ATTR_RDONLY, |all, attribute| all | attribute))
}
