//! The calls on names of one directory, with Linux's semantics: open, link, unlink, rename, stat, access.
//!
//! **Check before lock.** Every call first looks without writing. If that shows that the call fails or has nothing to
//! do, it returns; where two names were looked at, the first is looked at again, so that there was a moment at which
//! both answers were true. Otherwise a verb makes the change and checks again under its locks; if something has changed
//! meanwhile ([`Refusal::Changed`], [`Refusal::Exists`]), the call starts again.
//!
//! **Death of a process** in the middle of a call leaves either all of the call or nothing, once its core is repaired:
//! creation may lose an inode that no name leads to yet; link, unlink and rename have one decision (crate `commit`).
//!
//! A name is one component of 1 to 255 bytes without `/` and NUL. `.` and `..` both mean the directory.

use crate::errno::Errno;
use crate::inode::Attributes;
use crate::verbs::{FieldChoice, Refusal, Verbs};

/// How `open` treats names that exist or do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFlags {
    /// The name must exist.
    Existing,
    /// `O_CREAT`: the file is created if the name does not exist.
    Create,
    /// `O_CREAT | O_EXCL`: the name must not exist.
    CreateNew,
}

/// What a name means before any directory is asked.
enum Name<'n> {
    /// `.` or `..`.
    Directory,
    /// More than 255 bytes: an error once the name is looked up, and not before.
    TooLong,
    Plain(hashdir::Key<'n>),
}

/// Linux: `getname` and `link_path_walk` (fs/namei.c).
fn parse<'n, V: Verbs>(verbs: &V, name: &'n [u8]) -> Result<Name<'n>, Errno> {
    match name {
        b"" => Err(Errno::ENOENT),
        b"." | b".." => Ok(Name::Directory),
        _ if name.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(Errno::EINVAL),
        _ => Ok(verbs.key(name).map_or(Name::TooLong, Name::Plain)),
    }
}

fn errno_of(refusal: Refusal) -> Option<Errno> {
    match refusal {
        Refusal::Exists | Refusal::Changed => None,
        Refusal::Dead => Some(Errno::ENOENT),
        Refusal::NoSpace => Some(Errno::ENOSPC),
    }
}

/// Opens a file: the returned node carries a reference, which [`close`] gives up.
///
/// POSIX `open`; Linux `open_last_lookups`, `do_open` (fs/namei.c).
pub fn open<V: Verbs>(verbs: &V, name: &[u8], flags: OpenFlags, mode: u32) -> Result<V::Node, Errno> {
    let directory = verbs.root();
    let key = match (parse(verbs, name)?, flags) {
        (Name::Plain(key), _) => key,
        (Name::TooLong, _) => return Err(Errno::ENAMETOOLONG),
        (Name::Directory, OpenFlags::Existing) => {
            verbs.take(directory);
            return Ok(directory);
        }
        (Name::Directory, OpenFlags::Create) => return Err(Errno::EISDIR),
        (Name::Directory, OpenFlags::CreateNew) => return Err(Errno::EEXIST),
    };
    loop {
        if flags == OpenFlags::CreateNew {
            if verbs.exists(directory, &key) {
                return Err(Errno::EEXIST);
            }
        } else if let Some(found) = verbs.look_up(directory, &key) {
            let node = verbs.node(&found);
            verbs.take(node);
            return Ok(node);
        } else if flags == OpenFlags::Existing {
            return Err(Errno::ENOENT);
        }
        match verbs.create_file(directory, &key, mode) {
            Ok(node) => {
                verbs.take(node);
                return Ok(node);
            }
            Err(refusal) => errno_of(refusal).map_or(Ok(()), Err)?,
        }
    }
}

/// Gives up what [`open`] returned.
pub fn close<V: Verbs>(verbs: &V, node: V::Node) {
    verbs.give_up(node);
}

/// Makes `new` another name of the file `old`.
///
/// POSIX `link`; Linux `do_linkat`, `vfs_link` (fs/namei.c): first the old name (ENOENT), then the new one (EEXIST), then
/// what the old one is (EPERM for a directory).
pub fn link<V: Verbs>(verbs: &V, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    let directory = verbs.root();
    let old = parse(verbs, old)?;
    let old_key = match &old {
        Name::Directory => None,
        Name::TooLong => return Err(Errno::ENAMETOOLONG),
        Name::Plain(key) => Some(key),
    };
    loop {
        // Only whether the old name exists: its object is not read unless it is needed.
        let present = match old_key {
            Some(key) => Some(verbs.present(directory, key).ok_or(Errno::ENOENT)?),
            None => None,
        };
        let new_key = match parse(verbs, new)? {
            Name::Plain(key) => key,
            Name::TooLong => return Err(Errno::ENAMETOOLONG),
            Name::Directory => return Err(Errno::EEXIST),
        };
        if verbs.exists(directory, &new_key) {
            if present.is_none_or(|present| verbs.still_present(&present)) {
                return Err(Errno::EEXIST);
            }
            continue;
        }
        let Some(old_key) = old_key else {
            return Err(Errno::EPERM);
        };
        let Some(source) = verbs.look_up(directory, old_key) else {
            continue;
        };
        match verbs.add_link(directory, &new_key, &source) {
            Ok(()) => return Ok(()),
            Err(refusal) => errno_of(refusal).map_or(Ok(()), Err)?,
        }
    }
}

