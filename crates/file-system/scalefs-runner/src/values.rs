//! How results are said in terms of the interfaces, which count in pages.

use posix_calls::{Attributes, Fields, Kind};
use runner::arguments::Arguments;
use wire::value::Value;

/// Bytes of a page, in which the interfaces count.
pub const PAGE_BYTES: usize = 4096;

/// The byte that all of these are, if they are one; zero for none.
pub fn uniform(bytes: &[u8]) -> Option<u8> {
    let first = bytes.first().copied().unwrap_or(0);
    bytes.iter().all(|byte| *byte == first).then_some(first)
}

/// The byte that a whole page consists of; -1 for anything else.
pub fn page(bytes: &[u8]) -> Value<'static> {
    let whole = bytes.len() == PAGE_BYTES;
    Value::Int(uniform(bytes).filter(|_| whole).map_or(-1, i64::from))
}

/// A size or an offset, in pages; a text that equals none if it is no whole number of them.
pub fn pages_of(bytes: u64) -> Value<'static> {
    if bytes.is_multiple_of(PAGE_BYTES as u64) {
        Value::Int((bytes / PAGE_BYTES as u64).cast_signed())
    } else {
        Value::Text(format!("{bytes} bytes").into())
    }
}

/// The number of what it is.
pub fn number(attributes: Attributes) -> Value<'static> {
    Value::Opaque { sort: "Inum".into(), id: attributes.number.0 }
}

/// The result of `stat` and its kin: what was asked for, without times where only the observation has changed them.
pub fn status(attributes: Attributes, fields: Fields, times: bool) -> Value<'static> {
    let asked = |field, value| if fields.contains(field) { value } else { Value::Null };
    let time = |time_ns| if times { asked(Fields::TIMES, Value::Time(time_ns)) } else { Value::Null };
    Value::Struct(vec![
        ("ino".into(), number(attributes)),
        ("pipe".into(), Value::Bool(attributes.kind == Kind::Pipe)),
        ("nlink".into(), asked(Fields::LINK_COUNT, Value::Int(attributes.link_count.into()))),
        ("size".into(), asked(Fields::SIZE, pages_of(attributes.size_bytes))),
        ("mtime".into(), time(attributes.modified_ns)),
        ("ctime".into(), time(attributes.changed_ns)),
    ])
}

/// A number that tests give to a descriptor, or to a file or pipe of a set-up.
///
/// # Errors
/// It is out of range.
pub fn small(arguments: &Arguments<'_>, parameter: usize) -> Result<u32, String> {
    let number = arguments.number(parameter)?;
    u32::try_from(number).ok().filter(|number| *number < 512).ok_or_else(|| format!("{number}: expected 0 to 511"))
}
