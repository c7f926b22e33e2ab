//! What a commit would do to the tree, as a value that summary, check and publication read.
//!
//! Each change is made by one step that is seen whole or not at all: a new directory comes with all that is in it, and a removed
//! one goes so.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};

use rustix::fs::OFlags;

use crate::attributes::{Attributes, Kind};
use crate::failure::Failure;
use crate::layer::{Held, Object};
use crate::looks::Looks;
use crate::ownership::Ownership;
use crate::place::Place;
use crate::question::Answer;
use crate::tree::Tree;

/// What happens at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Something where nothing was.
    Create,
    /// Something instead of what was.
    Replace,
    /// Nothing any more.
    Remove,
    /// The same object with other attributes.
    Attributes,
}

/// How a change is called, as `try` of the shell has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Added,
    Modified,
    Deleted,
    CreatedDirectory,
    ReplacedWithDirectory,
    ChangedAttributes,
}

impl Label {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Label::Added => "added",
            Label::Modified => "modified",
            Label::Deleted => "deleted",
            Label::CreatedDirectory => "created dir",
            Label::ReplacedWithDirectory => "replaced with dir",
            Label::ChangedAttributes => "changed attributes",
        }
    }
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) place: Place,
    pub(crate) what: What,
    /// What is there now.
    pub(crate) base: Option<Attributes>,
    /// What will be there, with all below it.
    pub(crate) object: Option<Object>,
    /// The change, and each one that it brings with it below.
    pub(crate) items: Vec<(Place, Label)>,
    /// Of a file that others have changed as well: its bytes with both changes.
    pub(crate) merged: Option<Vec<u8>>,
}

/// All changes of a layer, and the directories in which it changes names or attributes, or through which it does so.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) changes: Vec<Change>,
    pub(crate) directories: BTreeSet<Place>,
    /// Sockets, which mean nothing without the process that has made them.
    pub(crate) left_out: Vec<Place>,
    /// Changes that are not wanted.
    pub(crate) unwanted: Vec<Place>,
}

impl Changes {
    /// Files whose bytes are merged with those of others.
    pub(crate) fn merged(&self) -> impl Iterator<Item = &Place> {
        self.changes.iter().filter(|change| change.merged.is_some()).map(|change| &change.place)
    }
}

/// What a layer changes in a tree, as far as `wanted` says so of a place.
///
/// `looks` say which time a directory had when the overlay took it into its layer.
pub(crate) fn of_layer(
    layer: &Tree,
    root: Object,
    tree: &Tree,
    looks: &Looks,
    ownership: &Ownership,
    wanted: &dyn Fn(&Place) -> bool,
) -> Result<Changes, Failure> {
    let mut reader = Reader { layer, tree, looks, ownership, wanted, found: Changes::default() };
    reader.merge(&Place::root(), root.names)?;
    reader.found.directories.insert(Place::root());
    Ok(reader.found)
}

struct Reader<'a> {
    layer: &'a Tree,
    tree: &'a Tree,
    looks: &'a Looks,
    ownership: &'a Ownership,
    wanted: &'a dyn Fn(&Place) -> bool,
    found: Changes,
}

