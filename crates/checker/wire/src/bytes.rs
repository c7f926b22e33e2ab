//! Reading and writing of little-endian, length-prefixed bytes: the level below batches and results.
//!
//! Text is interned: a document carries each string once, in a table, and its values refer to it by number. The table
//! stands at the end, since a writer knows it only then; the header says where.

use std::borrow::Cow;
use std::fmt;

/// Longest string that a document can hold, in bytes (a file name has at most 255).
pub const TEXT_LIMIT_BYTES: usize = 4096;

/// Why bytes are not a batch, or not results: one line, with the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    what: String,
    offset_bytes: Option<usize>,
}

impl WireError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), offset_bytes: None }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset_bytes {
            Some(offset) => write!(formatter, "{} (at byte {offset})", self.what),
            None => formatter.write_str(&self.what),
        }
    }
}

impl std::error::Error for WireError {}

/// Appends to a document that is being written, and interns its strings.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    strings: Vec<Cow<'static, str>>,
    /// Where in `strings` texts of the program stand, by where they lie: see [`Writer::static_text`].
    places: [u16; PLACES],
}

/// A power of two, larger than the number of names that results have.
const PLACES: usize = 128;

/// Size of the header in front of every document: magic (8), version (4), offset of the string table (4).
const HEADER_BYTES: usize = 16;

impl Writer {
    /// Starts a document in `buffer`, whose memory is used again and whose content is dropped.
    pub(crate) fn start(mut buffer: Vec<u8>, magic: [u8; 8], version: u32) -> Self {
        buffer.clear();
        buffer.extend_from_slice(&magic);
        buffer.extend_from_slice(&version.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        Self { bytes: buffer, strings: Vec::new(), places: [0; PLACES] }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a length, refusing what does not fit its field.
    pub(crate) fn length_u8(&mut self, length: usize, what: &str) -> Result<(), WireError> {
        let length = u8::try_from(length).map_err(|_| WireError::new(format!("{length} {what}: at most 255 fit")))?;
        self.u8(length);
        Ok(())
    }

    /// Writes a length, refusing what does not fit its field.
    pub(crate) fn length_u16(&mut self, length: usize, what: &str) -> Result<(), WireError> {
        let length =
            u16::try_from(length).map_err(|_| WireError::new(format!("{length} {what}: at most 65535 fit")))?;
        self.u16(length);
        Ok(())
    }

    /// Writes a reference to `text`, which enters the string table if it is new there.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), WireError> {
        let index = match self.strings.iter().position(|known| known == text) {
            Some(index) => index,
            None => self.add(Cow::Owned(text.to_owned()))?,
        };
        self.reference(index)
    }

    /// As [`Writer::text`] for a text of the program, such as a field's name: found by where it lies, not by what it says.
    pub(crate) fn static_text(&mut self, text: &'static str) -> Result<(), WireError> {
        let place = text.as_ptr().addr().wrapping_add(text.len()) % PLACES;
        let index = usize::from(self.places[place]);
        if self.strings.get(index).is_some_and(|known| std::ptr::eq(known.as_ref(), text)) {
            return self.reference(index);
        }
        let index = match self.strings.iter().position(|known| known == text) {
            Some(index) => index,
            None => self.add(Cow::Borrowed(text))?,
        };
        self.places[place] = u16::try_from(index).unwrap_or_default();
        self.reference(index)
    }

    fn add(&mut self, text: Cow<'static, str>) -> Result<usize, WireError> {
        if text.len() > TEXT_LIMIT_BYTES {
            return Err(WireError::new(format!("a text of {} bytes: at most {TEXT_LIMIT_BYTES}", text.len())));
        }
        self.strings.push(text);
        Ok(self.strings.len() - 1)
    }

    fn reference(&mut self, index: usize) -> Result<(), WireError> {
        let index = u16::try_from(index).map_err(|_| WireError::new("more than 65536 different texts"))?;
        self.u16(index);
        Ok(())
    }

    /// The place of the next byte.
    pub(crate) fn place(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what stands from a place on; texts stay in the table.
    pub(crate) fn back_to(&mut self, place: usize) {
        self.bytes.truncate(place);
    }

    /// Replaces two bytes that were written before.
    pub(crate) fn set_u16(&mut self, place: usize, value: u16) {
        self.bytes[place..place + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Reads what has been written from a place on.
    pub(crate) fn read_from(&self, place: usize) -> Reader<'_> {
        Reader { bytes: &self.bytes, position: place, end: self.bytes.len(), strings: Strings::Written(&self.strings) }
    }

    /// Ends the document: appends the string table and completes the header.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, WireError> {
        let table = u32::try_from(self.bytes.len()).map_err(|_| WireError::new("a document of 4 GiB or more"))?;
        self.bytes[12..HEADER_BYTES].copy_from_slice(&table.to_le_bytes());
        let strings = std::mem::take(&mut self.strings);
        self.length_u16(strings.len(), "texts")?;
        for text in strings {
            self.length_u16(text.len(), "bytes of text")?;
            self.bytes.extend_from_slice(text.as_bytes());
        }
        Ok(self.bytes)
    }
}

/// Takes a document apart; every step checks that the bytes are there.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    end: usize,
    strings: Strings<'a>,
}

/// The string table of a document that is read, or still being written.
enum Strings<'a> {
    Read(Vec<&'a str>),
    Written(&'a [Cow<'static, str>]),
}

