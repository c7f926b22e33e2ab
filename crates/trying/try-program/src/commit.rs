//! Committing a workspace: ask again, stage, ask once more, decide, publish.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::attributes::Kind;
use crate::changes::{self, Change, Changes, What};
use crate::check::{self, Conflict, Leniency};
use crate::failure::Failure;
use crate::filter::Filter;
use crate::journal;
use crate::layer;
use crate::live::{self, Live};
use crate::looks::Looks;
use crate::merging;
use crate::mounted;
use crate::ownership::Ownership;
use crate::place::Place;
use crate::publish::{self, Published};
use crate::record;
use crate::signals::{self, Phase};
use crate::stage;
use crate::step::Where;
use crate::stops::{self, planted};
use crate::tree::Tree;
use crate::workspace::Workspace;

/// How long a commit waits for another one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const NEXT_LOOK: Duration = Duration::from_millis(5);

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// There was nothing to do.
    Nothing,
    Committed(Changes),
    /// Nothing was changed.
    Refused(Changes, Vec<Conflict>),
}

/// While it lives, no signal but the last one ends this program.
struct Committing;

impl Committing {
    fn new() -> Committing {
        signals::go_to(Phase::Committing);
        Committing
    }
}

impl Drop for Committing {
    fn drop(&mut self) {
        signals::go_to(Phase::Between);
    }
}

/// What a commit may overlook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merging {
    /// Nothing: what the command has seen must be so.
    None,
    /// Names of a directory, and bytes of a file, that others have changed, where the command has changed others of it.
    Disjoint,
}

/// The tree, without what the command did not see.
pub(crate) fn tree_of(workspace: &Workspace) -> Result<Tree, Failure> {
    Tree::open("/".as_ref(), workspace.unseen()).map_err(Failure::doing("/"))
}

/// What a workspace would change now.
pub(crate) fn changes_of(
    workspace: &Workspace,
    tree: &Tree,
    looks: &Looks,
    filter: &Filter,
) -> Result<Changes, Failure> {
    let layer = layer::open(workspace)?;
    let root = layer::read(&layer, workspace.right)?;
    changes::of_layer(&layer, root, tree, looks, &Ownership::current(workspace.right), &|place| filter.wants(place))
}

/// All that the runs in a workspace have seen.
pub(crate) fn looks_of(workspace: &Workspace) -> Result<Looks, Failure> {
    let records = workspace.records()?;
    let mut looks = Vec::new();
    for path in &records {
        looks.extend(record::read(path).map_err(Failure::Input)?);
    }
    Ok(Looks::new(looks))
}

/// One commit at a time on this machine: what one has asked, no other changes before it has published.
pub(crate) fn lock_tree() -> Result<OwnedFd, Failure> {
    let failed = || Failure::calling("waiting for other commits");
    let root =
        rustix::fs::open("/", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(failed())?;
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(&root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(root),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < LONGEST_WAIT => sleep(NEXT_LOOK),
            Err(Errno::WOULDBLOCK) => {
                return Err(Failure::Run(format!(
                    "another process has held the lock of / for {} s: wait for its commit, and try again",
                    LONGEST_WAIT.as_secs()
                )));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed()(error)),
        }
    }
}

/// When others see what a commit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Showing {
    /// Each path at a moment of its own.
    ByPath,
    /// All at one moment.
    AtOnce,
}

