//! Data of files as they were when they were first seen, or an error.

use std::fs::File;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use fuser::BackingId;
use rustix::io::Errno;

use super::callers::Asked;
use super::handle::Handle;
use super::known::{Node, Seen};
use super::{ALWAYS, View};
use crate::attributes::{Attributes, Kind};
use crate::question::{Answer, Question};
use crate::shared::locked;
use crate::stops::planted;
use crate::tree::{attributes_of, is_absence, read_at};

/// The system counts times of change in steps of at most so much: two changes within one step have one time.
const CLOCK_STEP: Duration = Duration::from_millis(11);
/// How often a file is looked at again that changes while it is looked at.
const ATTEMPTS: usize = 5;
/// Smaller programs are read by requests, as all data are: then others may change what was not read of them.
const SMALLEST_PASSED_BYTES: u64 = 128 << 10;

/// The attributes of an open file at a time after which each change shows in them.
pub(crate) fn settled_attributes(file: &File) -> rustix::io::Result<Attributes> {
    loop {
        let attributes = attributes_of(file)?;
        let since = Duration::new(attributes.changed.0.max(0) as u64, attributes.changed.1);
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since);
        match age {
            // A file that was changed this very moment may change once more without a trace.
            Ok(age) if age < CLOCK_STEP => sleep(CLOCK_STEP - age),
            // Also of a clock that was set back: there is nothing to wait for.
            _ => return Ok(attributes),
        }
    }
}

impl View {
    /// Opens a file to be read.
    pub(super) fn open(&self, number: u64) -> rustix::io::Result<u64> {
        let node = self.nodes.get(number).ok_or(Errno::STALE)?;
        let file = match self.open_as_seen(&node) {
            Err(error) if error != Errno::STALE && !is_absence(error) => return Err(error),
            opened => opened.ok(),
        };
        Ok(self.new_handle(Handle { file, node }))
    }

    fn open_as_seen(&self, node: &Node) -> rustix::io::Result<File> {
        let file = File::from(self.tree.open_file(&node.place)?);
        let now = settled_attributes(&file)?;
        self.accept(&file, node, now)?;
        Ok(file)
    }

    /// Goes over to a newer version of a file if nothing was seen that is not so any more.
    fn accept(&self, file: &File, node: &Node, now: Attributes) -> rustix::io::Result<()> {
        let mut seen = locked(&node.seen);
        if now.is_same_version(&seen.attributes) {
            return Ok(());
        }
        if !still_holds(&seen, file, &now)? {
            return Err(Errno::STALE);
        }
        seen.attributes = now;
        Ok(())
    }

    /// Reads from an open file; each range is recorded when it is read first.
    pub(super) fn read(&self, handle: u64, offset: u64, length_bytes: u32) -> rustix::io::Result<Vec<u8>> {
        let handle = locked(&self.handles).get(&handle).cloned().ok_or(Errno::BADF)?;
        let file = handle.file.as_ref().ok_or(Errno::STALE)?;
        let mut bytes = vec![0; length_bytes as usize];
        for _ in 0..ATTEMPTS {
            let length = read_at(file, &mut bytes, offset)?;
            let now = attributes_of(file)?;
            let mut seen = locked(&handle.node.seen);
            if !now.is_same_version(&seen.attributes) {
                // What was read may be of either version, or of both.
                drop(seen);
                let settled = settled_attributes(file)?;
                self.accept(file, &handle.node, settled)?;
                continue;
            }
            let answer = Answer::about_bytes(&bytes[..length]);
            match seen.data.get(&(offset, length_bytes)) {
                Some(before) if *before != answer => return Err(Errno::STALE),
                Some(_) => {}
                None => {
                    seen.data.insert((offset, length_bytes), answer.clone());
                    self.note_data(
                        &handle.node.place,
                        Question::Data { offset, length_bytes },
                        answer,
                        &bytes[..length],
                    );
                }
            }
            bytes.truncate(length);
            return Ok(bytes);
        }
        Err(Errno::STALE)
    }

