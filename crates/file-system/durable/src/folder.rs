//! An instance's folder: `records` and `pages`, and while it is made `records.new`.
//!
//! The lock of `pages` is taken first, so that one process has all of it. A new instance is there once its records have their
//! name; before that, whoever opens it begins again, unless pages were used.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use redb::StorageBackend;
use redb::backends::FileBackend;

use crate::error::OpenError;
use crate::page_file::PageFile;
use crate::storage::Storage;

/// What a folder has.
#[derive(Debug)]
pub(crate) enum Folder {
    /// An instance.
    Whole(Storage),
    /// None yet: [`name_records`] makes it one.
    New(Storage),
}

/// Opens a folder, made if it does not exist, and keeps others from it.
pub(crate) fn open(path: &Path) -> Result<Folder, OpenError> {
    let system = |action: &str| OpenError::system(format!("{action} {}", path.display()));
    if !path.exists() {
        fs::create_dir(path).map_err(system("make"))?;
    }
    if !path.is_dir() {
        return Err(OpenError::NotAnInstance(path.into()));
    }
    let mut has = [false; 2];
    for entry in fs::read_dir(path).map_err(system("list"))? {
        let name = entry.map_err(system("list"))?.file_name();
        match name.as_encoded_bytes() {
            b"pages" => has[0] = true,
            b"records" => has[1] = true,
            b"records.new" => {}
            _ => return Err(OpenError::NotAnInstance(path.into())),
        }
    }
    let [has_pages, has_records] = has;
    if has_records && !has_pages {
        return Err(OpenError::damaged("it has records and no page file"));
    }
    let pages = lock(path, "pages", true)?;
    // Whoever had the lock may have finished it.
    if path.join("records").exists() {
        // And may have died before its name lasted.
        sync_folder(path).map_err(system("sync"))?;
        return Ok(Folder::Whole(Storage { records: lock(path, "records", false)?, pages }));
    }
    if !PageFile::is_unused(&*pages).map_err(system("read the page file of"))? {
        return Err(OpenError::damaged("it has a page file that was used, and no records"));
    }
    // Whoever has made the folder need not have waited for that: what has records has a folder that lasts.
    sync_folder(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
        .map_err(system("sync the folder of"))?;
    let records = path.join("records.new");
    if records.exists() {
        fs::remove_file(&records).map_err(system("begin again in"))?;
    }
    Ok(Folder::New(Storage { records: lock(path, "records.new", true)?, pages }))
}

/// Lets the records of a new instance have their name: from now on it is there.
pub(crate) fn name_records(path: &Path) -> io::Result<()> {
    fs::rename(path.join("records.new"), path.join("records"))?;
    sync_folder(path)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn lock(path: &Path, name: &str, creates: bool) -> Result<Box<dyn StorageBackend>, OpenError> {
    let file = path.join(name);
    let opened = File::options().read(true).write(true).create(creates).truncate(false).open(&file);
    let opened = opened.map_err(OpenError::system(format!("open {}", file.display())))?;
    match FileBackend::new(opened) {
        Ok(backend) => Ok(Box::new(backend)),
        Err(redb::DatabaseError::DatabaseAlreadyOpen) => Err(OpenError::InUse(path.into())),
        Err(other) => {
            Err(OpenError::System { action: format!("lock {}", file.display()), error: io::Error::other(other) })
        }
    }
}
