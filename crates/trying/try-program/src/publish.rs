//! Making the steps of a commit, undoing them, and cleaning up: by who commits, and by who finds a commit that was cut short.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::attributes::{Attributes, Kind};
use crate::failure::Failure;
use crate::journal::{self, Phase};
use crate::live::Live;
use crate::looks::Looks;
use crate::place::Place;
use crate::question::Answer;
use crate::step::{Does, Step, Trouble, Where};
use crate::stops::{self, planted};
use crate::tree::{Tree, listing_of, remove_all, stat_at};
use crate::workspace::Workspace;

/// Above this number of directories the whole file system is made durable instead of each.
const MOST_DIRECTORIES: usize = 64;

/// How a publication ended.
#[derive(Debug)]
pub(crate) enum Published {
    Whole,
    /// Undone, since somebody had changed what is at a place.
    Foreign(Place, String),
    /// Undone, since the system refused a step.
    Refused(Place, Errno),
}

/// The open stage of a workspace.
pub(crate) fn open_stage(workspace: &Workspace) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&workspace.directory, "stage", flags, Mode::empty())
        .map_err(Failure::calling(workspace.path.join("stage").display()))
}

/// Makes all steps of a decided commit; if one cannot be made, undoes them all.
///
/// `looks` are what the command has seen: a directory that goes must hold that, and nothing that came since.
/// `live` shows all of them at once, and is hidden when they are made.
pub(crate) fn publish(
    workspace: &Workspace,
    tree: &Tree,
    steps: &[Step],
    looks: &Looks,
    live: Option<Live>,
) -> Result<Published, Failure> {
    let stage = open_stage(workspace)?;
    for step in steps {
        stops::may_end_here();
        let made = step.make(tree, &stage).and_then(|()| compare_taken(step, &stage, tree, looks));
        if let Err(trouble) = made {
            journal::go_on(workspace, Phase::Decided, Phase::Undoing)?;
            undo(workspace, tree, steps)?;
            return Ok(match trouble {
                Trouble::Foreign(why) => Published::Foreign(step.place.clone(), why),
                Trouble::Refused(error) => Published::Refused(step.place.clone(), error),
            });
        }
        stops::others_may_come("STEP");
    }
    stops::may_end_here();
    // The layer that it shows is about to go.
    drop(live);
    make_durable(workspace, tree, steps)?;
    journal::go_on(workspace, Phase::Decided, Phase::Done)?;
    stops::may_end_here();
    clean(workspace, tree, steps)?;
    Ok(Published::Whole)
}

/// Whether a directory that went holds what the command has seen in it, and nothing that came since.
fn compare_taken(step: &Step, stage: &OwnedFd, tree: &Tree, looks: &Looks) -> Result<(), Trouble> {
    let (Does::Remove { old } | Does::Replace { old, .. }) = &step.does else { return Ok(()) };
    if old.kind != Kind::Directory || planted("try-program: what was taken is not looked into") {
        return Ok(());
    }
    let beside = match step.at {
        Where::Workspace => None,
        Where::Beside => Some(tree.open_parent(&step.place)?),
    };
    compare_below(beside.as_ref().unwrap_or(stage), step.name.as_bytes(), &step.place, looks)
}

fn compare_below(directory: &OwnedFd, name: &[u8], place: &Place, looks: &Looks) -> Result<(), Trouble> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, &name, flags, Mode::empty())?;
    let listed = listing_of(&opened)?;
    if looks.listing(place).is_some_and(|seen| seen != listed) {
        return Err(Trouble::Foreign("somebody else has changed what is in it by now".to_owned()));
    }
    for (below, kind) in listed {
        let place = place.join(&below);
        if kind == Kind::Directory {
            compare_below(&opened, &below, &place, looks)?;
        } else if let Some(Answer::Attributes(seen)) = looks.name(&place)
            && !stat_at(&opened, &below)?.is_some_and(|found| is_as_seen(&found, seen))
        {
            return Err(Trouble::Foreign(format!("somebody else has changed {place} by now")));
        }
    }
    Ok(())
}

/// Whether an object of a directory that was taken is the one that was seen. The number of its file system may be another one after a
/// restart.
fn is_as_seen(found: &Attributes, seen: &Attributes) -> bool {
    Attributes { device: seen.device, ..found.clone() }.is_same_under_name(seen)
}

/// Undoes all steps, the last one first, and gives the stage up. The changes stay in the workspace.
///
/// What cannot be put back stays on the stage, as does the journal: it may be the only copy.
pub(crate) fn undo(workspace: &Workspace, tree: &Tree, steps: &[Step]) -> Result<(), Failure> {
    let stage = open_stage(workspace)?;
    let mut kept = Vec::new();
    for step in steps.iter().rev() {
        stops::may_end_here();
        if planted("try-program: an exchange is not undone") && matches!(step.does, Does::Replace { .. }) {
            continue;
        }
        match step.undo(tree, &stage) {
            Ok(()) => {}
            // Somebody else has gone on from there: what is theirs stays.
            Err(Trouble::Foreign(why)) => eprintln!("commutant try: {}: not undone: {why}", step.place),
            Err(Trouble::Refused(error)) => {
                let why = crate::failure::reason(&error.into());
                return Err(Failure::Run(format!(
                    "undoing the commit at {}: {why}: mend that, then commutant try recover {}",
                    step.place,
                    workspace.path.display()
                )));
            }
        }
        let holds = step.holds_original(tree, &stage).map_err(Failure::calling(format!("undoing {}", step.place)))?;
        if holds && !planted("try-program: what cannot be put back goes") {
            kept.push(staged_path(workspace, step));
        }
    }
    if !kept.is_empty() {
        return Err(Failure::Run(format!(
            "the commit is not wholly undone, and what it has replaced or removed is kept: {}: move that to where it belongs, \
             then commutant try recover {}",
            kept.join(", "),
            workspace.path.display()
        )));
    }
    stops::may_end_here();
    remove_staged(workspace, tree, steps)?;
    journal::forget(workspace)
}

