//! The calls on directories: mkdir, rmdir, readdir, chdir, getcwd.

use sync::mutant::planted;

use crate::errno::Errno;
use crate::fault::{OperationError, start_again};
use crate::fields::Fields;
use crate::kind::{InodeNumber, Kind};
use crate::names::{create_new, may_remove};
use crate::object_operations::{NamedNode, NewObject, ObjectOperations, ParentLink, mixed};
use crate::rights::Need;
use crate::walk::{Follow, Last, MAX_PATH_BYTES, Start, Walk, check_permission, key_in, resolve};

/// Makes a directory.
///
/// POSIX `mkdir`; Linux `do_mkdirat`: permission and sticky bits of `mode` count.
///
/// # Errors
/// EEXIST, EACCES, ENOSPC; those of walking a path, as [`attributes::stat`](crate::attributes::stat).
pub fn make_directory<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    mode: u32,
) -> Result<(), Errno> {
    let mode = mode & 0o1777 & !objects.umask();
    create_new(objects, (start, path), Kind::Directory, NewObject::Directory, mode).map(drop)
}

/// Removes an empty directory. Whoever works in it, or has it open, finds it empty and can make nothing in it.
///
/// POSIX `rmdir`; Linux `do_rmdir`: EINVAL for `.`, ENOTEMPTY for `..`, EBUSY for the root.
///
/// # Errors
/// ENOTEMPTY, ENOTDIR, EINVAL, EBUSY, EACCES, EPERM; those of walking a path.
pub fn remove_directory<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
) -> Result<(), Errno> {
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    let name = match walk.last {
        Last::Name(name) => name,
        Last::Dot => return Err(Errno::EINVAL),
        Last::DotDot => return Err(Errno::ENOTEMPTY),
        Last::Root => return Err(Errno::EBUSY),
    };
    let key = key_in(objects, walk.directory, name)?;
    loop {
        let found = objects.look_up(walk.directory, &key)?.ok_or(Errno::ENOENT)?;
        let victim = objects.node(&found);
        if !may_remove(objects, walk.directory, &found, true)? {
            continue;
        }
        match objects.remove(NamedNode { directory: walk.directory, key: &key, node: victim }) {
            Ok(()) => return Ok(()),
            // What has names may have lost its own before.
            Err(OperationError::NotEmpty)
                if !objects.still_same(&found)? && !planted("scalefs: rmdir forgets its name") => {}
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
///
/// # Errors
/// ENOTDIR if it is no directory, ENOENT if it was removed.
pub fn read_directory<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    from: u64,
    mut each: impl FnMut(DirectoryEntry<'_>) -> bool,
) -> Result<Option<u64>, Errno> {
    if objects.kind(directory) != Kind::Directory {
        return Err(Errno::ENOTDIR);
    }
    let number = |node| objects.attributes(node, Fields::IDENTITY).map(|attributes| attributes.number);
    let dots: [(u64, &[u8], V::Node<'v>); 2] = [(DOT, b".", directory), (DOT_DOT, b"..", objects.parent(directory)?)];
    for (cookie, name, node) in dots {
        let next_cookie = cookie + 1;
        let entry = DirectoryEntry { name, number: number(node)?, kind: Kind::Directory, next_cookie };
        if cookie >= from && !each(entry) {
            return Ok(Some(next_cookie));
        }
    }
    let mut fault = Ok(());
    let next = objects.list(directory, from.max(NAMES), &mut |item| match number(item.node) {
        Ok(number) => each(DirectoryEntry {
            name: item.name,
            number,
            kind: objects.kind(item.node),
            next_cookie: item.next_cookie,
        }),
        Err(failed) => {
            fault = Err(failed);
            false
        }
    })?;
    fault?;
    Ok(next)
}

/// Makes a directory the caller's working directory.
///
/// POSIX `chdir`.
///
/// # Errors
/// ENOTDIR, EACCES; those of walking a path.
pub fn change_directory<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
) -> Result<(), Errno> {
    change_directory_to(objects, resolve(objects, start, path, Follow::Symlinks)?.node)
}

/// Makes an open directory the caller's working directory (POSIX `fchdir`).
///
/// # Errors
/// ENOTDIR if it is no directory, EACCES if the caller may not search it.
pub fn change_directory_to<'v, V: ObjectOperations>(objects: &'v V, node: V::Node<'v>) -> Result<(), Errno> {
    if objects.kind(node) != Kind::Directory {
        return Err(Errno::ENOTDIR);
    }
    check_permission(objects, node, Need::SEARCH)?;
    Ok(objects.set_working_directory(node)?)
}

/// Makes a directory the caller's working directory whatever its permissions (a new process, for instance).
///
/// # Errors
/// The implementation's fault alone.
///
/// # Panics
/// If it is no directory.
pub fn enter<'v, V: ObjectOperations>(objects: &'v V, directory: V::Node<'v>) -> Result<(), Errno> {
    assert!(objects.kind(directory) == Kind::Directory, "processes work in directories");
    Ok(objects.set_working_directory(directory)?)
}

/// Writes the path of the working directory into `buffer` and returns it, as it was at one moment.
///
/// POSIX `getcwd`: ERANGE if the buffer is too small, ENOENT if the directory was removed. Names are found by listing
/// each parent, which keeps directories from knowing their own names; a name that changes meanwhile may be missed, and names
/// are found one by one. So the path is then walked twice: what has not changed from the first time to the second was so in
/// between.
///
/// # Errors
/// ERANGE, ENOENT, ENAMETOOLONG.
pub fn working_directory_path<'b, V: ObjectOperations>(objects: &V, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    loop {
        let directory = objects.working_directory();
        let stays = || objects.working_directory() == directory;
        if let Some(found) = path_at_one_moment(objects, directory, buffer, stays)? {
            return found.map(|start| &buffer[start..]);
        }
    }
}

