//! The calls: how each becomes an operation, and what its result is. A new call is a new row in the table of its area.
//!
//! Semantics are Linux's own (the raw system calls, no C library in between). Names are relative to the working
//! directory. Interfaces with the same call share its row: a result may tell more than a test asks for.

/// The result of a step that did not fail; returns from the steps with that of one that did.
macro_rules! step {
    ($call:expr) => {{
        let result = $call;
        if result < 0 {
            return result;
        }
        result
    }};
}

mod children;
mod data;
mod descriptors;
pub(super) mod epolls;
mod futexes;
pub(super) mod memory;
mod names;
mod observation;
mod planted;
mod rights;
mod setup;
mod signals;
mod slots;
mod tree_steps;
mod trees;

use wire::results::ResultsWriter;

use super::leftovers::Leftovers;
use super::operation::{Operation, Outcome, PAGE_BYTES};
use crate::arguments::Arguments;
use crate::target::Signature;

/// What belongs to a call but not into the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// The descriptor that the call returned is closed.
    Close,
    /// The address that the kernel picked is remembered.
    Remember,
}

/// Whose memory a call concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The runner's only: any task of the process can make the call.
    Own,
    /// That of the process: one of its threads makes the call, since homes have memory of their own.
    Process,
}

/// How a call finds files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Not by name, or by a path that it makes itself.
    Own,
    /// In the working directory of the process.
    Relative,
    /// It sets the working directory of the process.
    Enters,
}

/// Fills in an operation, and notes what has to be cleaned up later.
type Prepare = fn(&mut Operation, &Arguments<'_>, &mut Leftovers) -> Result<(), String>;

/// Writes the result of a call that neither failed with an error number nor ended with a signal: one value.
type WriteResult = fn(&Operation, i64, &mut ResultsWriter);

/// One call.
pub struct LinuxCall {
    /// Name and parameters, as in the interface.
    pub signature: Signature,
    /// Whose memory the call concerns.
    pub memory: Memory,
    /// How the call finds files.
    pub names: Names,
    /// Fills in the operation.
    pub prepare: Prepare,
    /// Writes the result.
    pub result: WriteResult,
    /// What is to be done after the window.
    pub after: After,
    /// Whether it needs the epoll instances of its process.
    pub epolls: bool,
}

impl LinuxCall {
    const fn new(
        name: &'static str,
        parameters: &'static [&'static str],
        prepare: Prepare,
        result: WriteResult,
    ) -> Self {
        let signature = Signature { name, parameters };
        Self {
            signature,
            memory: Memory::Own,
            names: Names::Own,
            prepare,
            result,
            after: After::Nothing,
            epolls: false,
        }
    }

    const fn of_memory(mut self) -> Self {
        self.memory = Memory::Process;
        self
    }

    const fn by(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    const fn then(mut self, after: After) -> Self {
        self.after = after;
        self
    }

    const fn with_epolls(mut self) -> Self {
        self.epolls = true;
        self
    }

    /// Writes what came back as the call's result.
    pub fn write(&self, operation: &Operation, raw: i64, results: &mut ResultsWriter) {
        match Outcome::of(raw) {
            Outcome::Returned(number) => (self.result)(operation, number, results),
            Outcome::Failed(number) => results.errno(number),
            Outcome::Signalled(number) => results.signal(number),
        }
    }
}

/// All calls.
pub fn all() -> impl Iterator<Item = &'static LinuxCall> {
    [
        names::CALLS,
        descriptors::CALLS,
        data::CALLS,
        memory::CALLS,
        futexes::CALLS,
        epolls::CALLS,
        children::CALLS,
        setup::CALLS,
        observation::CALLS,
        planted::CALLS,
        trees::CALLS,
        rights::CALLS,
        slots::CALLS,
        signals::CALLS,
        tree_steps::CALLS,
    ]
    .into_iter()
    .flatten()
}

const CWD: u64 = libc::AT_FDCWD as u64;
const PAGE: i64 = PAGE_BYTES as i64;

/// The result of a call without one.
fn nothing(_: &Operation, _: i64, results: &mut ResultsWriter) {
    results.null();
}

/// The result of a call that only succeeds.
fn success(_: &Operation, _: i64, results: &mut ResultsWriter) {
    results.number(0);
}

/// The number that came back.
fn number(_: &Operation, raw: i64, results: &mut ResultsWriter) {
    results.number(raw);
}

/// The bytes that came back, in pages.
fn page_count(_: &Operation, raw: i64, results: &mut ResultsWriter) {
    pages(raw, results);
}

