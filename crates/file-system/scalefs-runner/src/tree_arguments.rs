//! Which call a test means by its name where paths have two components, and what its result is to the test.

use posix_calls::{Attributes, Follow, Kind, OpenFlags};
use runner::arguments::Arguments;
use wire::value::Value;

use crate::name_calls::NameCall;
use crate::tree_calls::TreeCall;

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
