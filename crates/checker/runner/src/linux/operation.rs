//! What an actor executes: a system call, an access of memory, or several steps, with all memory that they refer to.

use std::mem::MaybeUninit;

use super::access;
pub use super::access::PAGE_BYTES;
use super::system_call::{system_call, system_call_marked};
use crate::marker;
use crate::target::Marks;

/// Longest file name that Linux takes (`NAME_MAX`).
pub const NAME_LIMIT_BYTES: usize = 255;

/// The runner's own directories in front of a name, a directory's name, and the name.
const PATH_LIMIT_BYTES: usize = 64 + 2 * (NAME_LIMIT_BYTES + 1);

/// Most numbers that an observation returns.
const REPORT_LIMIT: usize = 2048;

/// A zero-terminated path.
#[repr(C, align(64))]
pub struct Path([u8; PATH_LIMIT_BYTES]);

impl Default for Path {
    fn default() -> Self {
        Self([0; PATH_LIMIT_BYTES])
    }
}

/// Checks that a text is the name of a file in one directory.
///
/// # Errors
/// It is not.
pub fn check_name(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > NAME_LIMIT_BYTES {
        return Err(format!("a file name of {} bytes: expected 1 to {NAME_LIMIT_BYTES}", bytes.len()));
    }
    if bytes.contains(&0) || bytes.contains(&b'/') || text == "." || text == ".." {
        return Err(format!("{text:?} is not a name of a file in one directory"));
    }
    Ok(())
}

impl Path {
    /// Holds a name from now on, in the working directory of the one that uses it.
    ///
    /// # Errors
    /// The text is no name of a file in one directory.
    pub fn set_name(&mut self, text: &str) -> Result<(), String> {
        check_name(text)?;
        self.set(&[text])
    }

    /// Holds a path from now on, of which these are the parts.
    ///
    /// # Errors
    /// It is too long.
    pub fn set(&mut self, parts: &[&str]) -> Result<(), String> {
        let mut length = 0;
        for part in parts {
            let bytes = part.as_bytes();
            if length + bytes.len() + 1 > PATH_LIMIT_BYTES {
                return Err(format!("a path of {PATH_LIMIT_BYTES} bytes or more: {}", parts.concat()));
            }
            self.0[length..length + bytes.len()].copy_from_slice(bytes);
            length += bytes.len();
        }
        self.0[length] = 0;
        Ok(())
    }

    /// Holds a number of at most two digits from now on: the name of a descriptor below /proc.
    pub fn set_number(&mut self, number: u64) {
        let digits = [number / 10 % 10, number % 10].map(|digit| b'0' + (digit & 0xf) as u8);
        let skipped = usize::from(number < 10);
        self.0[..2 - skipped].copy_from_slice(&digits[skipped..]);
        self.0[2 - skipped] = 0;
    }

    /// The path's address, as an argument.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

/// A page of memory, filled with one byte or what a call wrote.
#[repr(C, align(4096))]
pub struct Page([u8; PAGE_BYTES]);

impl Page {
    /// Fills the page.
    pub fn fill(&mut self, byte: u8) {
        self.0.fill(byte);
    }

    /// The page's address, as an argument.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// The byte that fills the page; `None` if there are several.
    #[must_use]
    pub fn uniform(&self) -> Option<u8> {
        uniform(&self.0)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; PAGE_BYTES] {
        &self.0
    }

    /// The page as a list of numbers.
    pub fn words_mut(&mut self) -> &mut [u64; PAGE_BYTES / 8] {
        // SAFETY: as large as the page, aligned to more than 8 bytes, and numbers may have every content.
        unsafe { &mut *self.0.as_mut_ptr().cast() }
    }
}

/// The byte that fills a page; `None` if there are several.
#[must_use]
pub fn uniform(page: &[u8; PAGE_BYTES]) -> Option<u8> {
    // Each byte is like the next one: a comparison of memory that needs no second page.
    (page[1..] == page[..PAGE_BYTES - 1]).then_some(page[0])
}

/// The numbers that an observation returns, one after the other.
pub struct Report {
    count: usize,
    numbers: [i64; REPORT_LIMIT],
}

impl Report {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a number and gives its place. One too many is only counted: see [`Report::numbers`].
    pub fn push(&mut self, number: i64) -> usize {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
        }
        self.count += 1;
        self.count - 1
    }

