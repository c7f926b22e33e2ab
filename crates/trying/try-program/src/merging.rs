//! Files that the command and others have changed since the command has read them: one file with both changes.

use std::collections::HashSet;
use std::fs::File;

use rustix::fs::OFlags;

use crate::attributes::{Attributes, Kind};
use crate::changes::{Change, Changes, What};
use crate::check::{Conflict, version};
use crate::failure::Failure;
use crate::layer;
use crate::looks::Looks;
use crate::merge;
use crate::place::Place;
use crate::question::{Answer, Question};
use crate::record::{self, Kept};
use crate::tree::{Tree, read_at};
use crate::view::data::settled_attributes;
use crate::workspace::Workspace;

/// Three versions of a file lie in memory while they are put together.
const LONGEST_BYTES: u64 = 64 << 20;

/// Merges each file that can be merged. Says which places are settled so, and where both have changed the same bytes.
///
/// It can be merged if one run of the workspace has read all of it, and no other run anything of it: the version that was read is one.
pub(crate) fn merge_files(
    workspace: &Workspace,
    tree: &Tree,
    changes: &mut Changes,
) -> Result<(HashSet<Place>, Vec<Conflict>), Failure> {
    let mut runs = Vec::new();
    for path in workspace.records()? {
        let kept = workspace.read_of(&path);
        let looks = Looks::new(record::read(&path).map_err(Failure::Input)?);
        runs.push((looks, Kept::open(&kept).map_err(Failure::doing(kept.display()))?));
    }
    let layer = layer::open(workspace)?;
    let (mut settled, mut overlaps) = (HashSet::new(), Vec::new());
    for change in &mut changes.changes {
        let Some((then, now)) = versions(&runs, change) else { continue };
        let Some(read) = version_read(&runs, &change.place) else { continue };
        let Some(ours) = whole(&layer, &change.place)? else { continue };
        let Some(theirs) = whole(tree, &change.place)?.filter(|theirs| theirs.1.is_same_version(&now)) else {
            continue;
        };
        match merge::merged(&read, &ours.0, &theirs.0) {
            Ok(bytes) => change.merged = Some(bytes),
            Err(bytes) => overlaps.push(Conflict {
                question: Question::what(&Question::Data { offset: 0, length_bytes: 0 }),
                then: version(&then),
                now: format!("{}; both have changed it from byte {} to {}", version(&now), bytes.start, bytes.end),
                write: change.items.first().map(|(_, label)| *label),
                changed: Some(now.changed),
                owner: Some(now.user),
                place: change.place.clone(),
            }),
        }
        settled.insert(change.place.clone());
    }
    Ok((settled, overlaps))
}

/// Of a file that is to be replaced and is not as it was found: both versions.
fn versions(runs: &[(Looks, Option<Kept>)], change: &Change) -> Option<(Attributes, Attributes)> {
    let (What::Replace, Some(now), Some(object)) = (change.what, &change.base, &change.object) else { return None };
    let is_short = |file: &Attributes| file.kind == Kind::File && file.size_bytes <= LONGEST_BYTES;
    let found = runs.iter().find_map(|(looks, _)| looks.name(&change.place));
    let Some(Answer::Attributes(then)) = found else { return None };
    let is_changed = !now.is_same_version(then);
    (is_changed && [then, now, &object.attributes].into_iter().all(is_short)).then(|| (then.clone(), now.clone()))
}

fn version_read(runs: &[(Looks, Option<Kept>)], place: &Place) -> Option<Vec<u8>> {
    let is_data = |(question, _): &(Question, Answer)| matches!(question, Question::Data { .. });
    let mut readers = runs.iter().filter(|(looks, _)| looks.of(place).iter().any(is_data));
    let (Some((looks, Some(kept))), None) = (readers.next(), readers.next()) else { return None };
    kept.version_read(looks, place)
}

/// A file's bytes, and its attributes while they were read; `None` if it changes all the time, or is none.
fn whole(tree: &Tree, place: &Place) -> Result<Option<(Vec<u8>, Attributes)>, Failure> {
    let failed = || Failure::calling(format!("merging {place}"));
    let Ok(file) = tree.open_at(place, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from) else { return Ok(None) };
    let before = settled_attributes(&file).map_err(failed())?;
    if before.kind != Kind::File || before.size_bytes > LONGEST_BYTES {
        return Ok(None);
    }
    let mut bytes = vec![0; before.size_bytes as usize];
    let length = read_at(&file, &mut bytes, 0).map_err(failed())?;
    let after = settled_attributes(&file).map_err(failed())?;
    Ok((length == bytes.len() && before.is_same_version(&after)).then_some((bytes, before)))
}
