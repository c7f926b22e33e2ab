//! Values as adapters see them (`commutant.h`), and members of sorts: numbers that no earlier window used.

use std::ffi::{c_char, c_void};
use std::ptr;

use runner::arguments::Arguments;
use wire::value::Value;

/// Most arguments that a call has.
pub const MOST_ARGUMENTS: usize = 8;
/// Most values that a call gives, with those inside of sequences and records.
pub const MOST_VALUES: usize = 256;
const LONGEST_TEXT_BYTES: usize = 4096;
const DEEPEST: usize = 4;

const NOTHING: u32 = 0;
const NUMBER: u32 = 1;
const TRUTH: u32 = 2;
const MEMBER: u32 = 3;
const ERROR: u32 = 4;
const HANDLE: u32 = 5;
const SEQUENCE: u32 = 6;
const RECORD: u32 = 7;
const FAILED: u32 = 8;

/// `commutant_value`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ForeignValue {
    kind: u32,
    length: u32,
    number: i64,
    text: *const c_char,
    field: *const c_char,
}

const NO_VALUE: ForeignValue =
    ForeignValue { kind: NOTHING, length: 0, number: 0, text: ptr::null(), field: ptr::null() };

/// `commutant_result`.
#[repr(C)]
pub struct ForeignResult {
    values: *mut ForeignValue,
    count: u32,
    capacity: u32,
    field: *const c_char,
}

/// A call's arguments and room for its result, in the slot of the thread that makes it.
pub struct Exchange {
    arguments: [ForeignValue; MOST_ARGUMENTS],
    texts: [String; MOST_ARGUMENTS],
    values: [ForeignValue; MOST_VALUES],
    result: ForeignResult,
}

// SAFETY: the pointers lead into the same slot, or into memory of the library that only the hand-over's owner reads.
unsafe impl Send for Exchange {}

impl Default for Exchange {
    fn default() -> Self {
        Self {
            arguments: [NO_VALUE; MOST_ARGUMENTS],
            texts: Default::default(),
            values: [NO_VALUE; MOST_VALUES],
            result: ForeignResult { values: ptr::null_mut(), count: 0, capacity: 0, field: ptr::null() },
        }
    }
}

impl Exchange {
    /// Prepares for a call with these arguments.
    ///
    /// # Errors
    /// An argument of a kind that adapters do not know.
    pub fn prepare(&mut self, arguments: &Arguments<'_>, count: usize, members: &mut Members) -> Result<(), String> {
        for index in 0..count {
            let (kind, number, text) = match arguments.value(index) {
                Value::Null => (NOTHING, 0, ""),
                Value::Bool(flag) => (TRUTH, i64::from(*flag), ""),
                Value::Text(text) => {
                    let member = members.of(text);
                    (MEMBER, member.number, member.text.as_str())
                }
                Value::Opaque { .. } => (HANDLE, arguments.number(index)?, ""),
                _ => (NUMBER, arguments.number(index)?, ""),
            };
            let kept = &mut self.texts[index];
            kept.clear();
            kept.push_str(text);
            kept.push('\0');
            let length = text.len() as u32;
            self.arguments[index] =
                ForeignValue { kind, length, number, text: kept.as_ptr().cast(), field: ptr::null() };
        }
        let values = self.values.as_mut_ptr();
        self.result = ForeignResult { values, count: 0, capacity: MOST_VALUES as u32, field: ptr::null() };
        self.values[0] = NO_VALUE;
        Ok(())
    }

    /// What a function gets.
    pub fn parts(&mut self) -> (*const ForeignValue, *mut ForeignResult) {
        (self.arguments.as_ptr(), &raw mut self.result)
    }

    /// What came back.
    ///
    /// # Errors
    /// It is of no kind, too long, or the adapter says that the call failed.
    pub fn value(&self, members: &Members) -> Result<Value<'static>, String> {
        if self.result.count == 0 {
            return Ok(Value::Null);
        }
        let count = self.result.count as usize;
        if self.result.values != self.values.as_ptr().cast_mut() || count > MOST_VALUES {
            return Err(format!("the result: expected at most {MOST_VALUES} values, got {count}"));
        }
        let mut values = self.values[..count].iter();
        let value = read(&mut values, members, 0)?;
        match values.len() {
            0 => Ok(value),
            more => Err(format!("the result: expected one value, got {more} more behind it")),
        }
    }
}

