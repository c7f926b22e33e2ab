//! The calls on names of files, with Linux's semantics: open, link, symlink, readlink, unlink, rename.
//!
//! **Check before lock.** Every call first looks without writing. If that shows that the call fails or has nothing to
//! do, it returns; where two names were looked at, or a name and what is in it, what was looked at first is looked at
//! again, so that there was a moment at which all answers were true. Otherwise a verb makes the change and checks again under its locks; if something has changed
//! meanwhile ([`OperationError::Changed`], [`OperationError::Exists`]), the call starts again.
//!
//! **Death of a process** in the middle of a call leaves either all of the call or nothing, once its core is repaired:
//! creation may lose an inode that no name leads to yet; link, unlink and rename have one decision (crate `commit`).
//!
//! A component of a path has 1 to 255 bytes without `/` and NUL.

use sync::mutant::planted;

use crate::attributes::drop_set_ids;
use crate::errno::Errno;
use crate::fault::{OperationError, start_again};
use crate::kind::{Kind, Permissions, SET_GROUP, STICKY};
use crate::object_operations::{NamedNode, NewObject, ObjectOperations, Outcome, TargetName};
use crate::rights::Need;
use crate::walk::{Follow, Last, MAX_PATH_BYTES, Start, Walk, check_path, check_permission, key_in, resolve};

bitflags::bitflags! {
    /// How `open` treats names that exist or do not, and what the file is opened for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct OpenFlags: u32 {
        /// For reading (`O_RDONLY`, `O_RDWR`).
        const READ = 1;
        /// For writing (`O_WRONLY`, `O_RDWR`).
        const WRITE = 2;
        /// `O_CREAT`: the file is created if the name does not exist.
        const CREATE = 4;
        /// `O_EXCL`: with `CREATE`, the name must not exist.
        const EXCLUSIVE = 8;
        /// `O_TRUNC`: an existing regular file is made empty.
        const TRUNCATE = 16;
        /// `O_DIRECTORY`: it must be a directory.
        const DIRECTORY = 32;
        /// `O_NOFOLLOW`: it must not be a symbolic link.
        const NO_FOLLOW = 64;
    }
}

impl OpenFlags {
    /// The name must exist, and is opened for nothing but its attributes.
    pub const NONE: OpenFlags = OpenFlags::empty();
}

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<H> {
    /// Keeps the object, until [`close`].
    pub handle: H,
    /// Whether this call created it: then it is open for whatever was asked for, whatever its permissions say.
    pub is_new: bool,
}

/// What `rename` does if the new name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// It is replaced.
    Replace,
    /// The call fails (`RENAME_NOREPLACE`).
    NoReplace,
    /// It must exist, and gets the old name (`RENAME_EXCHANGE`).
    Exchange,
}

/// Owner, group and mode of an object made in a directory (Linux: `inode_init_owner`).
pub(crate) fn initial_permissions<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    kind: Kind,
    mode: u32,
) -> Result<Permissions, Errno> {
    let credentials = objects.credentials();
    let mut permissions = Permissions { mode, user: credentials.user, group: credentials.group };
    let inherited = objects.inherited_group(directory)?;
    if let Some(group) = inherited.filter(|_| !planted("calls: files do not get their directory's group")) {
        permissions.group = group;
        if kind == Kind::Directory && !planted("calls: directories do not hand their set-group-id bit on") {
            permissions.mode |= SET_GROUP;
        } else if mode & (SET_GROUP | 0o010) == SET_GROUP | 0o010
            && !credentials.is_superuser()
            && !credentials.is_in_group(group)
        {
            permissions.mode &= !SET_GROUP;
        }
    }
    Ok(permissions)
}

/// Whether the caller may remove a name that leads to `victim` (Linux: `may_delete`, `check_sticky`).
fn check_removal<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    victim: V::Node<'v>,
    as_directory: bool,
) -> Result<(), Errno> {
    check_permission(objects, directory, Need::CHANGE_NAMES)?;
    let credentials = objects.credentials();
    if !credentials.is_superuser()
        && objects.keeps_names(directory)?
        && objects.permissions(victim)?.user != credentials.user
        && !planted("calls: a sticky directory keeps no one's names")
    {
        return Err(Errno::EPERM);
    }
    match (as_directory, objects.kind(victim) == Kind::Directory) {
        (true, false) => Err(Errno::ENOTDIR),
        (false, true) => Err(Errno::EISDIR),
        _ => Ok(()),
    }
}

