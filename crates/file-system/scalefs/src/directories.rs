//! The calls on directories: mkdir, rmdir, readdir, chdir, getcwd.

use sync::mutant::planted;

use crate::errno::Errno;
use crate::fields::Fields;
use crate::inode::{InodeNumber, Kind};
use crate::names::{create_new, may_remove, mixed, start_again};
use crate::verbs::{NewObject, Refusal, Standing, Verbs};
use crate::walk::{Follow, Last, MAX_PATH_BYTES, Need, Start, Walk, check_permission, key_in, resolve};

/// Makes a directory.
///
/// POSIX `mkdir`; Linux `do_mkdirat`: permission and sticky bits of `mode` count.
pub fn make_directory<V: Verbs>(verbs: &V, start: Start<V::Node>, path: &[u8], mode: u32) -> Result<(), Errno> {
    let mode = mode & 0o1777 & !verbs.umask();
    create_new(verbs, (start, path), Kind::Directory, NewObject::Directory, mode).map(drop)
}

/// Removes an empty directory. Whoever works in it, or has it open, finds it empty and can make nothing in it.
///
/// POSIX `rmdir`; Linux `do_rmdir`: EINVAL for `.`, ENOTEMPTY for `..`, EBUSY for the root.
pub fn remove_directory<V: Verbs>(verbs: &V, start: Start<V::Node>, path: &[u8]) -> Result<(), Errno> {
    let mut walk = Walk::new(verbs);
    walk.go_to_last(start, path)?;
    let name = match walk.last {
        Last::Name(name) => name,
        Last::Dot => return Err(Errno::EINVAL),
        Last::DotDot => return Err(Errno::ENOTEMPTY),
        Last::Root => return Err(Errno::EBUSY),
    };
    let key = key_in(verbs, walk.directory, name)?;
    loop {
        let found = verbs.look_up(walk.directory, &key).ok_or(Errno::ENOENT)?;
        let victim = verbs.node(&found);
        if !may_remove(verbs, walk.directory, &found, true)? {
            continue;
        }
        match verbs.remove((walk.directory, &key, victim)) {
            Ok(()) => return Ok(()),
            // What has names may have lost its own before.
            Err(Refusal::NotEmpty) if !verbs.still_same(&found) && !planted("scalefs: rmdir forgets its name") => {}
            Err(refusal) => start_again(refusal)?,
        }
    }
}

/// One name of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'n> {
    /// The name.
    pub name: &'n [u8],
    /// Number of what it leads to.
    pub number: InodeNumber,
    /// What it leads to.
    pub kind: Kind,
    /// Where a listing goes on after it (`telldir`); valid whatever happens to the directory meanwhile.
    pub next_cookie: u64,
}

/// Cookies of what every listing begins with; those of names are larger.
const DOT: u64 = 0;
const DOT_DOT: u64 = 1;
const NAMES: u64 = 2;