    /// The file that the kernel is to read itself for all who open a large file, if it can.
    pub(super) fn backing<'a>(
        &self,
        node: &'a Node,
        open: impl FnOnce(&File) -> std::io::Result<BackingId>,
    ) -> Option<&'a BackingId> {
        let backing = node.backing.get_or_init(|| {
            if !self.passes_through || !is_code(node) {
                return None;
            }
            let file = self.open_as_seen(node).ok()?;
            let backing = open(&file).ok()?;
            let mut seen = locked(&node.seen);
            seen.has_given_version = true;
            self.note(&node.place, Question::Version, Answer::Attributes(seen.attributes.clone()));
            Some(backing)
        });
        backing.as_ref()
    }

    /// Where a file ends, for one who has it open.
    pub(super) fn size(&self, number: u64) -> rustix::io::Result<Attributes> {
        let node = self.nodes.get(number).ok_or(Errno::STALE)?;
        let mut seen = locked(&node.seen);
        if !seen.has_given_size {
            seen.has_given_size = true;
            self.note(&node.place, Question::Size, Answer::Size(seen.attributes.size_bytes));
        }
        Ok(seen.known())
    }

    /// What `stat` says to a thread, and how long the kernel may say it to others. Before it was asked first, a file may have become a
    /// newer version.
    pub(super) fn attributes(&self, number: u64, thread: u32) -> rustix::io::Result<(Attributes, Duration)> {
        let node = self.nodes.get(number).ok_or(Errno::STALE)?;
        let may_be_copied = {
            let seen = locked(&node.seen);
            !seen.has_given_attributes && seen.attributes.kind != Kind::Directory
        };
        let asked = if may_be_copied { self.callers.asked(thread) } else { Asked::Program };
        let mut seen = locked(&node.seen);
        let (question, has_given) = match asked {
            Asked::Copy => (Question::Copy, &mut seen.has_given_copy),
            Asked::EmptyCopy => (Question::EmptyCopy, &mut seen.has_given_empty_copy),
            Asked::Program if may_be_copied && planted("try-program: a stat counts as a copy") => {
                (Question::Copy, &mut seen.has_given_copy)
            }
            Asked::Program => (Question::Attributes, &mut seen.has_given_attributes),
        };
        let is_first = !std::mem::replace(has_given, true);
        if is_first {
            self.note(&node.place, question.clone(), Answer::Attributes(seen.attributes.clone()));
        }
        // A program that asks for itself must come here.
        let for_how_long = if question == Question::Attributes { ALWAYS } else { Duration::ZERO };
        Ok((seen.known(), for_how_long))
    }

    pub(super) fn close(&self, handle: u64) {
        locked(&self.handles).remove(&handle);
    }
}

/// Whether a file is a large program or library. These are replaced as a whole, and many processes map them.
fn is_code(node: &Node) -> bool {
    let seen = locked(&node.seen);
    let is_library = node.place.name().to_string_lossy().contains(".so");
    seen.attributes.size_bytes >= SMALLEST_PASSED_BYTES && (is_library || seen.attributes.mode & 0o111 != 0)
}

/// Whether all that was answered about a file is so of a newer version of it.
fn still_holds(seen: &Seen, file: &File, now: &Attributes) -> rustix::io::Result<bool> {
    let then = &seen.attributes;
    let rights_hold = then.has_same_rights(now);
    let attributes_hold = !seen.has_given_attributes || then.is_same_to_stat(now);
    if seen.has_given_version {
        return Ok(false);
    }
    let copy_holds = !seen.has_given_copy || then.is_same_to_copy(now);
    let size_holds = !seen.has_given_size || then.size_bytes == now.size_bytes;
    if !(rights_hold && attributes_hold && copy_holds && size_holds) {
        return Ok(false);
    }
    for ((offset, length_bytes), answer) in &seen.data {
        let mut bytes = vec![0; *length_bytes as usize];
        let length = read_at(file, &mut bytes, *offset)?;
        if Answer::about_bytes(&bytes[..length]) != *answer {
            return Ok(false);
        }
    }
    // The bytes may have changed while they were looked at.
    Ok(attributes_of(file)?.is_same_version(now))
}