fn read(
    values: &mut std::slice::Iter<'_, ForeignValue>,
    members: &Members,
    depth: usize,
) -> Result<Value<'static>, String> {
    let value = values.next().ok_or("the result: a sequence or record with fewer values than its length")?;
    let inner = || if depth < DEEPEST { Ok(depth + 1) } else { Err(format!("the result: deeper than {DEEPEST}")) };
    Ok(match value.kind {
        NOTHING => Value::Null,
        NUMBER => Value::Int(value.number),
        TRUTH => Value::Bool(value.number != 0),
        ERROR => Value::Errno(u16::try_from(value.number).map_err(|_| format!("error number {}", value.number))?),
        MEMBER => Value::Text(members.name(value.number, &text(value)?)?.into()),
        HANDLE => Value::Opaque { sort: text(value)?.into(), id: value.number.cast_unsigned() },
        SEQUENCE => {
            let depth = inner()?;
            Value::Seq((0..value.length).map(|_| read(values, members, depth)).collect::<Result<_, _>>()?)
        }
        RECORD => {
            let depth = inner()?;
            let mut fields = Vec::new();
            for _ in 0..value.length {
                let name = values.as_slice().first().map_or(ptr::null(), |value| value.field);
                fields.push((bounded(name, None)?.into(), read(values, members, depth)?));
            }
            Value::Struct(fields)
        }
        FAILED => return Err(format!("the call failed: {}", text(value)?)),
        other => return Err(format!("the result: a value of kind {other}, which commutant.h does not have")),
    })
}

fn text(value: &ForeignValue) -> Result<String, String> {
    bounded(value.text, Some(value.length as usize))
}

/// A text of a known length, or one that ends with NUL.
fn bounded(text: *const c_char, length: Option<usize>) -> Result<String, String> {
    if text.is_null() {
        return Ok(String::new());
    }
    let length = match length {
        Some(length) => length,
        // SAFETY: a text that ends with NUL, as commutant.h says; no more than the limit is read.
        None => unsafe { libc::strnlen(text, LONGEST_TEXT_BYTES + 1) },
    };
    if length > LONGEST_TEXT_BYTES {
        return Err(format!("the result: a text of at most {LONGEST_TEXT_BYTES} bytes, got more"));
    }
    // SAFETY: the adapter says that this many bytes are there until its thread's next call.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// A member of a sort in this window.
struct Member {
    /// What the test calls it.
    name: String,
    number: i64,
    text: String,
}

/// The members of sorts that this window's test names.
pub struct Members {
    seed: u64,
    /// Members that earlier windows had, and this one.
    used: u64,
    /// Those that earlier windows had.
    used_before: u64,
    known: Vec<Member>,
}

impl Members {
    /// None yet; `seed` moves all numbers.
    pub fn new(seed: u64) -> Self {
        Self { seed, used: 0, used_before: 0, known: Vec::new() }
    }

    /// A window begins.
    pub fn clear(&mut self) {
        self.known.clear();
        self.used_before = self.used;
    }

    /// The window begins again: it has the same members.
    pub fn take_back(&mut self) {
        self.used = self.used_before;
    }

    /// The member that the test calls `name`.
    fn of(&mut self, name: &str) -> &Member {
        let index = self.known.iter().position(|member| member.name == name).unwrap_or_else(|| {
            self.used += 1;
            let number = self.number(self.used);
            self.known.push(Member { name: name.to_owned(), number, text: format!("{name}.{number:x}") });
            self.known.len() - 1
        });
        &self.known[index]
    }

    /// The number of the member that was asked for as so manyth. Distinct for distinct counts, since each step can be undone;
    /// looks like no pattern to a hash function.
    fn number(&self, count: u64) -> i64 {
        (scramble(count.wrapping_add(scramble(self.seed))) >> 1).cast_signed()
    }

    /// Whether any test so far had the member of this number; slow.
    fn was_given(&self, number: i64) -> bool {
        (1..=self.used).any(|count| self.number(count) == number)
    }

    /// What the test calls the member of this text, or else of this number; of a value that is none of the test's, that.
    fn name(&self, number: i64, text: &str) -> Result<String, String> {
        let fits = |member: &&Member| if text.is_empty() { member.number == number } else { member.text == text };
        match self.known.iter().find(fits) {
            Some(member) => Ok(member.name.clone()),
            None if self.was_given(number) => Err(format!(
                "the result: {number} is a member of an earlier test; does the library keep state between tests? `make` \
                 and `reset` have to give an empty object"
            )),
            // A wrong result like any other, for the judge.
            None if text.is_empty() => Ok(format!("{number}, which no call was given")),
            None => Ok(format!("{text}, which no call was given")),
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
pub fn scramble(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// An object under test.
#[derive(Clone, Copy)]
pub struct Object(pub *mut c_void);

// SAFETY: the adapter's author promises (commutant.h) that an object may be used by any thread.
unsafe impl Send for Object {}