/// Commits a workspace, or says why it cannot be.
pub(crate) fn commit(
    workspace: &Workspace,
    filter: &Filter,
    merging: Merging,
    showing: Showing,
) -> Result<Outcome, Failure> {
    if journal::pending(workspace)?.is_some() {
        return Err(Failure::Run(format!(
            "an earlier commit of {0} was cut short: commutant try recover {0}",
            workspace.path.display()
        )));
    }
    let _one_at_a_time = lock_tree()?;
    let _until_the_end = Committing::new();
    let tree = tree_of(workspace)?;
    publish::remove_staged(workspace, &tree, &[])?;
    let looks = looks_of(workspace)?;
    let mut changes = changes_of(workspace, &tree, &looks, filter)?;
    if changes.changes.is_empty() {
        return Ok(Outcome::Nothing);
    }
    refuse_what_would_go_along(workspace, &changes, &looks, filter)?;
    let (lenient, overlaps) = match merging {
        Merging::None => (Leniency::default(), Vec::new()),
        Merging::Disjoint => {
            let (merged, overlaps) = merging::merge_files(workspace, &tree, &mut changes)?;
            (Leniency { listings: true, merged }, overlaps)
        }
    };
    let mut conflicts = check::conflicts(&tree, &looks, &changes, &lenient);
    conflicts.extend(overlaps);
    conflicts.sort_by(|one, other| one.place.cmp(&other.place));
    conflicts.dedup_by(|next, one| next.place == one.place);
    if !conflicts.is_empty() {
        return Ok(Outcome::Refused(changes, conflicts));
    }
    let mut live = match showing {
        Showing::ByPath => None,
        Showing::AtOnce => Some(Live::prepare(workspace, &tree, &changes)?),
    };
    let stage = publish::open_stage(workspace)?;
    let staged = stage::places(workspace, &tree, &changes.changes, &stage)?;
    let beside: Vec<(Place, String)> = changes
        .changes
        .iter()
        .zip(&staged)
        .filter(|(_, (at, _))| *at == Where::Beside)
        .map(|(change, (_, name))| (change.place.clone(), name.clone()))
        .collect();
    if !beside.is_empty() {
        journal::write_staged(workspace, &beside)?;
    }
    let prepared = prepare_all(workspace, &tree, &changes, &stage, &staged);
    let steps = prepared.or_else(|failure| publish::remove_staged(workspace, &tree, &[]).and(Err(failure)))?;
    stops::others_may_come("CHECK");
    // Staging took its time.
    let conflicts = check::conflicts(&tree, &looks, &changes, &lenient);
    if !conflicts.is_empty() && !planted("try-program: nothing is asked after staging") {
        publish::remove_staged(workspace, &tree, &[])?;
        journal::forget(workspace)?;
        return Ok(Outcome::Refused(changes, conflicts));
    }
    stops::may_end_here();
    if !planted("try-program: steps come before the decision") {
        journal::decide(workspace, &steps)?;
    }
    stops::others_may_come("PUBLICATION");
    let covered = live.as_ref().map(Live::below).transpose()?;
    let tree = tree.below(covered);
    if let Some(live) = &mut live {
        live.show()?;
    }
    match publish::publish(workspace, &tree, &steps, &looks, live)? {
        Published::Whole => Ok(Outcome::Committed(changes)),
        Published::Foreign(place, why) => {
            let conflict = conflict_at(&tree, &changes, place, why);
            Ok(Outcome::Refused(changes, vec![conflict]))
        }
        Published::Refused(place, error) => Err(Failure::Run(format!(
            "{place}: {}: nothing was changed; the changes are in {}",
            crate::failure::reason(&error.into()),
            workspace.path.display()
        ))),
    }
}

/// A directory that goes takes all below it along: nothing of that may be what the patterns leave out, or another mount.
fn refuse_what_would_go_along(
    workspace: &Workspace,
    changes: &Changes,
    looks: &Looks,
    filter: &Filter,
) -> Result<(), Failure> {
    let is_directory = |change: &&Change| change.base.as_ref().is_some_and(|base| base.kind == Kind::Directory);
    let goes = |change: &&Change| matches!(change.what, What::Remove | What::Replace);
    let mounts = mounted::places()?;
    for change in changes.changes.iter().filter(is_directory).filter(goes) {
        if let Some(mount) = mounts.iter().find(|mount| mount.is_at_or_below(&change.place)) {
            return Err(Failure::Run(format!(
                "{mount} is a mount, and {} would go as a whole: unmount it, or leave that out; nothing was changed, and the changes are \
                 in {}",
                change.place,
                workspace.path.display()
            )));
        }
        let unwanted = looks.found_below(&change.place).find(|place| !filter.lets_through(place));
        if let Some(unwanted) = unwanted {
            return Err(Failure::input(format!(
                "{unwanted} is left out by -E or -I, but {}, which holds it, would go as a whole: leave that out as well, or nothing \
                 below it; nothing was changed, and the changes are in {}",
                change.place,
                workspace.path.display()
            )));
        }
    }
    Ok(())
}