/// Whether the caller may remove a name that was found; false if it does not lead there any more, so that nobody is refused
/// what has gone.
pub(crate) fn may_remove<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    found: &V::Found<'v>,
    as_directory: bool,
) -> Result<bool, Errno> {
    match check_removal(objects, directory, objects.node(found), as_directory) {
        Err(_) if !objects.still_same(found)? && !planted("scalefs: a refusal forgets the name") => Ok(false),
        checked => checked.map(|()| true),
    }
}

/// Whether the caller may make names in a directory (Linux: `may_create`; in a removed one nobody finds a place for them,
/// `lookup_one_qstr_excl`).
fn check_creation<'v, V: ObjectOperations>(objects: &'v V, directory: V::Node<'v>) -> Result<(), Errno> {
    let permission = check_permission(objects, directory, Need::CHANGE_NAMES);
    match permission {
        Err(_) if objects.is_removed(directory)? && !planted("calls: a removed directory asks for rights") => {
            Err(Errno::ENOENT)
        }
        checked => checked,
    }
}

/// Opens a file, which is kept until [`close`]. `mode` is that of a new file, less the
/// caller's mask. `TRUNCATE` is checked here and done by the caller.
///
/// POSIX `open`; Linux `open_last_lookups`, `lookup_open`, `do_open`, `may_open` (fs/namei.c).
///
/// # Errors
/// EEXIST, EISDIR, ENOTDIR, ELOOP, EACCES, EPERM, EINVAL for flags that exclude each other, ENOSPC; those of walking a
/// path.
pub fn open<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    flags: OpenFlags,
    mode: u32,
) -> Result<Opened<V::Handle>, Errno> {
    if flags.contains(OpenFlags::CREATE | OpenFlags::DIRECTORY) {
        return Err(Errno::EINVAL);
    }
    let exclusive = flags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
    let follow = if exclusive || flags.contains(OpenFlags::NO_FOLLOW) { Follow::Nothing } else { Follow::Symlinks };
    if !flags.contains(OpenFlags::CREATE) {
        return open_existing(objects, resolve(objects, start, path, follow)?.node, flags);
    }
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    let mut last = walk.last;
    loop {
        let (directory, name) = match last {
            _ if exclusive && last == Last::Root => return Err(Errno::EEXIST),
            Last::Name(_) if walk.has_slash => return Err(Errno::EISDIR),
            Last::Name(name) => (walk.directory, name),
            Last::Dot | Last::DotDot | Last::Root if exclusive => return Err(Errno::EEXIST),
            Last::Dot | Last::DotDot | Last::Root => return Err(Errno::EISDIR),
        };
        let key = key_in(objects, directory, name)?;
        if exclusive {
            if objects.exists(directory, &key)? {
                return Err(Errno::EEXIST);
            }
        } else if let Some(found) = objects.look_up(directory, &key)? {
            let node = objects.node(&found);
            if objects.kind(node) == Kind::Symlink && follow == Follow::Symlinks {
                walk.follow_last(node)?;
                last = walk.followed_last();
                continue;
            }
            if objects.kind(node) == Kind::Symlink && !planted("calls: creation reports a link before its owner") {
                check_sticky_creation(objects, directory, node)?;
            }
            return open_existing(objects, node, flags);
        }
        check_creation(objects, directory)?;
        let mode = mode & 0o7777 & !objects.umask();
        let permissions = initial_permissions(objects, directory, Kind::Regular, mode)?;
        match objects.create_open(directory, &key, permissions) {
            Ok(handle) => return Ok(Opened { handle, is_new: true }),
            Err(refusal) => start_again(refusal)?,
        }
    }
}