    /// Replaces the number at a place.
    pub fn set(&mut self, place: usize, number: i64) {
        if let Some(found) = self.numbers.get_mut(place) {
            *found = number;
        }
    }

    /// All numbers; `None` if there were more than fit.
    #[must_use]
    pub fn numbers(&self) -> Option<&[i64]> {
        self.numbers.get(..self.count)
    }
}

/// What there is to execute.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// The system call with this number.
    SystemCall(i64),
    /// A load of the byte at the address that is the first argument.
    Load,
    /// A store to the page at the first argument, of the byte that is the second.
    Store,
    /// A function of the runner: set-up, observation. All processes have it at the same address.
    Steps(fn(&mut Operation) -> i64),
    /// The same, which sets the marks itself.
    Marking(fn(&mut Operation, Marks) -> i64),
}

/// An operation: what to execute, its arguments, and room for what they point to and for what comes back.
#[repr(C)]
pub struct Operation {
    action: Action,
    /// The process that it is for.
    pub process: usize,
    /// The arguments; pointers point into this operation.
    pub arguments: [u64; 6],
    /// Paths that arguments point to.
    pub paths: [Path; 2],
    /// The numbers that a call returns in addition to its result.
    pub numbers: [i32; 2],
    /// Two buffers, each an address and a length; or other numbers that arguments point to.
    pub vectors: [u64; 4],
    /// The user who makes the system call, other than the superuser.
    pub user: u32,
    /// What `fstat` and its kin write.
    stat: MaybeUninit<libc::stat>,
    /// What an observation returns.
    pub report: Report,
    /// What is read or written.
    pub page: Page,
    /// A list that is worked through while `page` is used.
    pub list: Page,
}

impl Default for Operation {
    /// The operation that has the actor touch all of it, so that no later one finds a page missing.
    fn default() -> Self {
        Self {
            action: Action::Steps(touch),
            process: 0,
            arguments: [0; 6],
            paths: [Path::default(), Path::default()],
            numbers: [0; 2],
            vectors: [0; 4],
            user: 0,
            stat: MaybeUninit::zeroed(),
            report: Report { count: 0, numbers: [0; REPORT_LIMIT] },
            page: Page([0; PAGE_BYTES]),
            list: Page([0; PAGE_BYTES]),
        }
    }
}

fn touch(operation: &mut Operation) -> i64 {
    let base = std::ptr::from_mut(operation).cast::<u8>();
    for offset in (0..size_of::<Operation>()).step_by(PAGE_BYTES) {
        // SAFETY: within the operation, which is borrowed exclusively; each byte is written back as it was.
        unsafe {
            let byte = base.add(offset);
            byte.write_volatile(byte.read_volatile());
        }
    }
    0
}

/// Results at and below this are signals: this number minus the signal's.
const SIGNALS: i64 = -4096;

/// What a number returned by [`Operation::execute`] means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// What the kernel, or a step, returned.
    Returned(i64),
    /// An error number.
    Failed(u16),
    /// A signal's number.
    Signalled(u8),
}

impl Outcome {
    /// Reads a result.
    #[must_use]
    pub fn of(result: i64) -> Self {
        match result {
            0.. => Self::Returned(result),
            -4095..=-1 => Self::Failed(u16::try_from(-result).unwrap_or_default()),
            _ => Self::Signalled(u8::try_from(SIGNALS - result).unwrap_or_default()),
        }
    }
}

/// The result that [`Outcome::of`] reads as this signal.
#[must_use]
pub fn signalled(fault: access::Fault) -> i64 {
    SIGNALS - i64::from(fault.0)
}

impl Operation {
    /// Prepares an action with the given arguments; the others are 0.
    pub fn set<const N: usize>(&mut self, action: Action, arguments: [u64; N]) {
        self.action = action;
        self.user = 0;
        self.arguments = [0; 6];
        self.arguments[..N].copy_from_slice(&arguments);
    }

    /// Prepares a system call with the given arguments; the others are 0.
    pub fn call<const N: usize>(&mut self, number: i64, arguments: [u64; N]) {
        self.set(Action::SystemCall(number), arguments);
    }

    /// Prepares steps with the given arguments; the others are 0.
    pub fn steps<const N: usize>(&mut self, steps: fn(&mut Self) -> i64, arguments: [u64; N]) {
        self.set(Action::Steps(steps), arguments);
    }