/// Stages all changes, and makes them durable.
fn prepare_all(
    workspace: &Workspace,
    tree: &Tree,
    changes: &Changes,
    stage: &OwnedFd,
    staged: &[(Where, String)],
) -> Result<Vec<crate::step::Step>, Failure> {
    let layer = layer::open(workspace)?;
    let mut steps = Vec::new();
    for (change, at) in changes.changes.iter().zip(staged) {
        stops::may_end_here();
        steps.push(stage::prepare(&layer, workspace.right, tree, change, stage, at)?);
    }
    let failed = || Failure::calling("making the changes durable");
    rustix::fs::syncfs(stage).map_err(failed())?;
    let mut synced = BTreeSet::new();
    for step in steps.iter().filter(|step| step.at == Where::Beside) {
        let parent = step.place.parent().unwrap_or_else(Place::root);
        let Ok(opened) = tree.open_at(&parent, OFlags::RDONLY | OFlags::DIRECTORY) else { continue };
        if synced.insert(rustix::fs::fstat(&opened).map_err(failed())?.st_dev) {
            rustix::fs::syncfs(&opened).map_err(failed())?;
        }
    }
    // Attributes last: a directory may become one that takes no names.
    steps.sort_by_key(|step| matches!(step.does, crate::step::Does::Attributes { .. }));
    Ok(steps)
}

fn conflict_at(tree: &Tree, changes: &Changes, place: Place, why: String) -> Conflict {
    let found = tree.attributes(&place).ok().flatten();
    let write = changes.changes.iter().flat_map(|change| &change.items).find(|(own, _)| *own == place);
    Conflict {
        question: "version",
        then: "as it was when the commit began".to_owned(),
        now: why,
        write: write.map(|(_, label)| *label),
        changed: found.as_ref().map(|attributes| attributes.changed),
        owner: found.as_ref().map(|attributes| attributes.user),
        place,
    }
}

/// What a recovery has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovered {
    /// No commit was cut short.
    Nothing,
    /// The commit is whole now.
    Finished,
    /// The commit has left no trace; the changes are still in the workspace.
    Undone,
}

/// Ends a commit that was cut short: wholly, or not at all.
pub(crate) fn recover(workspace: &Workspace) -> Result<Recovered, Failure> {
    let _one_at_a_time = lock_tree()?;
    let tree = tree_of(workspace)?;
    live::recover(workspace, &tree)?;
    let pending = match journal::pending(workspace)? {
        Some((journal::Phase::Done, steps)) => Some((journal::Phase::Done, steps)),
        Some((phase, steps)) => Some((phase, publish::renumber(workspace, &tree, steps)?)),
        None => None,
    };
    match pending.filter(|_| !planted("try-program: a recovery forgets what was decided")) {
        None => {
            publish::remove_staged(workspace, &tree, &[])?;
            journal::forget(workspace)?;
            Ok(Recovered::Nothing)
        }
        Some((journal::Phase::Decided, steps)) => {
            match publish::publish(workspace, &tree, &steps, &looks_of(workspace)?, None)? {
                Published::Whole => Ok(Recovered::Finished),
                Published::Foreign(place, why) => {
                    eprintln!("commutant try: {place}: {why}: the commit is undone");
                    Ok(Recovered::Undone)
                }
                Published::Refused(place, error) => {
                    eprintln!(
                        "commutant try: {place}: {}: the commit is undone",
                        crate::failure::reason(&error.into())
                    );
                    Ok(Recovered::Undone)
                }
            }
        }
        Some((journal::Phase::Undoing, steps)) => publish::undo(workspace, &tree, &steps).map(|()| Recovered::Undone),
        Some((journal::Phase::Done, steps)) => publish::clean(workspace, &tree, &steps).map(|()| Recovered::Finished),
    }
}