impl Reader<'_> {
    /// Names of the layer over those of a directory of the tree; says whether one of them is changed.
    fn merge(&mut self, directory: &Place, names: std::collections::BTreeMap<Vec<u8>, Held>) -> Result<bool, Failure> {
        let mut changes_names = false;
        for (name, held) in names {
            let place = directory.join(&name);
            let base = self.tree.attributes(&place).map_err(Failure::calling(&place))?;
            changes_names |= match held {
                Held::Removed => self.remove(place, base),
                Held::Object(object) => self.put(place, base, object)?,
            };
        }
        Ok(changes_names)
    }

    fn remove(&mut self, place: Place, base: Option<Attributes>) -> bool {
        if base.is_none() {
            return false;
        }
        if !(self.wanted)(&place) {
            self.found.unwanted.push(place);
            return false;
        }
        let items = vec![(place.clone(), Label::Deleted)];
        self.found.changes.push(Change { place, what: What::Remove, base, object: None, items, merged: None });
        true
    }

    fn put(&mut self, place: Place, base: Option<Attributes>, object: Object) -> Result<bool, Failure> {
        let is_directory = object.attributes.kind == Kind::Directory;
        let was_directory = base.as_ref().is_some_and(|base| base.kind == Kind::Directory);
        if is_directory && was_directory && !object.is_opaque {
            return self.merge_directory(place, base, object).map(|()| false);
        }
        let are_files =
            base.as_ref().is_some_and(|base| base.kind == Kind::File && object.attributes.kind == Kind::File);
        // Another file with the same bytes may come instead of one that has more names.
        let may_be_same = are_files && self.looks.may_be_copied(&place);
        if may_be_same && self.is_as_found(&place, base.as_ref()) && self.has_same_data(&place)? {
            self.change_attributes(place, base, object, true)?;
            return Ok(false);
        }
        let mut items = Vec::new();
        let Some(object) = self.pruned(&place, object, base.is_some(), &mut items) else { return Ok(false) };
        let mut object = object;
        if let Some(base) = base.as_ref().filter(|base| base.kind == object.attributes.kind) {
            self.keep_owner(&place, &mut object, base)?;
        }
        let what = if base.is_some() { What::Replace } else { What::Create };
        self.found.changes.push(Change { place, what, base, object: Some(object), items, merged: None });
        Ok(true)
    }

    /// Whether a file is still the version that the command has found. If not, equal bytes are a change of others that happens to be
    /// the command's: of two that count from 0 to 1 one has to count again.
    fn is_as_found(&self, place: &Place, base: Option<&Attributes>) -> bool {
        match (self.looks.name(place), base) {
            (Some(Answer::Attributes(then)), Some(base)) => base.is_same_under_name(then),
            _ => true,
        }
    }

    /// A file that is replaced keeps its group; one of another user could not keep its owner.
    fn keep_owner(&self, place: &Place, object: &mut Object, base: &Attributes) -> Result<(), Failure> {
        let (shown, user) = (self.ownership.shown(base), object.attributes.user);
        if shown.user != base.user && user == shown.user {
            return Err(Failure::Run(format!(
                "{place} belongs to user {}, and would belong to user {user}: leave it out with -E, or run as root",
                base.user
            )));
        }
        self.ownership.restore(&mut object.attributes, base);
        Ok(())
    }

    fn merge_directory(&mut self, place: Place, base: Option<Attributes>, mut object: Object) -> Result<(), Failure> {
        self.found.directories.insert(place.clone());
        let names = std::mem::take(&mut object.names);
        let changes_names = self.merge(&place, names)?;
        self.change_attributes(place, base, object, !changes_names)
    }

    /// Notes a change of attributes, if there is any.
    fn change_attributes(
        &mut self,
        place: Place,
        base: Option<Attributes>,
        object: Object,
        has_time: bool,
    ) -> Result<(), Failure> {
        let Some(now) = &base else { return Ok(()) };
        let failed = || Failure::calling(format!("reading the attributes of {place}"));
        // Others may have changed it since.
        let had_this_time = now.modified == object.attributes.modified
            || self.looks.times(&place).any(|time| time == object.attributes.modified);
        let has_other_time = has_time && !had_this_time;
        let has_other_rights = !self.ownership.shown(now).has_same_rights(&object.attributes);
        let extended = |tree: &Tree| crate::extended::read(tree, &place).map_err(failed());
        let is_change = has_other_time || has_other_rights || extended(self.tree)? != extended(self.layer)?;
        if is_change && !(self.wanted)(&place) {
            self.found.unwanted.push(place);
        } else if is_change {
            let mut object = object;
            self.ownership.restore(&mut object.attributes, now);
            if !has_other_time {
                object.attributes.modified = now.modified;
            }
            let items = vec![(place.clone(), Label::ChangedAttributes)];
            self.found.changes.push(Change {
                place,
                what: What::Attributes,
                base,
                object: Some(object),
                items,
                merged: None,
            });
        }
        Ok(())
    }

    /// An object with what is wanted of it, and nothing that only means something in a layer.
    fn pruned(
        &mut self,
        place: &Place,
        mut object: Object,
        replaces: bool,
        items: &mut Vec<(Place, Label)>,
    ) -> Option<Object> {
        if object.attributes.kind == Kind::Socket {
            self.found.left_out.push(place.clone());
            return None;
        }
        let is_directory = object.attributes.kind == Kind::Directory;
        let label = match (is_directory, replaces) {
            (true, true) => Label::ReplacedWithDirectory,
            (true, false) => Label::CreatedDirectory,
            (false, true) => Label::Modified,
            (false, false) => Label::Added,
        };
        let position = items.len();
        items.push((place.clone(), label));
        let mut names = std::collections::BTreeMap::new();
        for (name, held) in std::mem::take(&mut object.names) {
            if let Held::Object(below) = held
                && let Some(below) = self.pruned(&place.join(&name), below, false, items)
            {
                names.insert(name, Held::Object(below));
            }
        }
        if !(self.wanted)(place) && names.is_empty() {
            items.truncate(position);
            self.found.unwanted.push(place.clone());
            return None;
        }
        object.names = names;
        Some(object)
    }

    fn has_same_data(&self, place: &Place) -> Result<bool, Failure> {
        let failed = || Failure::calling(format!("comparing {place}"));
        let open = |tree: &Tree| tree.open_at(place, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from);
        let (Ok(new), Ok(old)) = (open(self.layer), open(self.tree)) else { return Ok(false) };
        let length = |file: &File| crate::tree::attributes_of(file).map(|attributes| attributes.size_bytes);
        if length(&new).map_err(failed())? != length(&old).map_err(failed())? {
            return Ok(false);
        }
        same_bytes(new, old).map_err(Failure::doing(format!("comparing {place}")))
    }
}

/// Whether two files hold the same bytes.
fn same_bytes(one: File, other: File) -> std::io::Result<bool> {
    const ROOM_BYTES: usize = 1 << 16;
    let (mut one, mut other) = (BufReader::with_capacity(ROOM_BYTES, one), BufReader::with_capacity(ROOM_BYTES, other));
    let (mut here, mut there) = (vec![0; ROOM_BYTES], vec![0; ROOM_BYTES]);
    loop {
        let length = one.read(&mut here)?;
        if length == 0 {
            return Ok(other.read(&mut there)? == 0);
        }
        if let Err(error) = other.read_exact(&mut there[..length]) {
            return if error.kind() == std::io::ErrorKind::UnexpectedEof { Ok(false) } else { Err(error) };
        }
        if here[..length] != there[..length] {
            return Ok(false);
        }
    }
}