    /// Prepares steps that set the marks themselves, with the given arguments; the others are 0.
    pub fn marking<const N: usize>(&mut self, steps: fn(&mut Self, Marks) -> i64, arguments: [u64; N]) {
        self.set(Action::Marking(steps), arguments);
    }

    /// Whether the operation is a function of the runner, set-up or observation.
    #[must_use]
    pub fn is_of_steps(&self) -> bool {
        matches!(self.action, Action::Steps(_))
    }

    /// Where the kernel writes a status.
    #[must_use]
    pub fn stat_address(&self) -> u64 {
        self.stat.as_ptr() as u64
    }

    /// The status that the last call wrote.
    #[must_use]
    pub fn stat(&self) -> &libc::stat {
        // SAFETY: `struct stat` is plain numbers, for which every content is valid; it was zeroed at first.
        unsafe { self.stat.assume_init_ref() }
    }

    /// Executes the action and returns its result, for [`Outcome::of`].
    pub fn execute(&mut self, marks: Marks) -> i64 {
        match self.action {
            Action::SystemCall(number) if self.user != 0 => {
                let user = u64::from(self.user);
                // The thread alone changes, and can come back for what it keeps as its saved number (setresuid).
                system_call(libc::SYS_setresuid, [user, user, 0]);
                let result = system_call_marked(number, self.arguments, marks);
                system_call(libc::SYS_setresuid, [0, 0, 0]);
                result
            }
            Action::SystemCall(number) => system_call_marked(number, self.arguments, marks),
            Action::Load => access::load(self.arguments[0], marks).map_or_else(signalled, i64::from),
            Action::Store => {
                let byte = (self.arguments[1] & 0xff) as u8;
                access::store(self.arguments[0], byte, marks).map_or_else(signalled, |()| 0)
            }
            Action::Marking(steps) => steps(self, marks),
            Action::Steps(steps) if marks == Marks::None => steps(self),
            Action::Steps(steps) => {
                marker::call_begin();
                let result = steps(self);
                marker::call_end();
                result
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files_in_one_directory() {
        let mut operation = Operation::default();
        for bad in ["", ".", "..", "a/b", "a\0b", &"x".repeat(256)] {
            assert!(operation.paths[0].set_name(bad).is_err(), "{bad:?}");
        }
        assert!(operation.paths[0].set_name(&"x".repeat(255)).is_ok());
    }

    #[test]
    fn paths_are_joined_and_refused_when_too_long() {
        let mut path = Path::default();
        path.set(&["/w/12.", "d0", "/", "n1"]).unwrap();
        assert!(path.0.starts_with(b"/w/12.d0/n1\0"));
        path.set(&["a"]).unwrap();
        assert!(path.0.starts_with(b"a\0"));
        path.set_number(7);
        assert!(path.0.starts_with(b"7\0"));
        path.set_number(63);
        assert!(path.0.starts_with(b"63\0"));
        let long = "x".repeat(NAME_LIMIT_BYTES);
        assert!(path.set(&["/w/123456789.", &long, "/", &long]).is_ok());
        assert!(path.set(&["/w", &long, &long, &long]).is_err());
    }

    #[test]
    fn a_page_is_uniform_or_not() {
        let mut page = Page([7; PAGE_BYTES]);
        assert_eq!(page.uniform(), Some(7));
        page.0[4000] = 8;
        assert_eq!(page.uniform(), None);
    }

    #[test]
    fn a_report_tells_when_it_is_full() {
        let mut report = Operation::default().report;
        let first = report.push(1);
        report.push(2);
        report.set(first, 3);
        assert_eq!(report.numbers(), Some(&[3, 2][..]));
        for _ in 2..REPORT_LIMIT {
            report.push(0);
        }
        assert!(report.numbers().is_some());
        report.push(0);
        assert_eq!(report.numbers(), None);
    }

    #[test]
    fn results_tell_errors_and_signals_apart() {
        assert_eq!(Outcome::of(0), Outcome::Returned(0));
        assert_eq!(Outcome::of(-9), Outcome::Failed(9));
        assert_eq!(Outcome::of(-4095), Outcome::Failed(4095));
        assert_eq!(Outcome::of(signalled(access::Fault(11))), Outcome::Signalled(11));
    }
}
