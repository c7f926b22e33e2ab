//! What lasts: redb's tables and the page file, and how groups of transactions come into them.
//!
//! ```text
//! instance   ()                → format, identity, commits, the next number
//! objects    number            → kind, permissions, links, size, times, target        object.rs
//! names      (directory, name) → number
//! pages      (number, index)   → the 4,096 bytes themselves, or page and checksum in the page file
//! ```
//! Numbers are the store's own: an instance that is opened again gives objects other inode numbers.
//!
//! A group is one commit of redb. Many pages of data go to the page file first, to places where no record leads, and are
//! synced; a few are records themselves, so that a small commit is one sync.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use posix_calls::{InodeNumber, Kind, Permissions};
use redb::{Builder, Database, ReadableTable, Table, TableDefinition, WriteTransaction};
use sync::mutant::planted;

use crate::FORMAT;
use crate::error::OpenError;
use crate::image::Image;
use crate::object::{Object, ROOT};
use crate::page_file::{Content, Identity, PAGE, PageFile};
use crate::record::{NameRecord, ObjectRecord, Record};
use crate::storage::{Checked, Storage};

const INSTANCE: TableDefinition<'_, (), &[u8]> = TableDefinition::new("instance");
const OBJECTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("objects");
const NAMES: TableDefinition<'_, (u64, &[u8]), u64> = TableDefinition::new("names");
const PAGES: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("pages");

/// Up to so many pages of a group are records.
const FEW_PAGES: usize = 16;
/// Of redb.
const CACHE_BYTES: usize = 64 << 20;

/// The head of the records.
#[derive(Clone, Copy, Debug)]
struct Head {
    identity: Identity,
    /// Groups that were committed.
    commits: u64,
    /// The number of the next object.
    next: u64,
}

