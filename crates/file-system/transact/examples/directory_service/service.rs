//! A directory service that keeps each entry in a file, below its parent's directory (thesis on TxOS, section 6.1; the LDIF
//! store of OpenLDAP). An entry is added below one that is there, and deleted when nothing is below it.

use std::io::{self, ErrorKind};

use crate::door::Door;

/// An entry `uid=ann,ou=people` stands in `ou=people/uid=ann.ldif`; what is below it in `ou=people/uid=ann/`.
fn place(name: &[&str]) -> String {
    name.join("/")
}

/// Where an entry is.
pub fn file_of(name: &[&str]) -> String {
    format!("{}.ldif", place(name))
}

fn refused(kind: ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, what)
}

/// Adds an entry, complete or not at all: written beside its place, then moved there. `meanwhile` runs between the checks and
/// the changes.
///
/// # Errors
/// `NotFound` without its parent, `AlreadyExists`.
pub fn add(calls: &dyn Door, name: &[&str], attributes: &str, meanwhile: &dyn Fn()) -> io::Result<()> {
    let (_, parent) = name.split_last().ok_or(ErrorKind::InvalidInput)?;
    if !parent.is_empty() && !calls.exists(&file_of(parent))? {
        return Err(refused(ErrorKind::NotFound, "the parent has no entry"));
    }
    let file = file_of(name);
    if calls.exists(&file)? {
        return Err(refused(ErrorKind::AlreadyExists, "the entry is there"));
    }
    meanwhile();
    if !parent.is_empty() && !calls.exists(&place(parent))? {
        calls.create_dir(&place(parent))?;
    }
    calls.write(&format!("{file}.new"), attributes.as_bytes())?;
    calls.rename(&format!("{file}.new"), &file)
}

/// Deletes an entry that has none below it.
///
/// # Errors
/// `NotFound`, `DirectoryNotEmpty`.
pub fn delete(calls: &dyn Door, name: &[&str]) -> io::Result<()> {
    let below = place(name);
    if calls.exists(&below)? {
        if !calls.names(&below)?.is_empty() {
            return Err(refused(ErrorKind::DirectoryNotEmpty, "there are entries below"));
        }
        calls.remove_dir(&below)?;
    }
    calls.remove_file(&file_of(name))
}