/// Linux: `may_create_in_sticky`, whose exceptions are for regular files and pipes: whoever would create a file where
/// another user has put a symbolic link is told EACCES before ELOOP, the superuser too.
fn check_sticky_creation<'v, V: ObjectOperations>(
    objects: &'v V,
    directory: V::Node<'v>,
    symlink: V::Node<'v>,
) -> Result<(), Errno> {
    let (parent, owner) = (objects.permissions(directory)?, objects.permissions(symlink)?.user);
    let is_public = parent.mode & STICKY != 0 && parent.mode & 0o002 != 0;
    let is_known = owner == parent.user || owner == objects.credentials().user;
    if is_public && !is_known { Err(Errno::EACCES) } else { Ok(()) }
}

/// What `open` needs of an object that exists.
#[inline]
fn need_of(flags: OpenFlags) -> Need {
    let needs_read = if flags.contains(OpenFlags::READ) { Need::READ } else { Need(0) };
    if flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNCATE) { needs_read.with(Need::WRITE) } else { needs_read }
}

fn open_existing<'v, V: ObjectOperations>(
    objects: &'v V,
    node: V::Node<'v>,
    flags: OpenFlags,
) -> Result<Opened<V::Handle>, Errno> {
    let changes = flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNCATE);
    match objects.kind(node) {
        Kind::Directory
            if flags.contains(OpenFlags::CREATE) && !planted("calls: O_CREAT opens directories") || changes =>
        {
            return Err(Errno::EISDIR);
        }
        Kind::Directory => {}
        _ if flags.contains(OpenFlags::DIRECTORY) => return Err(Errno::ENOTDIR),
        Kind::Symlink => return Err(Errno::ELOOP),
        kind if kind.is_outside() => {
            // Linux: `chrdev_open` and `sock_no_open`, where nobody knows what the name is for.
            check_permission(objects, node, need_of(flags))?;
            return Err(Errno::ENXIO);
        }
        _ => {}
    }
    let need = need_of(flags);
    let truncates = flags.contains(OpenFlags::TRUNCATE);
    if let Some(handle) = if truncates { None } else { objects.open_node(node, need) } {
        return Ok(Opened { handle: handle?, is_new: false });
    }
    check_permission(objects, node, need)?;
    if truncates {
        drop_set_ids(objects, node, || objects.permissions(node))?;
    }
    Ok(Opened { handle: objects.retain(node)?, is_new: false })
}

/// Gives up what [`open`] returned.
///
/// # Panics
/// If it is of another instance.
pub fn close<V: ObjectOperations>(objects: &V, handle: V::Handle) {
    objects.release(handle);
}

/// Makes `new` another name of the file `old`. A symbolic link gets another name itself unless `follow` says otherwise.
///
/// POSIX `link`; Linux `do_linkat`, `vfs_link` (fs/namei.c): first the old name, then the new one, then what the old one
/// is (EPERM for a directory).
///
/// # Errors
/// EEXIST, EPERM for a directory, EACCES, ENOSPC; those of walking a path.
pub fn link<'v, V: ObjectOperations>(
    objects: &'v V,
    (old_start, old): (Start<V::Node<'v>>, &[u8]),
    new: (Start<V::Node<'v>>, &[u8]),
    follow: Follow,
) -> Result<(), Errno> {
    loop {
        let mut from = Walk::new(objects);
        from.go_to_last(old_start, old)?;
        let mut last = from.last;
        let old = loop {
            let Last::Name(name) = last else { break None };
            let key = key_in(objects, from.directory, name)?;
            if follow == Follow::Nothing && !from.has_slash {
                // Only whether the old name exists: its object is not read unless it is needed.
                let present = objects.present(from.directory, &key)?.ok_or(Errno::ENOENT)?;
                break Some((key, Old::Present(present)));
            }
            // What it leads to decides how the path goes on.
            let found = objects.look_up(from.directory, &key)?.ok_or(Errno::ENOENT)?;
            match objects.kind(objects.node(&found)) {
                Kind::Symlink => {
                    from.follow_last(objects.node(&found))?;
                    last = from.followed_last();
                }
                kind if from.has_slash && kind != Kind::Directory => return Err(Errno::ENOTDIR),
                _ => break Some((key, Old::Found(found))),
            }
        };
        let Some((key, old)) = old else {
            // A directory: there is nothing that could go meanwhile.
            return Err(refuse_directory(objects, new));
        };
        let linked = link_present(objects, (&from, &key), new, follow);
        match linked {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refusal)) => start_again(refusal)?,
            Err(errno) => {
                let is_as_before = match old {
                    Old::Present(present) => {
                        objects.still_present(&present)? || planted("scalefs: link forgets its old name")
                    }
                    Old::Found(found) => {
                        objects.still_same(&found)? || planted("scalefs: link forgets what its old name led to")
                    }
                };
                if is_as_before {
                    return Err(errno);
                }
            }
        }
    }
}