/// The path of what a step has on the stage, for messages.
fn staged_path(workspace: &Workspace, step: &Step) -> String {
    match step.at {
        Where::Workspace => workspace.path.join("stage").join(&step.name).display().to_string(),
        Where::Beside => step.place.parent().unwrap_or_else(Place::root).join(step.name.as_bytes()).to_string(),
    }
}

/// Gives steps of a journal the number that their file system has now: after a restart it may be another one.
///
/// The stage lies on the file system of all steps that are staged in the workspace, and the journal as well.
pub(crate) fn renumber(workspace: &Workspace, tree: &Tree, mut steps: Vec<Step>) -> Result<Vec<Step>, Failure> {
    let device = rustix::fs::fstat(open_stage(workspace)?).map_err(Failure::calling(workspace.path.display()))?.st_dev;
    let then: BTreeSet<u64> =
        steps.iter_mut().filter(|step| step.at == Where::Workspace).flat_map(Step::devices).map(|own| *own).collect();
    let other = |place: &dyn std::fmt::Display| {
        Failure::Run(format!(
            "{place}: its file system is another one than when the commit was decided, or has another number: mount what was \
             mounted then, and try again; nothing was done, and {} is kept",
            workspace.path.display()
        ))
    };
    if !then.is_empty() && !then.contains(&device) {
        if then.len() > 1 {
            return Err(other(&workspace.path.display()));
        }
        let own = steps.iter_mut().filter(|step| step.at == Where::Workspace);
        own.flat_map(Step::devices).for_each(|number| *number = device);
    }
    for step in &mut steps {
        let (Where::Beside, Does::Create { new } | Does::Replace { new, .. }) = (step.at, &step.does) else { continue };
        let Ok(parent) = tree.open_parent(&step.place) else { continue };
        if rustix::fs::fstat(&parent).map_err(Failure::calling(&step.place))?.st_dev != new.device {
            return Err(other(&step.place));
        }
    }
    Ok(steps)
}

/// Removes what is left on the stage.
pub(crate) fn remove_staged(workspace: &Workspace, tree: &Tree, steps: &[Step]) -> Result<(), Failure> {
    let beside =
        steps.iter().filter(|step| step.at == Where::Beside).map(|step| (step.place.clone(), step.name.clone()));
    let beside: BTreeSet<(Place, String)> = beside.chain(journal::read_staged(workspace)?).collect();
    for (place, name) in beside {
        let removed = match tree.open_parent(&place) {
            Ok(parent) => remove_all(&parent, name.as_bytes()),
            Err(error) if crate::tree::is_absence(error) => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(Failure::calling(format!("removing {name} beside {place}")))?;
    }
    stops::may_end_here();
    remove_all(&workspace.directory, b"stage")
        .and_then(|()| rustix::fs::mkdirat(&workspace.directory, "stage", Mode::RWXU))
        .map_err(Failure::calling(format!("emptying {}", workspace.path.join("stage").display())))
}

/// Removes what was replaced, and all that the workspace held: it is published now.
pub(crate) fn clean(workspace: &Workspace, tree: &Tree, steps: &[Step]) -> Result<(), Failure> {
    remove_staged(workspace, tree, steps)?;
    stops::may_end_here();
    workspace.empty()?;
    stops::may_end_here();
    journal::forget(workspace)
}

/// Makes the directories of all steps outlive a power cut.
fn make_durable(workspace: &Workspace, tree: &Tree, steps: &[Step]) -> Result<(), Failure> {
    let parents: BTreeSet<Place> = steps.iter().filter_map(|step| step.place.parent()).collect();
    let is_many = parents.len() > MOST_DIRECTORIES;
    let mut synced = BTreeSet::new();
    for parent in parents {
        let failed = || Failure::calling(format!("making {parent} durable"));
        let opened = match tree.open_at(&parent, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(opened) => opened,
            // A user may change names in a directory that it may not list: the whole file system is synced then.
            Err(Errno::ACCESS) => {
                rustix::fs::syncfs(&workspace.directory).map_err(failed())?;
                continue;
            }
            Err(error) => return Err(failed()(error)),
        };
        let device = rustix::fs::fstat(&opened).map_err(failed())?.st_dev;
        match is_many {
            true if synced.insert(device) => rustix::fs::syncfs(&opened).map_err(failed())?,
            true => {}
            false => rustix::fs::fsync(&opened).map_err(failed())?,
        }
    }
    Ok(())
}