/// Whether a path leads over no symbolic link.
///
/// # Errors
/// Those of walking a path.
pub fn is_straight<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
) -> Result<bool, Errno> {
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    walk.resolve(Follow::Symlinks)?;
    Ok(walk.is_straight())
}

/// Writes the path of what a path leads to into `buffer` and returns it: without symbolic links, `.` and `..`, as Linux shows
/// what a process executes (`d_path`). The directories on it are those of one moment; the last name is the one that was walked.
///
/// # Errors
/// EISDIR for a directory, ERANGE, ENOENT; those of walking a path.
pub fn true_path<'v, 'b, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    buffer: &'b mut [u8],
) -> Result<&'b [u8], Errno> {
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    walk.resolve(Follow::Symlinks)?;
    let directory = walk.directory;
    let Last::Name(name) = walk.reached() else { return Err(Errno::EISDIR) };
    let at = buffer.len().checked_sub(name.len() + 1).ok_or(Errno::ERANGE)?;
    buffer[at] = b'/';
    buffer[at + 1..].copy_from_slice(name);
    if directory == objects.root() {
        return Ok(&buffer[at..]);
    }
    loop {
        if let Some(found) = path_at_one_moment(objects, directory, &mut buffer[..at], || true)? {
            return found.map(|start| &buffer[start..]);
        }
    }
}

/// Writes the path of a directory so that it ends where the buffer does, and returns where it starts; none if it has changed
/// meanwhile, or `stays` says so between two looks at it.
fn path_at_one_moment<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    buffer: &mut [u8],
    stays: impl Fn() -> bool,
) -> Result<Option<Result<usize, Errno>>, Errno> {
    let found = find_path(objects, directory, buffer);
    let is_whole = match found {
        Ok(start) => {
            let before = fingerprint_of_path(objects, directory, &buffer[start..])?;
            before.is_some() && stays() && fingerprint_of_path(objects, directory, &buffer[start..])? == before
        }
        // A removed directory stays removed.
        Err(Errno::ENOENT) => objects.is_removed(directory)? && stays(),
        Err(_) => true,
    };
    let is_given = is_whole || planted("scalefs: the names of a path are found one by one");
    Ok(is_given.then_some(found))
}

/// Writes the path of a directory into `buffer`, from the last component to the first, so that it ends where the buffer
/// does; returns where it starts.
fn find_path<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    let (mut current, root, mut start) = (directory, objects.root(), buffer.len());
    while current != root {
        let parent = objects.parent(current)?;
        let mut fits = None;
        objects.list(parent, NAMES, &mut |item| {
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
        })?;
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
fn fingerprint_of_path<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    path: &[u8],
) -> Result<Option<u64>, Errno> {
    let (mut current, root, mut fingerprint) = (directory, objects.root(), 0_u64);
    for name in path.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        let ParentLink { parent, moves } = objects.parent_link(current)?;
        let Some(key) = objects.key(name) else { return Ok(None) };
        let found = objects.look_up(parent, &key)?;
        let Some(found) = found.filter(|found| objects.node(found) == current) else { return Ok(None) };
        for word in [moves, objects.fingerprint(&found)] {
            fingerprint = mixed(fingerprint, word);
        }
        current = parent;
    }
    Ok((current == root).then_some(fingerprint))
}
