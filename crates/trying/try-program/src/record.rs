//! The record of a run: all first looks, one a line, with a last line that says that it is whole.
//!
//! ```text
//! commutant-try record 1
//! /etc/hosts name file 644 0 0 …
//! /etc/hosts data 0 4096 0f3a…
//! end 2 HASH                         how many lines, and the hash of all bytes before this line
//! ```
//! With `--merge` the bytes that were read are kept as well, in a file of their own: each time their number (4 bytes, little-endian), then
//! the bytes. A look's hash says which of them it is about.
//!
//! Each run in a workspace has a record of its own. One without its end is of a run that was killed: it is not known what else it has
//! looked at, so that it cannot be committed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use crate::looks::Looks;
use crate::place::Place;
use crate::question::{Answer, Look, Question};
use crate::stops::planted;
use crate::tree::read_at;

const FIRST_LINE: &str = "commutant-try record 1";

/// A record that is being written.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: BufWriter<File>,
    kept: Option<BufWriter<File>>,
    hasher: blake3::Hasher,
    count: u64,
}

impl Recorder {
    /// A new record, and a new file for the bytes that are read; files that are there already are an error.
    pub(crate) fn create(path: &Path, kept: Option<&Path>) -> io::Result<Recorder> {
        let create = |path: &Path| File::options().write(true).create_new(true).open(path).map(BufWriter::new);
        let kept = kept.map(create).transpose()?;
        let mut recorder = Recorder { file: create(path)?, kept, hasher: blake3::Hasher::new(), count: 0 };
        recorder.put(FIRST_LINE)?;
        Ok(recorder)
    }

    fn put(&mut self, line: &str) -> io::Result<()> {
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")
    }

    /// Adds a look.
    pub(crate) fn add(&mut self, look: &Look) -> io::Result<()> {
        self.put(&look.line())?;
        self.count += 1;
        Ok(())
    }

    /// Keeps bytes that were read, if the run keeps them.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        kept.write_all(&u32::try_from(bytes.len()).map_err(io::Error::other)?.to_le_bytes())?;
        kept.write_all(bytes)
    }

    /// Says that it is whole.
    pub(crate) fn end(mut self) -> io::Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.flush()?;
        }
        let hash = self.hasher.finalize().to_hex();
        writeln!(self.file, "end {} {hash}", self.count)?;
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

/// Reads a record; the error is one line about what is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Vec<Look>, String> {
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let file = File::open(path).map_err(|error| wrong(&crate::failure::reason(&error)))?;
    let mut lines = BufReader::new(file).split(b'\n');
    let mut hasher = blake3::Hasher::new();
    let mut looks = Vec::new();
    let mut number = 0_u64;
    loop {
        let Some(line) = lines.next() else {
            if planted("try-program: a record without its end is whole") {
                return Ok(looks);
            }
            return Err(wrong("the record has no end: the run was killed, and what it has looked at is not known"));
        };
        let line = line.map_err(|error| wrong(&crate::failure::reason(&error)))?;
        number += 1;
        let not_a_line = || wrong(&format!("line {number} is none of a record"));
        let text = std::str::from_utf8(&line).map_err(|_| not_a_line())?;
        if number == 1 {
            if text != FIRST_LINE {
                return Err(wrong(&format!("expected a record that begins with `{FIRST_LINE}`")));
            }
        } else if let Some(end) = text.strip_prefix("end ") {
            let expected = format!("{} {}", looks.len(), hasher.finalize().to_hex());
            if end != expected || lines.next().is_some() {
                return Err(wrong("the record is not as it was written"));
            }
            return Ok(looks);
        } else {
            looks.push(Look::of_line(text).ok_or_else(not_a_line)?);
        }
        hasher.update(&line);
        hasher.update(b"\n");
    }
}

/// The bytes that a run has read.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
    /// By hash: where they are, and how many.
    at: HashMap<Answer, (u64, u32)>,
}

impl Kept {
    /// `None` if the run kept none. A file that was cut has what is before the cut: what is read from it is known by its hash.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Kept>> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let (mut reader, mut at, mut offset) = (BufReader::new(&file), HashMap::new(), 0);
        let mut length = [0; 4];
        while reader.read_exact(&mut length).is_ok() {
            let length = u32::from_le_bytes(length);
            let mut bytes = Vec::new();
            if reader.by_ref().take(length.into()).read_to_end(&mut bytes)? < length as usize {
                break;
            }
            at.insert(Answer::about_bytes(&bytes), (offset + 4, length));
            offset += 4 + u64::from(length);
        }
        drop(reader);
        Ok(Some(Kept { file, at }))
    }

    /// The file at a place as the run has read it; `None` unless the run has read all of it.
    pub(crate) fn version_read(&self, looks: &Looks, place: &Place) -> Option<Vec<u8>> {
        let mut parts: Vec<(usize, u32, &Answer)> = Vec::new();
        let mut end = None;
        for (question, answer) in looks.of(place) {
            match (question, answer) {
                (Question::Data { offset, length_bytes }, answer) => {
                    parts.push((usize::try_from(*offset).ok()?, *length_bytes, answer));
                }
                (Question::Size, Answer::Size(size)) => end = usize::try_from(*size).ok(),
                (Question::Attributes | Question::Copy, Answer::Attributes(found)) => {
                    end = usize::try_from(found.size_bytes).ok()
                }
                _ => {}
            }
        }
        parts.sort_unstable_by_key(|(offset, length, _)| (*offset, *length));
        let mut version: Vec<u8> = Vec::new();
        for (offset, wanted, answer) in parts {
            let (at, length) = *self.at.get(answer)?;
            let mut bytes = vec![0; length as usize];
            let is_there = read_at(&self.file, &mut bytes, at).is_ok_and(|length| length == bytes.len());
            let known = version.get(offset..)?;
            let both = known.len().min(bytes.len());
            // Two looks of one version agree where they overlap.
            if !is_there || Answer::about_bytes(&bytes) != *answer || known[..both] != bytes[..both] {
                return None;
            }
            version.extend_from_slice(&bytes[both..]);
            if length < wanted {
                end = Some(offset + length as usize);
            }
        }
        let is_whole = end == Some(version.len()) || planted("try-program: a file that was read in part is whole");
        is_whole.then_some(version)
    }
}
