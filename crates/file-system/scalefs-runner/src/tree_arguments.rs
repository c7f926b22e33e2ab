//! Which call a test means by its name where paths have two components, and what its result is to the test.

use posix_calls::{Attributes, Fields, Follow, Kind};
use runner::arguments::Arguments;
use wire::value::Value;

use crate::name_calls::NameCall;
use crate::tree_calls::TreeCall;
use crate::values::pages_of;

/// What a call on paths is, and where the parameters of each of its paths begin; None for any other call.
///
/// # Errors
/// An argument is not of the kind that the call takes.
pub fn call(
    name: &str,
    parameters: &[&str],
    arguments: &Arguments<'_>,
) -> Result<Option<(NameCall, &'static [usize])>, String> {
    const HAVE_NO_RESULT_OF_THEIR_OWN: [&str; 5] = ["open", "truncate", "place_file", "own_path", "peek_path"];
    if HAVE_NO_RESULT_OF_THEIR_OWN.contains(&name) || !parameters.iter().any(|parameter| parameter.ends_with("deep")) {
        return Ok(None);
    }
    let found = match name {
        "mkdir" => NameCall::Tree(TreeCall::MakeDirectory),
        "rmdir" => NameCall::Tree(TreeCall::RemoveDirectory),
        "symlink" => NameCall::Tree(TreeCall::MakeSymlink),
        "readlink" => NameCall::Tree(TreeCall::ReadLink),
        "stat" => NameCall::Tree(TreeCall::Stat(Follow::Symlinks, ALL)),
        "lstat" => NameCall::Tree(TreeCall::Stat(Follow::Nothing, ALL)),
        "link" => NameCall::Link,
        "rename" => NameCall::Rename,
        "unlink" => NameCall::Unlink,
        "statx" => {
            let mut fields = Fields::IDENTITY;
            for (parameter, asked) in [(3, Fields::LINK_COUNT), (4, Fields::SIZE), (5, Fields::TIMES), (6, RIGHTS)] {
                if arguments.flag(parameter)? {
                    fields |= asked;
                }
            }
            NameCall::Tree(TreeCall::Stat(Follow::Symlinks, fields))
        }
        "access" => NameCall::Tree(TreeCall::Access { write: arguments.flag(3)? }),
        "chmod" => NameCall::Tree(TreeCall::ChangeMode(mode(arguments, 3)?)),
        "chown" => NameCall::Tree(TreeCall::ChangeOwner(user(arguments, 3)?)),
        "utimensat" => NameCall::Tree(TreeCall::SetTimes),
        other => return Err(format!("{other} takes no path of two components")),
    };
    let at: &'static [usize] = match name {
        "link" | "rename" => &[0, 3],
        "symlink" => &[1], // behind where it leads
        _ => &[0],
    };
    Ok(Some((found, at)))
}

/// What is told of the rights of something.
pub const RIGHTS: Fields = Fields::PERMISSIONS;
/// All that the model knows.
pub const ALL: Fields = Fields::LINK_COUNT.union(Fields::SIZE).union(Fields::TIMES).union(RIGHTS);

/// Users of tests other than the superuser have numbers above this.
pub const USERS: u32 = 1000;

/// The bits of a mode for who may write; all may read, and search directories.
///
/// # Errors
/// An argument is not of the kind that the call takes.
pub fn mode(arguments: &Arguments<'_>, first: usize) -> Result<u32, String> {
    let owner = if arguments.flag(first)? { 0o200 } else { 0 };
    let others = if arguments.flag(first + 1)? { 0o022 } else { 0 };
    Ok(0o555 | owner | others)
}

/// The number of a test's user to the file system.
///
/// # Errors
/// The test has more users than there are processes for.
pub fn user(arguments: &Arguments<'_>, parameter: usize) -> Result<u32, String> {
    match arguments.number(parameter)? {
        0 => Ok(0),
        number @ 1..=99 => Ok(USERS + number as u32),
        number => Err(format!("user {number}: expected 0 to 99")),
    }
}

/// The result of `stat` and its kin: of a directory neither link count nor size nor times, of a link neither size nor rights.
pub fn status(attributes: Attributes, fields: Fields, times: bool) -> Value<'static> {
    let Attributes { kind, .. } = attributes;
    let (of_directory, of_link) = (kind == Kind::Directory, kind == Kind::Symlink);
    let only = |told: bool, value: Value<'static>| if told { value } else { Value::Null };
    let identity = |sort: &'static str| Value::Opaque { sort: sort.into(), id: attributes.number.0 };
    let asked = |field| fields.contains(field);
    let has_times = times && asked(Fields::TIMES) && !of_directory;
    let has_rights = asked(RIGHTS) && !of_link;
    let may = |bit: u32| only(has_rights, Value::Bool(attributes.mode & bit != 0));
    let owner = attributes.user.saturating_sub(if attributes.user == 0 { 0 } else { USERS });
    Value::Struct(vec![
        (
            "kind".into(),
            Value::Int(if of_directory {
                2
            } else if of_link {
                3
            } else {
                1
            }),
        ),
        ("ino".into(), only(!of_directory && !of_link, identity("Inum"))),
        ("link".into(), only(of_link, identity("LinkNumber"))),
        ("directory".into(), only(of_directory, identity("Directory"))),
        ("nlink".into(), only(asked(Fields::LINK_COUNT) && !of_directory, Value::Int(attributes.link_count.into()))),
        ("size".into(), only(asked(Fields::SIZE) && !of_directory && !of_link, pages_of(attributes.size_bytes))),
        ("mtime".into(), only(has_times, Value::Time(attributes.modified_ns))),
        ("ctime".into(), only(has_times, Value::Time(attributes.changed_ns))),
        ("owner".into(), only(has_rights, Value::Int(owner.into()))),
        ("owner_writes".into(), may(0o200)),
        ("others_write".into(), may(0o002)),
    ])
}
