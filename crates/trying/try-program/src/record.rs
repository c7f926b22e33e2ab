//! The record of a run: all first looks, one a line, with a last line that says that it is whole.
//!
//! ```text
//! commutant-try record 1
//! /etc/hosts name file 644 0 0 …
//! /etc/hosts data 0 4096 0f3a…
//! end 2 HASH                         how many lines, and the hash of all bytes before this line
//! ```
//! Each run in a workspace has a record of its own. One without its end is of a run that was killed: it is not known what else it has
//! looked at, so that it cannot be committed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use crate::question::Look;

const FIRST_LINE: &str = "commutant-try record 1";

/// A record that is being written.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    count: u64,
}

impl Recorder {
    /// A new record; a file that is there already is an error.
    pub(crate) fn create(path: &Path) -> io::Result<Recorder> {
        let file = File::options().write(true).create_new(true).open(path)?;
        let mut recorder = Recorder { file: BufWriter::new(file), hasher: blake3::Hasher::new(), count: 0 };
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

    /// Says that it is whole.
    pub(crate) fn end(mut self) -> io::Result<()> {
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
            if crate::stops::planted("try-program: a record without its end is whole") {
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