/// What was seen of the old name of a link: where the path goes on by what is there, that.
enum Old<Present, Found> {
    Present(Present),
    Found(Found),
}

/// Makes another name of what an old one leads to, which was seen to exist.
fn link_present<'v, V: ObjectOperations>(
    objects: &'v V,
    (from, key): (&Walk<'v, '_, V>, &V::Key<'_>),
    new: (Start<V::Node<'v>>, &[u8]),
    follow: Follow,
) -> Result<Outcome<(), V>, Errno> {
    let (to, to_key) = new_link(objects, new)?;
    let Some(source) = objects.look_up(from.directory, key)? else { return Ok(Err(OperationError::Changed)) };
    match objects.kind(objects.node(&source)) {
        // Looked at anew: it may not have been a directory yet when the new name was found to be absent.
        Kind::Directory if planted("scalefs: link refuses a directory by what it saw before") => Err(Errno::EPERM),
        Kind::Directory => {
            let errno = refuse_directory(objects, new);
            if objects.still_same(&source)? { Err(errno) } else { Ok(Err(OperationError::Changed)) }
        }
        // It was none when the path was followed.
        Kind::Symlink if follow == Follow::Symlinks && !planted("scalefs: link follows what it saw before") => {
            Ok(Err(OperationError::Changed))
        }
        _ if from.has_slash => Ok(Err(OperationError::Changed)),
        _ => Ok(objects.add_link(to, &to_key, &source)),
    }
}

/// The directory and the key of what is to be another name: it does not exist, and the caller may make it.
pub(crate) fn new_link<'v, 'n, V: ObjectOperations>(
    objects: &'v V,
    (start, path): (Start<V::Node<'v>>, &'n [u8]),
) -> Result<(V::Node<'v>, V::Key<'n>), Errno> {
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    let Last::Name(name) = walk.last else { return Err(Errno::EEXIST) };
    let key = key_in(objects, walk.directory, name)?;
    if objects.exists(walk.directory, &key)? {
        return Err(Errno::EEXIST);
    }
    if walk.has_slash {
        return Err(Errno::ENOENT);
    }
    check_creation(objects, walk.directory)?;
    Ok((walk.directory, key))
}

/// Why a directory does not become `new`.
fn refuse_directory<'v, V: ObjectOperations>(objects: &'v V, new: (Start<V::Node<'v>>, &[u8])) -> Errno {
    let is_removed = |to| objects.is_removed(to).map_err(Errno::from);
    match new_link(objects, new).and_then(|(to, _)| is_removed(to)) {
        Ok(true) => Errno::ENOENT,
        Ok(false) => Errno::EPERM,
        Err(errno) => errno,
    }
}

/// Makes an object whose name must not exist: what `mkdir` and `symlink` have in common.
///
/// Linux: `filename_create`, `may_create`.
pub(crate) fn create_new<'v, V: ObjectOperations>(
    objects: &'v V,
    (start, path): (Start<V::Node<'v>>, &[u8]),
    kind: Kind,
    object: NewObject<'_>,
    mode: u32,
) -> Result<V::Node<'v>, Errno> {
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    let Last::Name(name) = walk.last else { return Err(Errno::EEXIST) };
    let key = key_in(objects, walk.directory, name)?;
    loop {
        if objects.exists(walk.directory, &key)? {
            return Err(Errno::EEXIST);
        }
        if walk.has_slash && kind != Kind::Directory {
            return Err(Errno::ENOENT);
        }
        check_creation(objects, walk.directory)?;
        if kind.is_device() && !objects.credentials().is_superuser() {
            return Err(Errno::EPERM);
        }
        let permissions = initial_permissions(objects, walk.directory, kind, mode)?;
        match objects.create(walk.directory, &key, object, permissions) {
            Ok(node) => return Ok(node),
            Err(refusal) => start_again(refusal)?,
        }
    }
}

