//! Where bytes lie: files, or what tests make of memory.

use std::fmt::Debug;
use std::io;
use std::ops::Range;

use redb::StorageBackend;
use sync::mutant::planted;

/// The two places of an instance: its records, and its pages.
#[derive(Debug)]
pub struct Storage {
    /// Of [`redb`], which has everything but large data.
    pub records: Box<dyn StorageBackend>,
    /// Pages of data, none of which is changed as long as a record leads to it.
    pub pages: Box<dyn StorageBackend>,
}

/// Where redb's header has its flags (its `docs/design.md`), the one that says that it was not closed, and the one that says that
/// the last commit took two syncs. Without the second and with the first, all checksums are looked at.
const FLAGS_OFFSET: usize = 9;
const IS_OPEN: u8 = 2;
const TOOK_TWO_SYNCS: u8 = 4;
/// Where it has the sizes of its layout, which no checksum is about.
const LAYOUT: Range<usize> = 12..40;
/// Bytes of a page, pages of a region's own, and pages of data in one: those of each new file.
const PAGE_BYTES: u64 = 4096;
const REGION_OWN_PAGES: u64 = 130;
const REGION_DATA_PAGES: u64 = 1 << 20;
/// Then full regions, and pages of data of the one that is not, which redb finds out by the length of the file if it checks it;
/// and the page of its map of regions, which it chooses again where this one is too small.
const OF_ANY_LENGTH: [u64; 4] = [0, 1, 0, 0];

/// The records, as redb gets them: it looks at all checksums before it uses anything, whatever its header says, which has none.
///
/// So what a closed file has is not trusted, a length that has not come to the disk with the header harms nothing, and a
/// header with a wrong bit is no reason to panic.
#[derive(Debug)]
pub(crate) struct Checked(Box<dyn StorageBackend>);

impl Checked {
    /// A file that is empty.
    pub(crate) fn new(storage: Box<dyn StorageBackend>) -> Checked {
        Checked(storage)
    }

    /// A file that has something; nothing, if it is shorter than any is.
    pub(crate) fn open(storage: Box<dyn StorageBackend>) -> io::Result<Option<Checked>> {
        let checked = Checked(storage);
        let is_long_enough = checked.len()? >= (1 + REGION_OWN_PAGES + 1) * PAGE_BYTES;
        Ok(is_long_enough.then_some(checked))
    }
}

impl StorageBackend for Checked {
    /// As much of it as redb can have left: whole pages, in regions that have some.
    fn len(&self) -> io::Result<u64> {
        let length = self.0.len()? / PAGE_BYTES;
        let in_region = length.saturating_sub(1) % (REGION_OWN_PAGES + REGION_DATA_PAGES);
        let unused = if in_region <= REGION_OWN_PAGES { in_region } else { 0 };
        Ok((length - unused) * PAGE_BYTES)
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        // A page past the end is one that has not come to the disk: its checksum is to say so, and not an error.
        let there = self.0.len()?.saturating_sub(offset).min(length as u64) as usize;
        let mut bytes = if there == 0 { Vec::new() } else { self.0.read(offset, there)? };
        bytes.resize(length, 0);
        if offset == 0 && length >= LAYOUT.end {
            if !planted("durable: checksums of a closed file are not looked at") {
                bytes[FLAGS_OFFSET] = bytes[FLAGS_OFFSET] & !TOOK_TWO_SYNCS | IS_OPEN;
            }
            let layout = [PAGE_BYTES, REGION_OWN_PAGES, REGION_DATA_PAGES].into_iter().chain(OF_ANY_LENGTH);
            for (place, field) in bytes[LAYOUT].chunks_exact_mut(4).zip(layout) {
                place.copy_from_slice(&(field as u32).to_le_bytes());
            }
        }
        Ok(bytes)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;
    use redb::{Builder, StorageBackend};

    use super::{LAYOUT, PAGE_BYTES, REGION_DATA_PAGES, REGION_OWN_PAGES};

    /// One that others may look at.
    #[derive(Debug, Clone)]
    struct Shared(std::sync::Arc<InMemoryBackend>);

    impl StorageBackend for Shared {
        fn len(&self) -> std::io::Result<u64> {
            self.0.len()
        }

        fn read(&self, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
            self.0.read(offset, length)
        }

        fn set_len(&self, length: u64) -> std::io::Result<()> {
            self.0.set_len(length)
        }

        fn sync_data(&self, eventual: bool) -> std::io::Result<()> {
            self.0.sync_data(eventual)
        }

        fn write(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
            self.0.write(offset, bytes)
        }
    }

    #[test]
    fn new_files_of_redb_have_the_layout_that_is_relied_on() {
        let storage = Shared(InMemoryBackend::new().into());
        drop(Builder::new().create_with_backend(storage.clone()).unwrap());
        let header = storage.read(LAYOUT.start as u64, LAYOUT.len()).unwrap();
        let fields: Vec<u64> =
            header.chunks_exact(4).map(|field| u32::from_le_bytes(field.try_into().unwrap()).into()).collect();
        assert_eq!(fields[..4], [PAGE_BYTES, REGION_OWN_PAGES, REGION_DATA_PAGES, 0]);
    }
}