/// The file or pipe whose status the call has found.
fn identity(operation: &Operation, _: i64, results: &mut ResultsWriter) {
    Status::of(operation.stat()).number(results);
}

/// What fills a page: its byte, or -1 if there are several.
fn content(byte: Option<u8>) -> i64 {
    byte.map_or(-1, i64::from)
}

/// A size or an offset, in pages; a text that equals none if it is no whole number of them.
fn pages(bytes: i64, results: &mut ResultsWriter) {
    if bytes % PAGE == 0 { results.number(bytes / PAGE) } else { results.text(&format!("{bytes} bytes")) }
}

/// An offset in bytes, from an argument in pages.
fn offset(arguments: &Arguments<'_>, parameter: usize) -> Result<u64, String> {
    let pages = arguments.number(parameter)?;
    let bytes = pages.checked_mul(PAGE).ok_or_else(|| format!("{pages} pages are more than Linux can count"))?;
    Ok(bytes.cast_unsigned())
}

/// The byte that fills a page.
fn byte(arguments: &Arguments<'_>, parameter: usize) -> Result<u8, String> {
    let number = arguments.number(parameter)?;
    u8::try_from(number).map_err(|_| format!("data {number}: expected a byte, 0 to 255"))
}

/// A flag of the kernel's if an argument says so.
fn flag(arguments: &Arguments<'_>, parameter: usize, value: libc::c_int) -> Result<libc::c_int, String> {
    Ok(if arguments.flag(parameter)? { value } else { 0 })
}

/// The access mode of an open file description. Without either permission it is Linux's mode 3, which opens for neither.
fn access_mode(readable: bool, writable: bool) -> libc::c_int {
    match (readable, writable) {
        (true, true) => libc::O_RDWR,
        (true, false) => libc::O_RDONLY,
        (false, true) => libc::O_WRONLY,
        (false, false) => libc::O_ACCMODE,
    }
}

/// What `stat` and its kin tell.
#[derive(Debug, Clone, Copy)]
struct Status {
    inode: i64,
    pipe: bool,
    link_count: i64,
    size_bytes: i64,
    mtime_ns: i64,
    ctime_ns: i64,
}

impl Status {
    fn of(stat: &libc::stat) -> Self {
        Self {
            inode: stat.st_ino.cast_signed(),
            pipe: stat.st_mode & libc::S_IFMT == libc::S_IFIFO,
            link_count: stat.st_nlink.cast_signed(),
            size_bytes: stat.st_size,
            mtime_ns: stat.st_mtime * 1_000_000_000 + stat.st_mtime_nsec,
            ctime_ns: stat.st_ctime * 1_000_000_000 + stat.st_ctime_nsec,
        }
    }

    /// What tells the file or pipe from all others. Pipes are numbered by a file system of their own.
    fn number(self, results: &mut ResultsWriter) {
        const OF_PIPES: u64 = 1 << 63;
        let kind = if self.pipe { OF_PIPES } else { 0 };
        results.opaque("Inum", self.inode.cast_unsigned() | kind);
    }

    /// The result; without times where only the caller's own observation has changed them.
    fn write(self, times: bool, results: &mut ResultsWriter) {
        results.structure(6);
        results.field("ino");
        self.number(results);
        results.field("pipe");
        results.flag(self.pipe);
        results.field("nlink");
        results.number(self.link_count);
        results.field("size");
        pages(self.size_bytes, results);
        for (name, nanoseconds) in [("mtime", self.mtime_ns), ("ctime", self.ctime_ns)] {
            results.field(name);
            if times { results.time(nanoseconds) } else { results.null() }
        }
    }
}

/// The result of `stat` and its kin.
fn status(operation: &Operation, _: i64, results: &mut ResultsWriter) {
    Status::of(operation.stat()).write(true, results);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_signature_stands_twice() {
        let mut signatures: Vec<String> = all().map(|call| call.signature.to_string()).collect();
        signatures.sort();
        let count = signatures.len();
        signatures.dedup();
        assert_eq!(signatures.len(), count);
    }

    #[test]
    fn what_is_no_whole_page_equals_nothing() {
        let mut results = ResultsWriter::start(Vec::new(), 0);
        let mut written = |bytes| {
            let place = results.place();
            pages(bytes, &mut results);
            results.value_at(place).unwrap().to_string()
        };
        assert_eq!((written(8192), written(8193)), ("2".to_owned(), "\"8193 bytes\"".to_owned()));
        assert_eq!((content(Some(7)), content(None)), (7, -1));
    }
}
