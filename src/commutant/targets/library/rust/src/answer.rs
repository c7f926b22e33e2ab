//! What calls give back. Answers are written into room that the runner gives; writing them allocates nothing.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char};
use std::ptr;

use crate::foreign::Value;

const NOTHING: u32 = 0;
const NUMBER: u32 = 1;
const TRUTH: u32 = 2;
const MEMBER: u32 = 3;
const ERROR: u32 = 4;
const HANDLE: u32 = 5;
const SEQUENCE: u32 = 6;
const RECORD: u32 = 7;
const FAILED: u32 = 8;

/// Longest text of an answer.
const TEXT_BYTES: usize = 256;

/// Where a call's answer goes (`commutant_result`).
#[repr(C)]
pub struct Results {
    values: *mut Value,
    count: u32,
    capacity: u32,
    field: *const c_char,
}

impl Results {
    /// The place of the value that was put.
    fn put(&mut self, kind: u32, number: i64, text: &str) -> usize {
        let place = if self.count < self.capacity { self.count as usize } else { 0 };
        let field = std::mem::replace(&mut self.field, ptr::null());
        let value = Value { kind, length: text.len() as u32, number, text: text.as_ptr().cast(), field };
        // SAFETY: the runner has room for `capacity` values, and `place` is below it.
        unsafe { self.values.add(place).write(value) };
        self.count += 1; // more values than there is room for are an error that the runner reports
        place
    }

    /// Says of the last value of this place how many values belong to it.
    fn holds(&mut self, place: usize, count: u32) {
        // SAFETY: `place` is one that `put` gave.
        unsafe { (*self.values.add(place)).length = count };
    }

    pub(crate) fn fail(&mut self, why: &str) {
        self.count = 0;
        self.put(FAILED, 0, why);
    }
}

/// What a call may give back.
pub trait Answer {
    /// Writes it.
    fn put(self, results: &mut Results);
}

impl Answer for () {
    fn put(self, results: &mut Results) {
        results.put(NOTHING, 0, "");
    }
}

impl Answer for bool {
    fn put(self, results: &mut Results) {
        results.put(TRUTH, i64::from(self), "");
    }
}

impl Answer for i64 {
    fn put(self, results: &mut Results) {
        results.put(NUMBER, self, "");
    }
}

/// A member of a sort, by its number.
#[derive(Debug, Clone, Copy)]
pub struct Member(pub i64);

impl Answer for Member {
    fn put(self, results: &mut Results) {
        results.put(MEMBER, self.0, "");
    }
}

thread_local! {
    static TEXT: UnsafeCell<[u8; TEXT_BYTES]> = const { UnsafeCell::new([0; TEXT_BYTES]) };
}

/// A member of a sort, by its text, of which the first 256 bytes count.
impl Answer for String {
    fn put(self, results: &mut Results) {
        let end = (0..=self.len().min(TEXT_BYTES)).rev().find(|end| self.is_char_boundary(*end)).unwrap_or(0);
        TEXT.with(|text| {
            // SAFETY: the thread's own buffer, which stays until its next call; no one has a reference to it. What is
            // copied ends where a character does.
            let copy = unsafe {
                let start = text.get().cast::<u8>();
                ptr::copy_nonoverlapping(self.as_ptr(), start, end);
                std::str::from_utf8_unchecked(std::slice::from_raw_parts(start, end))
            };
            results.put(MEMBER, 0, copy);
        });
    }
}

/// The call failed with an error of Linux, such as 2 for ENOENT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// There is no such thing.
    pub const ENOENT: Errno = Errno(2);
    /// Not now.
    pub const EAGAIN: Errno = Errno(11);
    /// That is none.
    pub const EINVAL: Errno = Errno(22);
    /// It is there already.
    pub const EEXIST: Errno = Errno(17);
}

impl Answer for Errno {
    fn put(self, results: &mut Results) {
        results.put(ERROR, i64::from(self.0), "");
    }
}

impl<A: Answer> Answer for Result<A, Errno> {
    fn put(self, results: &mut Results) {
        match self {
            Ok(answer) => answer.put(results),
            Err(error) => error.put(results),
        }
    }
}

/// What the library chose, such as an address, as a value of an opaque sort.
#[derive(Debug, Clone, Copy)]
pub struct Handle {
    /// The sort's name in the model.
    pub sort: &'static str,
    /// What tells two of them apart.
    pub number: i64,
}

impl Answer for Handle {
    fn put(self, results: &mut Results) {
        results.put(HANDLE, self.number, self.sort);
    }
}

/// Several values in order: `Sequence(|items| for value in ... { items.put(value) })`.
pub struct Sequence<F>(pub F);

/// Takes the items of a [`Sequence`].
pub struct Items<'call> {
    results: &'call mut Results,
    count: u32,
}

impl Items<'_> {
    /// The next item.
    pub fn put(&mut self, item: impl Answer) {
        item.put(self.results);
        self.count += 1;
    }
}

impl<F: FnOnce(&mut Items<'_>)> Answer for Sequence<F> {
    fn put(self, results: &mut Results) {
        let place = results.put(SEQUENCE, 0, "");
        let mut items = Items { results, count: 0 };
        self.0(&mut items);
        let count = items.count;
        results.holds(place, count);
    }
}

/// Several named results of one call: `Record(|fields| fields.put(c"length", 3))`.
pub struct Record<F>(pub F);

/// Takes the fields of a [`Record`].
pub struct Fields<'call> {
    results: &'call mut Results,
    count: u32,
}

impl Fields<'_> {
    /// The next field.
    pub fn put(&mut self, name: &'static CStr, value: impl Answer) {
        self.results.field = name.as_ptr();
        value.put(self.results);
        self.count += 1;
    }
}

impl<F: FnOnce(&mut Fields<'_>)> Answer for Record<F> {
    fn put(self, results: &mut Results) {
        let place = results.put(RECORD, 0, "");
        let mut fields = Fields { results, count: 0 };
        self.0(&mut fields);
        let count = fields.count;
        results.holds(place, count);
    }
}