/// Removes a name.
///
/// POSIX `unlink`; Linux `do_unlinkat` (fs/namei.c): EISDIR for `.` and `..`.
pub fn unlink<V: Verbs>(verbs: &V, name: &[u8]) -> Result<(), Errno> {
    let directory = verbs.root();
    let key = match parse(verbs, name)? {
        Name::Plain(key) => key,
        Name::TooLong => return Err(Errno::ENAMETOOLONG),
        Name::Directory => return Err(Errno::EISDIR),
    };
    loop {
        let found = verbs.look_up(directory, &key).ok_or(Errno::ENOENT)?;
        match verbs.remove(directory, &key, verbs.node(&found)) {
            Ok(()) => return Ok(()),
            Err(refusal) => errno_of(refusal).map_or(Ok(()), Err)?,
        }
    }
}

/// Gives a file the name `new` instead of `old`. If both are names of one file, nothing happens.
///
/// POSIX `rename`; Linux `do_renameat2`, `vfs_rename` (fs/namei.c): EBUSY for `.` and `..`.
pub fn rename<V: Verbs>(verbs: &V, old: &[u8], new: &[u8]) -> Result<(), Errno> {
    let directory = verbs.root();
    let (old_key, new_key) = match (parse(verbs, old)?, parse(verbs, new)?) {
        (Name::Directory, _) | (_, Name::Directory) => return Err(Errno::EBUSY),
        (Name::TooLong, _) => return Err(Errno::ENAMETOOLONG),
        (Name::Plain(old_key), Name::TooLong) => {
            // Linux looks up the old name first.
            let old_exists = verbs.exists(directory, &old_key);
            return Err(if old_exists { Errno::ENAMETOOLONG } else { Errno::ENOENT });
        }
        (Name::Plain(old_key), Name::Plain(new_key)) => (old_key, new_key),
    };
    loop {
        if old_key.name() == new_key.name() {
            return if verbs.exists(directory, &old_key) { Ok(()) } else { Err(Errno::ENOENT) };
        }
        let source = verbs.look_up(directory, &old_key).ok_or(Errno::ENOENT)?;
        let target = verbs.look_up(directory, &new_key);
        let (expected, replaced) = (verbs.node(&source), target.map(|found| verbs.node(&found)));
        if replaced == Some(expected) {
            // Two names of one file, if the first still was one when the second was looked up.
            if verbs.still_same(&source) {
                return Ok(());
            }
            continue;
        }
        match verbs.rename((directory, &old_key, expected), (directory, &new_key, replaced)) {
            Ok(()) => return Ok(()),
            Err(refusal) => errno_of(refusal).map_or(Ok(()), Err)?,
        }
    }
}

/// The attributes of a file.
///
/// POSIX `stat`; with [`FieldChoice::WithoutLinkCount`] the paper's `fstatx` (section 4).
pub fn stat<V: Verbs>(verbs: &V, name: &[u8], fields: FieldChoice) -> Result<Attributes, Errno> {
    let directory = verbs.root();
    let key = match parse(verbs, name)? {
        Name::Directory => return Ok(verbs.attributes(directory, fields)),
        Name::TooLong => return Err(Errno::ENAMETOOLONG),
        Name::Plain(key) => key,
    };
    loop {
        let found = verbs.look_up(directory, &key).ok_or(Errno::ENOENT)?;
        let attributes = verbs.attributes(verbs.node(&found), fields);
        // If the name still leads there, it did when the link count was read; else that may have been after an unlink.
        if fields == FieldChoice::WithoutLinkCount || verbs.still_same(&found) {
            return Ok(attributes);
        }
    }
}

/// Whether a name exists (`F_OK`): what it leads to is not read.
///
/// POSIX `access`.
pub fn access<V: Verbs>(verbs: &V, name: &[u8]) -> Result<(), Errno> {
    match parse(verbs, name)? {
        Name::Directory => Ok(()),
        Name::TooLong => Err(Errno::ENAMETOOLONG),
        Name::Plain(key) if verbs.exists(verbs.root(), &key) => Ok(()),
        Name::Plain(_) => Err(Errno::ENOENT),
    }
}
