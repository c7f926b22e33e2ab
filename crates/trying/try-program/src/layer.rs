//! The layer of changes, as the overlay has left it.
//!
//! ```text
//! a character device 0:0          the name is removed
//! a directory, merged             its own names over those of the tree
//! a directory, opaque             its own names alone: what was there is removed
//! anything else                   is there instead of what was
//! ```

use std::collections::BTreeMap;
use std::fs::File;

use rustix::fs::OFlags;

use crate::attributes::{Attributes, Kind};
use crate::failure::Failure;
use crate::machine::Right;
use crate::place::Place;
use crate::tree::{Tree, attributes_of, listing_of};
use crate::workspace::Workspace;

/// The layer of changes of a workspace.
pub(crate) fn open(workspace: &Workspace) -> Result<Tree, Failure> {
    let upper = workspace.path.join("upper");
    Tree::open(&upper, []).map_err(Failure::doing(upper.display()))
}

/// What a name of the layer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It is removed.
    Removed,
    Object(Object),
}

/// An object of the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) attributes: Attributes,
    /// Of a directory: whether nothing of the tree shows through.
    pub(crate) is_opaque: bool,
    /// Of a directory.
    pub(crate) names: BTreeMap<Vec<u8>, Held>,
}

/// Reads a layer from its root on.
pub(crate) fn read(layer: &Tree, right: Right) -> Result<Object, Failure> {
    read_at(layer, &Place::root(), right)
}

fn read_at(layer: &Tree, place: &Place, right: Right) -> Result<Object, Failure> {
    let failed = || Failure::calling(format!("reading the changes at {place}"));
    let opened = layer.open_at(place, OFlags::PATH).map_err(failed())?;
    let attributes = attributes_of(&File::from(opened)).map_err(failed())?;
    let mut object = Object { attributes, is_opaque: false, names: BTreeMap::new() };
    if object.attributes.kind != Kind::Directory {
        return Ok(object);
    }
    let directory = layer.open_at(place, OFlags::RDONLY | OFlags::DIRECTORY).map_err(failed())?;
    let mut value = [0; 8];
    let opaque = format!("{}opaque", right.overlay_prefix());
    object.is_opaque =
        rustix::fs::fgetxattr(&directory, opaque, &mut value[..]).is_ok_and(|length| value[..length] == *b"y");
    for (name, kind) in listing_of(&directory).map_err(failed())? {
        let below = read_at(layer, &place.join(&name), right)?;
        let is_removal = kind == Kind::CharacterDevice && below.attributes.special == 0;
        object.names.insert(name, if is_removal { Held::Removed } else { Held::Object(below) });
    }
    Ok(object)
}