impl<'a> Reader<'a> {
    /// Checks the header and reads the string table.
    pub(crate) fn start(bytes: &'a [u8], magic: [u8; 8], version: u32, what: &str) -> Result<Self, WireError> {
        let mut reader = Self { bytes, position: 0, end: bytes.len(), strings: Strings::Read(Vec::new()) };
        if reader.take(8)? != magic {
            return Err(WireError::new(format!("not {what}: the first 8 bytes are not its mark")));
        }
        let found = reader.u32()?;
        if found != version {
            return Err(WireError::new(format!("{what} of version {found}: expected {version}")));
        }
        let table = reader.u32()? as usize;
        if table < HEADER_BYTES || table > bytes.len() {
            return Err(reader.error("the table of texts lies outside the document"));
        }
        reader.position = table;
        let count = reader.u16()?;
        let mut strings = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let length = usize::from(reader.u16()?);
            if length > TEXT_LIMIT_BYTES {
                return Err(reader.error("a text is too long"));
            }
            let text = std::str::from_utf8(reader.take(length)?).map_err(|_| reader.error("a text is not UTF-8"))?;
            strings.push(text);
        }
        reader.strings = Strings::Read(strings);
        if reader.position != bytes.len() {
            return Err(reader.error("bytes past the end"));
        }
        reader.position = HEADER_BYTES;
        reader.end = table;
        Ok(reader)
    }

    /// Everything must have been read.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        if self.position == self.end { Ok(()) } else { Err(self.error("bytes between the last record and the texts")) }
    }

    /// An error at the current place.
    pub(crate) fn error(&self, what: impl Into<String>) -> WireError {
        WireError { what: what.into(), offset_bytes: Some(self.position) }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let rest = self.bytes.get(self.position..self.end).unwrap_or_default();
        let taken = rest.get(..count).ok_or_else(|| self.error("cut off"))?;
        self.position += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, WireError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A number of records that follow, each at least `smallest_bytes` long: no more than the bytes that are left can
    /// hold, so that a damaged count cannot ask for a huge allocation.
    pub(crate) fn count_u32(&mut self, smallest_bytes: usize) -> Result<usize, WireError> {
        let count = self.u32()? as usize;
        if count > (self.end - self.position) / smallest_bytes {
            return Err(self.error(format!("a count of {count} records that cannot be there")));
        }
        Ok(count)
    }

    pub(crate) fn text(&mut self) -> Result<Cow<'a, str>, WireError> {
        let index = usize::from(self.u16()?);
        let text = match &self.strings {
            Strings::Read(strings) => strings.get(index).copied(),
            Strings::Written(strings) => strings.get(index).map(Cow::as_ref),
        };
        text.map(Cow::Borrowed).ok_or_else(|| self.error("a text that is not in the table"))
    }
}
