//! Extended attributes of an object of a tree, all at once.

use std::collections::BTreeMap;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::place::Place;
use crate::tree::Tree;

/// Values by name, without what overlays keep for themselves.
pub(crate) type Extended = BTreeMap<Vec<u8>, Vec<u8>>;

/// All extended attributes at a place; none where there can be none.
pub(crate) fn read(tree: &Tree, place: &Place) -> rustix::io::Result<Extended> {
    let names = match tree.extended_names(place) {
        Ok(names) => names,
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOENT) => return Ok(Extended::new()),
        Err(error) => return Err(error),
    };
    let mut all = Extended::new();
    for name in names {
        match tree.extended(place, &name) {
            Ok(value) => drop(all.insert(name, value)),
            // Gone by now, or of a kind that is listed but not shown to this user.
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Gives an object, by a path that leads to it, these attributes instead of those that it has.
pub(crate) fn write(path: &str, old: &Extended, new: &Extended) -> rustix::io::Result<()> {
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        match rustix::fs::removexattr(path, name.as_slice()) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(error) => return Err(error),
        }
    }
    for (name, value) in new {
        if old.get(name) != Some(value) {
            rustix::fs::setxattr(path, name.as_slice(), value, XattrFlags::empty())?;
        }
    }
    Ok(())
}
