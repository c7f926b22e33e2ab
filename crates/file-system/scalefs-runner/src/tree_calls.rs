//! Calls on paths of one or two components below the root: `posix`. Their paths lie below what stands for the root of a
//! window's test, where each name has the window's end; what a test has made goes when the window is cleaned.

use posix_calls::{Attributes, Errno, Fields, Follow, Kind, ObjectOperations, OpenFlags};
use runner::arguments::Arguments;
use wire::value::Value;

use crate::calls;
use crate::name_calls::{NameCall, Named, Path};
use crate::values::PAGE_BYTES;

/// A call of directories and symbolic links.
#[derive(Debug, Clone, Copy)]
pub enum TreeCall {
    MakeDirectory,
    RemoveDirectory,
    /// The first path is where it leads.
    MakeSymlink,
    ReadLink,
    Stat(Follow),
}

impl TreeCall {
    /// Makes the call on paths, of which most have one; where a link leads comes into the page.
    ///
    /// # Errors
    /// Those of the call.
    pub fn perform<V: ObjectOperations>(
        self,
        objects: &V,
        paths: &[Path; 2],
        page: &mut [u8; PAGE_BYTES],
    ) -> Result<Named<V::Handle>, Errno> {
        let first = paths[0].bytes();
        let done = |()| Named::Done;
        match self {
            Self::MakeDirectory => calls::mkdir(objects, first).map(done),
            Self::RemoveDirectory => calls::rmdir(objects, first).map(done),
            Self::MakeSymlink => calls::symlink(objects, first, paths[1].bytes()).map(done),
            Self::ReadLink => calls::readlink(objects, first, page).map(Named::Leads),
            Self::Stat(Follow::Symlinks) => calls::stat(objects, first, Fields::LINK_COUNT).map(Named::Status),
            Self::Stat(_) => calls::lstat(objects, first, Fields::LINK_COUNT).map(Named::Status),
        }
    }
}

/// What a call on paths is, and where the parameters of each of its paths begin; None for any other call.
///
/// # Errors
/// An argument is not of the kind that the call takes.
pub fn call(
    name: &str,
    parameters: &[&str],
    arguments: &Arguments<'_>,
) -> Result<Option<(NameCall, &'static [usize])>, String> {
    if !parameters.iter().any(|parameter| parameter.ends_with("deep")) {
        return Ok(None);
    }
    let found = match name {
        "mkdir" => NameCall::Tree(TreeCall::MakeDirectory),
        "rmdir" => NameCall::Tree(TreeCall::RemoveDirectory),
        "symlink" => NameCall::Tree(TreeCall::MakeSymlink),
        "readlink" => NameCall::Tree(TreeCall::ReadLink),
        "stat" => NameCall::Tree(TreeCall::Stat(Follow::Symlinks)),
        "lstat" => NameCall::Tree(TreeCall::Stat(Follow::Nothing)),
        "link" => NameCall::Link,
        "rename" => NameCall::Rename,
        "unlink" => NameCall::Unlink,
        "access" => NameCall::Access,
        "open" => {
            let mut flags = OpenFlags::READ | OpenFlags::WRITE;
            for (parameter, flag) in [(3, OpenFlags::CREATE), (4, OpenFlags::EXCLUSIVE)] {
                // Without O_CREAT, O_EXCL says nothing on Linux.
                if arguments.flag(parameter)? && arguments.flag(3)? {
                    flags |= flag;
                }
            }
            NameCall::Open(flags)
        }
        other => return Err(format!("{other} takes no path of two components")),
    };
    let at: &'static [usize] = match name {
        "link" | "rename" => &[0, 3],
        "symlink" => &[1], // behind where it leads
        _ => &[0],
    };
    Ok(Some((found, at)))
}

/// The result of `stat` and `lstat`: of a directory no link count.
pub fn status(attributes: Attributes) -> Value<'static> {
    let identity = |sort: &'static str| Value::Opaque { sort: sort.into(), id: attributes.number.0 };
    let (kind, file, directory, links) = match attributes.kind {
        Kind::Directory => (2, Value::Null, identity("Directory"), Value::Null),
        Kind::Symlink => (3, identity("Inum"), Value::Null, Value::Int(attributes.link_count.into())),
        _ => (1, identity("Inum"), Value::Null, Value::Int(attributes.link_count.into())),
    };
    Value::Struct(vec![
        ("kind".into(), Value::Int(kind)),
        ("ino".into(), file),
        ("directory".into(), directory),
        ("nlink".into(), links),
    ])
}