impl Head {
    fn to_bytes(self) -> Vec<u8> {
        [&FORMAT.to_le_bytes()[..], &self.identity, &self.commits.to_le_bytes(), &self.next.to_le_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Head, OpenError> {
        let short = || OpenError::damaged("the head of its records is too short");
        let (format, rest) = bytes.split_first_chunk().ok_or_else(short)?;
        let found = u32::from_le_bytes(*format);
        if found != FORMAT {
            return Err(OpenError::OtherVersion { found });
        }
        let (identity, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (commits, rest) = rest.split_first_chunk().ok_or_else(short)?;
        let (next, _) = rest.split_first_chunk().ok_or_else(short)?;
        Ok(Head { identity: *identity, commits: u64::from_le_bytes(*commits), next: u64::from_le_bytes(*next) })
    }
}

/// What lasts of an instance.
#[derive(Debug)]
pub(crate) struct Store {
    database: Database,
    pages: PageFile,
    head: Head,
    /// Of each object that has a record: its number there.
    numbers: HashMap<InodeNumber, u64>,
}

/// Errors of redb, as those of the system.
fn failed(error: impl Into<redb::Error>) -> io::Error {
    match error.into() {
        redb::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

impl Store {
    /// Begins a new instance, whose root is the superuser's.
    pub(crate) fn create(storage: Storage, identity: Identity, now_ns: i64) -> io::Result<(Store, Image)> {
        let pages = PageFile::create(storage.pages, &identity)?;
        let database = builder().create_with_backend(Checked::new(storage.records)).map_err(failed)?;
        let head = Head { identity, commits: 0, next: ROOT + 1 };
        let root = Object {
            kind: Kind::Directory,
            permissions: Permissions { mode: 0o755, user: 0, group: 0 },
            links: 1,
            size_bytes: 0,
            device: 0,
            times_ns: [now_ns; 3],
            target: Box::default(),
        };
        let writing = database.begin_write().map_err(failed)?;
        put(&writing, INSTANCE, (), &head.to_bytes())?;
        put(&writing, OBJECTS, ROOT, &root.to_bytes())?;
        writing.open_table(NAMES).map_err(failed)?;
        writing.open_table(PAGES).map_err(failed)?;
        writing.commit().map_err(failed)?;
        let image = Image { objects: BTreeMap::from([(ROOT, root)]), ..Image::default() };
        Ok((Store { database, pages, head, numbers: HashMap::new() }, image))
    }

    /// Opens an instance, and reads all of it but the pages.
    pub(crate) fn open(storage: Storage) -> Result<(Store, Image), OpenError> {
        let (mut pages, identity, lasting) = PageFile::open(storage.pages)?;
        let (database, head, image) = read_records(storage.records)?;
        if head.identity != identity {
            return Err(OpenError::damaged("its records and its page file are of two instances"));
        }
        if head.commits < lasting && !planted("durable: commits that are gone are not noticed") {
            let (has, lacks) = (head.commits, lasting - head.commits);
            return Err(OpenError::damaged(format!("it has {has} commits, and {lacks} more that had lasted are gone")));
        }
        image.check(head.next, &mut |page| pages.claim(page)).map_err(OpenError::Damaged)?;
        Ok((Store { database, pages, head, numbers: HashMap::new() }, image))
    }

    /// Says which objects of an instance in memory the records are about.
    pub(crate) fn know(&mut self, numbers: HashMap<InodeNumber, u64>) {
        self.numbers = numbers;
    }

    /// The bytes of a page.
    pub(crate) fn page(&self, content: &Content) -> io::Result<Option<Vec<u8>>> {
        match content {
            Content::Bytes(bytes) => Ok(Some(bytes.to_vec())),
            Content::At(at) => self.pages.read(*at),
        }
    }

    /// Lets what transactions have done last, in their order: all of it, or, if it fails, perhaps nothing.
    pub(crate) fn commit(&mut self, records: &[Record]) -> io::Result<()> {
        let writing = self.database.begin_write().map_err(failed)?;
        let mut group = Group {
            objects: writing.open_table(OBJECTS).map_err(failed)?,
            names: writing.open_table(NAMES).map_err(failed)?,
            pages: writing.open_table(PAGES).map_err(failed)?,
            page_file: &mut self.pages,
            numbers: &mut self.numbers,
            next: self.head.next,
            changed: BTreeMap::new(),
            written: BTreeMap::new(),
        };
        for record in records {
            group.apply(record)?;
        }
        let commits = self.head.commits;
        let (next, left) = group.finish(commits)?;
        self.head = Head { commits: commits + 1, next, ..self.head };
        put(&writing, INSTANCE, (), &self.head.to_bytes())?;
        writing.commit().map_err(failed)?;
        left.into_iter().for_each(|page| self.pages.give_back(page));
        Ok(())
    }

    /// Notes that all commits last, so that it is noticed if one is gone when it is opened again.
    pub(crate) fn mark(&self) -> io::Result<()> {
        self.pages.mark(self.head.commits)?;
        self.pages.sync()
    }
}

fn put<K: redb::Key + 'static>(
    writing: &WriteTransaction,
    table: TableDefinition<'_, K, &[u8]>,
    key: K::SelfType<'_>,
    value: &[u8],
) -> io::Result<()> {
    let mut table = writing.open_table(table).map_err(failed)?;
    table.insert(key, value).map_err(failed)?;
    Ok(())
}

/// A group of transactions that come into the tables.
struct Group<'w, 's> {
    objects: Table<'w, u64, &'static [u8]>,
    names: Table<'w, (u64, &'static [u8]), u64>,
    pages: Table<'w, (u64, u64), &'static [u8]>,
    page_file: &'s mut PageFile,
    numbers: &'s mut HashMap<InodeNumber, u64>,
    next: u64,
    /// Objects that differ from their records; nothing, if they are gone.
    changed: BTreeMap<u64, Option<Object>>,
    /// Pages that differ; nothing, if they are gone.
    written: BTreeMap<(u64, u64), Option<Box<[u8]>>>,
}

impl Group<'_, '_> {
    fn apply(&mut self, record: &Record) -> io::Result<()> {
        for object in &record.objects {
            if let Some(made) = &object.made {
                self.numbers.insert(object.number, self.next);
                self.changed.insert(self.next, Some(Object::made(made, record.moment_ns)));
                self.next += 1;
            }
        }
        let is_moved = |name: &NameRecord| record.names.iter().any(|other| other.after == name.before);
        for name in &record.names {
            let directory = self.numbers.get(&name.directory).copied().ok_or_else(|| unknown(name.directory))?;
            match name.after.map(|after| self.numbers.get(&after).copied().ok_or_else(|| unknown(after))).transpose()? {
                Some(after) => {
                    self.names.insert((directory, &name.name[..]), after).map_err(failed)?;
                    self.object(after)?.links += 1;
                }
                None if is_moved(name) && planted("durable: a rename is kept as its new name alone") => {}
                None => drop(self.names.remove((directory, &name.name[..])).map_err(failed)?),
            }
            if let Some(before) = name.before.and_then(|before| self.numbers.get(&before).copied()) {
                let links = &mut self.object(before)?.links;
                *links = links.saturating_sub(1);
            }
        }
        for object in &record.objects {
            // What had lost its last name before has no record.
            let Some(number) = self.numbers.get(&object.number).copied() else { continue };
            self.change(number, object, record.moment_ns)?;
            if self.object(number)?.links == 0 && !planted("durable: what has lost its last name stays") {
                self.cut(number, 0)?;
                self.changed.insert(number, None);
                self.numbers.remove(&object.number);
            }
        }
        Ok(())
    }

    /// Puts what differs into the tables, and many pages into the page file. Gives the next number, and the pages of that file to
    /// which no record leads any more once this is committed.
    fn finish(mut self, commits: u64) -> io::Result<(u64, Vec<u64>)> {
        let data: Vec<&[u8]> = self.written.values().flatten().map(|bytes| &bytes[..]).collect();
        let mut places = Vec::new();
        if data.len() > FEW_PAGES {
            if planted("durable: pages are used again before the records that led to them are gone") {
                for key in self.written.keys() {
                    let record = self.pages.get(key).map_err(failed)?;
                    if let Some(Content::At(at)) = record.and_then(|record| Content::from_bytes(record.value())) {
                        self.page_file.give_back(at.page);
                    }
                }
            }
            places = self.page_file.write(&data)?;
            let ahead = u64::from(planted("durable: a commit is marked before it lasts"));
            self.page_file.mark(commits + ahead)?;
            if !planted("durable: pages are not synced before the records that lead to them") {
                self.page_file.sync()?;
            }
        }
        let (mut places, mut left) = (places.into_iter(), Vec::new());
        for (key, bytes) in &self.written {
            let before = match bytes {
                None => self.pages.remove(key),
                Some(bytes) => {
                    let content = places.next().map_or_else(|| bytes.to_vec(), |at| Content::At(at).to_bytes());
                    self.pages.insert(key, &content[..])
                }
            };
            let before = before.map_err(failed)?.and_then(|before| Content::from_bytes(before.value()));
            if let Some(Content::At(at)) = before {
                left.push(at.page);
            }
        }
        for (number, object) in &self.changed {
            match object {
                None => drop(self.objects.remove(number).map_err(failed)?),
                Some(object) => drop(self.objects.insert(number, &object.to_bytes()[..]).map_err(failed)?),
            }
        }
        Ok((self.next, left))
    }

    /// An object, to be changed.
    fn object(&mut self, number: u64) -> io::Result<&mut Object> {
        let place = match self.changed.entry(number) {
            std::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let record = self.objects.get(number).map_err(failed)?;
                place.insert(record.and_then(|record| Object::from_bytes(record.value())))
            }
        };
        place.as_mut().ok_or_else(|| io::Error::other(format!("object {number} has no record")))
    }

    fn change(&mut self, number: u64, change: &ObjectRecord, moment_ns: i64) -> io::Result<()> {
        if let Some(size_bytes) = change.cut_to {
            self.cut(number, size_bytes)?;
        }
        for (offset, bytes) in &change.writes {
            self.write(number, *offset, bytes)?;
        }
        if let Some(size_bytes) = change.size_bytes {
            self.cut(number, size_bytes)?;
            self.object(number)?.size_bytes = size_bytes;
        }
        let object = self.object(number)?;
        if let Some(touched) = change.touched {
            object.touch(touched, moment_ns);
        }
        change.attributes.iter().for_each(|attribute| object.change(attribute));
        Ok(())
    }

    /// The bytes of a page that differ, to be changed.
    fn page(&mut self, key: (u64, u64)) -> io::Result<&mut Box<[u8]>> {
        if !self.written.contains_key(&key) {
            let record = self.pages.get(key).map_err(failed)?;
            let content = record.and_then(|record| Content::from_bytes(record.value()));
            let bytes = match content {
                None => None,
                Some(Content::Bytes(bytes)) => Some(bytes),
                Some(Content::At(at)) => {
                    let bytes = self.page_file.read(at)?;
                    Some(bytes.ok_or_else(|| io::Error::other(format!("page {} is another one", at.page)))?.into())
                }
            };
            self.written.insert(key, bytes);
        }
        let page = self.written.get_mut(&key).expect("it was put there");
        Ok(page.get_or_insert_with(|| vec![0; PAGE].into()))
    }

    fn write(&mut self, number: u64, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (index, within) = (offset / PAGE as u64, (offset % PAGE as u64) as usize);
            let (now, rest) = bytes.split_at(bytes.len().min(PAGE - within));
            if now.len() == PAGE {
                // Nothing of what was there is left.
                self.written.insert((number, index), Some(now.into()));
            } else {
                self.page((number, index))?[within..within + now.len()].copy_from_slice(now);
            }
            offset += now.len() as u64;
            bytes = rest;
        }
        let size_bytes = &mut self.object(number)?.size_bytes;
        *size_bytes = offset.max(*size_bytes);
        Ok(())
    }

    /// Cuts a file, if it is longer.
    fn cut(&mut self, number: u64, size_bytes: u64) -> io::Result<()> {
        if self.object(number)?.size_bytes <= size_bytes {
            return Ok(());
        }
        let first = size_bytes.div_ceil(PAGE as u64);
        let gone = (number, first)..=(number, u64::MAX);
        for record in self.pages.range(gone.clone()).map_err(failed)? {
            let (key, _) = record.map_err(failed)?;
            self.written.insert(key.value(), None);
        }
        self.written.range_mut(gone).for_each(|(_, page)| *page = None);
        let rest = (size_bytes % PAGE as u64) as usize;
        let last = (number, size_bytes / PAGE as u64);
        let has_page = match self.written.get(&last) {
            Some(page) => page.is_some(),
            None => self.pages.get(last).map_err(failed)?.is_some(),
        };
        if rest > 0 && has_page && !planted("durable: what was cut away comes back") {
            self.page(last)?[rest..].fill(0);
        }
        self.object(number)?.size_bytes = size_bytes;
        Ok(())
    }
}

fn unknown(number: InodeNumber) -> io::Error {
    io::Error::other(format!("object {number:?} of a transaction has no record"))
}

/// All records, each looked at.
fn read_records(storage: Box<dyn redb::StorageBackend>) -> Result<(Database, Head, Image), OpenError> {
    let checked = Checked::open(storage).map_err(OpenError::system("measure the records"))?;
    let checked = checked.ok_or_else(|| OpenError::damaged("its records are shorter than empty ones"))?;
    // Pages that are free before long have no checksum that is looked at: where a file ends before one, redb panics. It may do so when
    // it opens the file, reads it, or lets go of it after an error.
    let read = catch_unwind(AssertUnwindSafe(|| open_and_read(checked)));
    read.unwrap_or_else(|_| Err(OpenError::damaged("its records lead past their end")))
}

fn open_and_read(checked: Checked) -> Result<(Database, Head, Image), OpenError> {
    let damaged = |error: io::Error| OpenError::damaged(format!("its records: {error}"));
    let database = builder().create_with_backend(checked).map_err(|error| match error {
        redb::DatabaseError::Storage(redb::StorageError::Io(error)) if error.kind() != io::ErrorKind::InvalidData => {
            OpenError::System { action: "read the records".into(), error }
        }
        redb::DatabaseError::UpgradeRequired(found) => OpenError::OtherVersion { found: found.into() },
        other => damaged(failed(other)),
    })?;
    let read = || -> io::Result<(Option<Vec<u8>>, Image)> {
        let reading = database.begin_read().map_err(failed)?;
        let mut image = Image::default();
        let head = reading.open_table(INSTANCE).map_err(failed)?;
        let head = head.get(()).map_err(failed)?.map(|head| head.value().to_vec());
        for record in reading.open_table(OBJECTS).map_err(failed)?.iter().map_err(failed)? {
            let (number, object) = record.map_err(failed)?;
            let object = Object::from_bytes(object.value())
                .ok_or_else(|| io::Error::other(format!("object {} cannot be read", number.value())))?;
            image.objects.insert(number.value(), object);
        }
        for record in reading.open_table(NAMES).map_err(failed)?.iter().map_err(failed)? {
            let (key, number) = record.map_err(failed)?;
            let (directory, name) = key.value();
            image.names.insert((directory, name.into()), number.value());
        }
        for record in reading.open_table(PAGES).map_err(failed)?.iter().map_err(failed)? {
            let (key, content) = record.map_err(failed)?;
            let content = Content::from_bytes(content.value())
                .ok_or_else(|| io::Error::other(format!("page {:?} cannot be read", key.value())))?;
            image.pages.insert(key.value(), content);
        }
        Ok((head, image))
    };
    let (head, image) = read().map_err(damaged)?;
    let head = Head::from_bytes(&head.ok_or_else(|| OpenError::damaged("its records have no head"))?)?;
    Ok((database, head, image))
}