/// Tells `each` the names of an open directory from a cookie on (0: from the start), with `.` and `..`, until it returns
/// false. Returns the cookie to go on from, or `None` at the end.
///
/// POSIX `readdir`, `seekdir`; not one moment's picture: a name that exists all the time is told once, one that comes or
/// goes meanwhile may be told or not.
pub fn read_directory<V: Verbs>(
    verbs: &V,
    directory: V::Node,
    from: u64,
    mut each: impl FnMut(DirectoryEntry<'_>) -> bool,
) -> Result<Option<u64>, Errno> {
    if verbs.kind(directory) != Kind::Directory {
        return Err(Errno::ENOTDIR);
    }
    let number = |node| verbs.attributes(node, Fields::IDENTITY).number;
    let dots: [(u64, &[u8], V::Node); 2] = [(DOT, b".", directory), (DOT_DOT, b"..", verbs.parent(directory))];
    for (cookie, name, node) in dots {
        let next_cookie = cookie + 1;
        let entry = DirectoryEntry { name, number: number(node), kind: Kind::Directory, next_cookie };
        if cookie >= from && !each(entry) {
            return Ok(Some(next_cookie));
        }
    }
    Ok(verbs.list(directory, from.max(NAMES), &mut |item| {
        each(DirectoryEntry {
            name: item.name,
            number: number(item.node),
            kind: verbs.kind(item.node),
            next_cookie: item.next_cookie,
        })
    }))
}

/// Makes a directory the caller's working directory.
///
/// POSIX `chdir`.
pub fn change_directory<V: Verbs>(verbs: &V, start: Start<V::Node>, path: &[u8]) -> Result<(), Errno> {
    change_directory_to(verbs, resolve(verbs, start, path, Follow::Symlinks)?.node)
}

/// Makes an open directory the caller's working directory (POSIX `fchdir`).
pub fn change_directory_to<V: Verbs>(verbs: &V, node: V::Node) -> Result<(), Errno> {
    if verbs.kind(node) != Kind::Directory {
        return Err(Errno::ENOTDIR);
    }
    check_permission(verbs, node, Need::SEARCH)?;
    enter(verbs, node);
    Ok(())
}

/// Makes a directory the caller's working directory whatever its permissions (a new process, for instance).
///
/// # Panics
/// If it is no directory.
pub fn enter<V: Verbs>(verbs: &V, directory: V::Node) {
    assert!(verbs.kind(directory) == Kind::Directory, "processes work in directories");
    verbs.set_working_directory(directory);
}

/// Writes the path of the working directory into `buffer` and returns it, as it was at one moment.
///
/// POSIX `getcwd`: ERANGE if the buffer is too small, ENOENT if the directory was removed. Names are found by listing
/// each parent, which keeps directories from knowing their own names; a name that changes meanwhile may be missed, and names
/// are found one by one. So the path is then walked twice: what has not changed from the first time to the second was so in
/// between.
pub fn working_directory_path<'b, V: Verbs>(verbs: &V, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    loop {
        let directory = verbs.working_directory();
        let found = find_path(verbs, directory, buffer);
        let is_whole = match found {
            Ok(start) => {
                let before = trace_of_path(verbs, directory, &buffer[start..]);
                before.is_some()
                    && verbs.working_directory() == directory
                    && trace_of_path(verbs, directory, &buffer[start..]) == before
            }
            // A removed directory stays removed.
            Err(Errno::ENOENT) => verbs.is_removed(directory) && verbs.working_directory() == directory,
            Err(_) => true,
        };
        if is_whole || planted("scalefs: the names of a path are found one by one") {
            return found.map(|start| &buffer[start..]);
        }
    }
}

/// Writes the path of a directory into `buffer`, from the last component to the first, so that it ends where the buffer
/// does; returns where it starts.
fn find_path<V: Verbs>(verbs: &V, directory: V::Node, buffer: &mut [u8]) -> Result<usize, Errno> {
    let (mut current, root, mut start) = (directory, verbs.root(), buffer.len());
    while current != root {
        let parent = verbs.parent(current);
        let mut fits = None;
        verbs.list(parent, NAMES, &mut |item| {
            if item.node != current {
                return true;
            }
            fits = Some(start > item.name.len());
            if start > item.name.len() {
                start -= item.name.len();
                buffer[start..start + item.name.len()].copy_from_slice(item.name);
                start -= 1;
                buffer[start] = b'/';
            }
            false
        });
        if !fits.ok_or(Errno::ENOENT)? {
            return Err(if buffer.len() > MAX_PATH_BYTES { Errno::ENAMETOOLONG } else { Errno::ERANGE });
        }
        current = parent;
    }
    if start == buffer.len() {
        start = start.checked_sub(1).ok_or(Errno::ERANGE)?;
        buffer[start] = b'/';
    }
    Ok(start)
}

/// Walks from a directory to the root by the names of a path. A number that two walks give alike if no name of the path has
/// led elsewhere from the first to the second (but for a chance of one in 2^64); none if the path is not the directory's.
fn trace_of_path<V: Verbs>(verbs: &V, directory: V::Node, path: &[u8]) -> Option<u64> {
    let (mut current, root, mut trace) = (directory, verbs.root(), 0_u64);
    for name in path.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        let Standing { parent, moves } = verbs.standing(current);
        let found = verbs.look_up(parent, &verbs.key(name)?).filter(|found| verbs.node(found) == current)?;
        for word in [moves, verbs.trace(&found)] {
            trace = mixed(trace, word);
        }
        current = parent;
    }
    (current == root).then_some(trace)
}