/// Makes a file, or a name for something outside, without opening it; the number of a device, or 0.
///
/// POSIX `mknod`, `mkfifo`; Linux `do_mknodat`, `vfs_mknod`: EPERM for a directory; for a device, of others than the superuser,
/// after all else.
///
/// # Errors
/// EEXIST, EPERM, EINVAL for what cannot be made so, EACCES, ENOSPC; those of walking a path.
pub fn make_node<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
    (kind, device): (Kind, u64),
    mode: u32,
) -> Result<(), Errno> {
    let object = match kind {
        Kind::Regular => NewObject::File,
        Kind::Directory => return Err(Errno::EPERM),
        kind if kind.is_device() => NewObject::Outside(kind, device),
        kind if kind.is_outside() => NewObject::Outside(kind, 0),
        _ => return Err(Errno::EINVAL),
    };
    let mode = mode & 0o7777 & !objects.umask();
    create_new(objects, (start, path), kind, object, mode).map(drop)
}

/// Makes a symbolic link to `target`, which need not exist.
///
/// POSIX `symlink`; Linux `do_symlinkat`.
///
/// # Errors
/// EEXIST, ENOENT for an empty target, ENAMETOOLONG, EACCES, ENOSPC; those of walking a path.
pub fn symlink<'v, V: ObjectOperations>(
    objects: &'v V,
    target: &[u8],
    start: Start<V::Node<'v>>,
    path: &[u8],
) -> Result<(), Errno> {
    check_path(target)?;
    debug_assert!(target.len() <= MAX_PATH_BYTES);
    create_new(objects, (start, path), Kind::Symlink, NewObject::Symlink(target), 0o777).map(drop)
}

/// What a symbolic link leads to.
///
/// POSIX `readlink`; Linux `do_readlinkat`: EINVAL for what is no symbolic link.
///
/// # Errors
/// EINVAL; those of walking a path.
pub fn read_link<'v, V: ObjectOperations>(
    objects: &'v V,
    start: Start<V::Node<'v>>,
    path: &[u8],
) -> Result<V::LinkTarget<'v>, Errno> {
    let node = resolve(objects, start, path, Follow::Nothing)?.node;
    if objects.kind(node) == Kind::Symlink { Ok(objects.link_target(node)?) } else { Err(Errno::EINVAL) }
}

/// Removes a name of anything but a directory.
///
/// POSIX `unlink`; Linux `do_unlinkat` (fs/namei.c): EISDIR for directories, `.` and `..`.
///
/// # Errors
/// EISDIR, EACCES, EPERM; those of walking a path.
pub fn unlink<'v, V: ObjectOperations>(objects: &'v V, start: Start<V::Node<'v>>, path: &[u8]) -> Result<(), Errno> {
    let mut walk = Walk::new(objects);
    walk.go_to_last(start, path)?;
    let Last::Name(name) = walk.last else { return Err(Errno::EISDIR) };
    let key = key_in(objects, walk.directory, name)?;
    loop {
        let found = objects.look_up(walk.directory, &key)?.ok_or(Errno::ENOENT)?;
        let victim = objects.node(&found);
        if walk.has_slash {
            return Err(if objects.kind(victim) == Kind::Directory { Errno::EISDIR } else { Errno::ENOTDIR });
        }
        if !may_remove(objects, walk.directory, &found, false)? {
            continue;
        }
        match objects.remove(NamedNode { directory: walk.directory, key: &key, node: victim }) {
            Ok(()) => return Ok(()),
            Err(refusal) => start_again(refusal)?,
        }
    }
}

