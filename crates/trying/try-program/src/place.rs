//! A place in the tree: a path from the root, as bytes, without any `.` or `..`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::escape;

/// A path from the root of the tree, without its first slash; the root itself is empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place(Arc<[u8]>);

impl Place {
    /// The root of the tree.
    pub(crate) fn root() -> Place {
        Place(Arc::from(&b""[..]))
    }

    /// What an absolute path names; `None` if it is not absolute, or leads through `..` or an empty name.
    pub(crate) fn of_path(path: &Path) -> Option<Place> {
        Place::of_bytes(path.as_os_str().as_bytes())
    }

    /// As [`Place::of_path`], of the bytes of a path.
    pub(crate) fn of_bytes(path: &[u8]) -> Option<Place> {
        let inner = path.strip_prefix(b"/")?;
        if inner.is_empty() {
            return Some(Place::root());
        }
        let is_plain = |name: &[u8]| !name.is_empty() && name != b"." && name != b".." && !name.contains(&0);
        inner.split(|byte| *byte == b'/').all(is_plain).then(|| Place(Arc::from(inner)))
    }

    /// What a name in this directory leads to.
    pub(crate) fn join(&self, name: &[u8]) -> Place {
        let mut path = Vec::with_capacity(self.0.len() + 1 + name.len());
        path.extend_from_slice(&self.0);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Place(Arc::from(path))
    }

    /// The directory that holds it; `None` of the root.
    pub(crate) fn parent(&self) -> Option<Place> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        Some(Place(Arc::from(&self.0[..end])))
    }

    /// Its name in the directory that holds it; empty of the root.
    pub(crate) fn name(&self) -> &OsStr {
        let start = self.0.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        OsStr::from_bytes(&self.0[start..])
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is `above` or lies below that.
    pub(crate) fn is_at_or_below(&self, above: &Place) -> bool {
        above.is_root() || self.0.strip_prefix(&*above.0).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// The path from the root, without a slash before it.
    pub(crate) fn relative(&self) -> &[u8] {
        &self.0
    }

    /// The absolute path.
    pub(crate) fn absolute(&self) -> Vec<u8> {
        [b"/", &*self.0].concat()
    }
}

impl fmt::Display for Place {
    /// The absolute path; a byte that would disturb a terminal or a line is written as `\xHH`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape::shown(&self.absolute()))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_never_leads_upwards() {
        for path in ["", "etc", "/..", "/etc/../passwd", "/a//b", "/a/./b", "/a/", "/a/b/.."] {
            assert_eq!(Place::of_bytes(path.as_bytes()), None, "{path}");
        }
        assert_eq!(Place::of_bytes(b"/a\0b"), None);
        assert_eq!(Place::of_bytes(b"/").map(|place| place.is_root()), Some(true));
    }

    #[test]
    fn what_is_below_is_known_by_whole_names() {
        let place = |path: &str| Place::of_bytes(path.as_bytes()).expect("a place");
        assert!(place("/a/b").is_at_or_below(&place("/a")));
        assert!(place("/a").is_at_or_below(&place("/a")));
        assert!(!place("/ab").is_at_or_below(&place("/a")));
        assert!(place("/ab").is_at_or_below(&Place::root()));
        assert_eq!(place("/a/b").parent(), Some(place("/a")));
        assert_eq!(place("/a").parent(), Some(Place::root()));
        assert_eq!(place("/a/b").name(), "b");
    }
}