/// Gives an object the name `new` instead of `old`. If both are names of one file, nothing happens.
///
/// POSIX `rename`; Linux `do_renameat2`, `vfs_rename` (fs/namei.c), and their order of checks: both directories, EBUSY
/// for `.` and `..`, the old name, the new one, slashes, loops (EINVAL, ENOTEMPTY), one file, permissions, kinds.
///
/// # Errors
/// EEXIST, EBUSY, EINVAL, ENOTEMPTY, EISDIR, ENOTDIR, EACCES, EPERM, ENOSPC; those of walking a path.
pub fn rename<'v, V: ObjectOperations>(
    objects: &'v V,
    (old_start, old): (Start<V::Node<'v>>, &[u8]),
    (new_start, new): (Start<V::Node<'v>>, &[u8]),
    mode: RenameMode,
) -> Result<(), Errno> {
    loop {
        let mut from = Walk::new(objects);
        from.go_to_last(old_start, old)?;
        let mut to = Walk::new(objects);
        to.go_to_last(new_start, new)?;
        let Last::Name(old_name) = from.last else { return Err(Errno::EBUSY) };
        let Last::Name(new_name) = to.last else {
            return Err(if mode == RenameMode::NoReplace { Errno::EEXIST } else { Errno::EBUSY });
        };
        let old_key = key_in(objects, from.directory, old_name)?;
        if from.directory == to.directory && old_name == new_name && !from.has_slash && !to.has_slash {
            // A name and itself: what it leads to is not read.
            return match (objects.exists(from.directory, &old_key)?, mode) {
                (false, _) => Err(Errno::ENOENT),
                (_, RenameMode::NoReplace) => Err(Errno::EEXIST),
                _ => Ok(()),
            };
        }
        if planted("calls: rename measures the new name first") {
            key_in(objects, to.directory, new_name)?;
        }
        let source = objects.look_up(from.directory, &old_key)?.ok_or(Errno::ENOENT)?;
        let new_key = key_in(objects, to.directory, new_name)?;
        let moved = objects.node(&source);
        let mut plan = plan_renaming(objects, (&from, moved), (&to, &new_key), mode);
        if plan.is_err() && from.directory != to.directory {
            // Ancestors were looked at one by one: once more, with a look at all of them before and after.
            let ancestors = || -> Result<(u64, u64), Errno> {
                let of = |directory| objects.fingerprint_of_ancestors(directory);
                Ok((of(from.directory)?, of(to.directory)?))
            };
            let before = ancestors()?;
            plan = plan_renaming(objects, (&from, moved), (&to, &new_key), mode);
            if ancestors()? != before {
                continue;
            }
        }
        let target = match plan {
            Ok(Plan::Move { target }) => target,
            _ if !objects.still_same(&source)? && !planted("scalefs: rename forgets its old name") => {
                continue;
            }
            Ok(Plan::Nothing) => {
                if planted("calls: of two names of one file rename removes one") {
                    let _ = objects.remove(NamedNode { directory: from.directory, key: &old_key, node: moved });
                }
                return Ok(());
            }
            Err(errno) => return Err(errno),
        };
        let name = NamedNode { directory: from.directory, key: &old_key, node: moved };
        let outcome = match (mode, target.map(|found| objects.node(&found))) {
            (RenameMode::Exchange, Some(node)) => {
                objects.exchange(name, NamedNode { directory: to.directory, key: &new_key, node })
            }
            (_, replaced) => objects.rename(name, TargetName { directory: to.directory, key: &new_key, replaced }),
        };
        match outcome {
            Ok(()) => return Ok(()),
            Err(OperationError::NotEmpty) => {
                // What has names may have lost its own before.
                let is_same = match target {
                    Some(found) => objects.still_same(&source)? && objects.still_same(&found)?,
                    None => false,
                };
                if is_same {
                    return Err(Errno::ENOTEMPTY);
                }
            }
            Err(refusal) => start_again(refusal)?,
        }
    }
}

/// What a renaming is to do, from what was seen of its names.
enum Plan<F> {
    /// Both are names of one file.
    Nothing,
    /// Move the old name to the new one, or exchange them.
    Move { target: Option<F> },
}

/// Looks at the new name and checks all that can be checked beforehand. Directories above are looked at one by one;
/// all else is as it was when the new name was looked at, if the old one has led to `moved` from then till now.
fn plan_renaming<'v, V: ObjectOperations>(
    objects: &'v V,
    (from, moved): (&Walk<'v, '_, V>, V::Node<'v>),
    (to, key): (&Walk<'v, '_, V>, &V::Key<'_>),
    mode: RenameMode,
) -> Result<Plan<V::Found<'v>>, Errno> {
    let target = match mode {
        RenameMode::NoReplace if objects.exists(to.directory, key)? => {
            return Err(Errno::EEXIST);
        }
        RenameMode::NoReplace if !planted("scalefs: what must not be there is replaced") => None,
        _ => objects.look_up(to.directory, key)?,
    };
    let replaced = target.map(|found| objects.node(&found));
    let is_one_file = replaced == Some(moved);
    let checked = check_kinds_and_places(objects, (from, moved), (to, replaced), mode)
        .and_then(|()| if is_one_file { Ok(()) } else { check_rights(objects, (from, moved), (to, replaced), mode) });
    match checked {
        Err(_) if replaced.is_none() && objects.is_removed(to.directory)? => Err(Errno::ENOENT),
        Err(errno) => Err(errno),
        Ok(()) if is_one_file => Ok(Plan::Nothing),
        Ok(()) => Ok(Plan::Move { target }),
    }
}

fn check_kinds_and_places<'v, V: ObjectOperations>(
    objects: &'v V,
    (from, moved): (&Walk<'v, '_, V>, V::Node<'v>),
    (to, replaced): (&Walk<'v, '_, V>, Option<V::Node<'v>>),
    mode: RenameMode,
) -> Result<(), Errno> {
    let is_directory = objects.kind(moved) == Kind::Directory;
    if mode == RenameMode::Exchange {
        let other = replaced.ok_or(Errno::ENOENT)?;
        if to.has_slash && objects.kind(other) != Kind::Directory {
            return Err(Errno::ENOTDIR);
        }
    }
    if !is_directory && (from.has_slash || to.has_slash && mode != RenameMode::Exchange) {
        return Err(Errno::ENOTDIR);
    }
    if from.directory != to.directory {
        if is_directory && objects.is_above(moved, to.directory)? {
            return Err(Errno::EINVAL);
        }
        let is_replaced_above = replaced.map(|other| objects.is_above(other, from.directory)).transpose()?;
        if is_replaced_above == Some(true) {
            let is_exchange = mode == RenameMode::Exchange && !planted("calls: no exchange with a directory above");
            return Err(if is_exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
        }
    }
    Ok(())
}

fn check_rights<'v, V: ObjectOperations>(
    objects: &'v V,
    (from, moved): (&Walk<'v, '_, V>, V::Node<'v>),
    (to, replaced): (&Walk<'v, '_, V>, Option<V::Node<'v>>),
    mode: RenameMode,
) -> Result<(), Errno> {
    let is_directory = |node| objects.kind(node) == Kind::Directory;
    check_removal(objects, from.directory, moved, is_directory(moved))?;
    let exchanged = replaced.filter(|_| mode == RenameMode::Exchange);
    match (replaced, exchanged) {
        (None, _) => check_permission(objects, to.directory, Need::CHANGE_NAMES)?,
        (_, Some(other)) => check_removal(objects, to.directory, other, is_directory(other))?,
        (Some(other), None) => check_removal(objects, to.directory, other, is_directory(moved))?,
    }
    if from.directory != to.directory && !planted("calls: directories move without the right to write them") {
        // A directory's `..` changes with its parent.
        for node in [Some(moved), exchanged].into_iter().flatten().filter(|node| is_directory(*node)) {
            check_permission(objects, node, Need::WRITE)?;
        }
    }
    Ok(())
}
