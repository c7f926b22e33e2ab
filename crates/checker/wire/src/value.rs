//! The values of arguments and results, and their binary and JSON forms.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value as Json, json};

use crate::bytes::{Reader, WireError, Writer};
use crate::{errno, signal};

/// Deepest nesting of structures and sequences that is accepted.
const DEPTH_LIMIT: usize = 8;

/// A value of a test case or of a result ("Values" in `docs/reference/test-cases.md`). Texts of one that was read from a
/// document stay in the document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value<'a> {
    /// A call without a result, or an argument that was not given.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number that is compared exactly.
    Int(i64),
    /// A value of a sort that the test names, such as a file name.
    Text(Cow<'a, str>),
    /// The call failed with this Linux error number.
    Errno(u16),
    /// The call ended with this Linux signal, such as a memory access that faulted.
    Signal(u8),
    /// A value that the implementation chooses; in a result, `id` is what it chose (the inode number itself).
    Opaque {
        /// The sort in the model, such as `Inum`: identities of different sorts have nothing to do with each other.
        sort: Cow<'a, str>,
        /// In a test case a small number, in a result the implementation's own.
        id: u64,
    },
    /// A point in time; in a result, nanoseconds.
    Time(i64),
    /// Several results of one call, by name.
    Struct(Vec<(Cow<'a, str>, Value<'a>)>),
    /// Several values in order.
    Seq(Vec<Value<'a>>),
}

pub(crate) const NULL: u8 = 0;
pub(crate) const FALSE: u8 = 1;
pub(crate) const TRUE: u8 = 2;
pub(crate) const INT: u8 = 3;
pub(crate) const TEXT: u8 = 4;
pub(crate) const ERRNO: u8 = 5;
pub(crate) const OPAQUE: u8 = 6;
pub(crate) const TIME: u8 = 7;
pub(crate) const STRUCT: u8 = 8;
pub(crate) const SEQ: u8 = 9;
pub(crate) const SIGNAL: u8 = 10;

impl<'a> Value<'a> {
    pub(crate) fn write(&self, writer: &mut Writer) -> Result<(), WireError> {
        match self {
            Self::Null => writer.u8(NULL),
            Self::Bool(false) => writer.u8(FALSE),
            Self::Bool(true) => writer.u8(TRUE),
            Self::Int(number) => {
                writer.u8(INT);
                writer.i64(*number);
            }
            Self::Text(text) => {
                writer.u8(TEXT);
                writer.text(text)?;
            }
            Self::Errno(number) => {
                writer.u8(ERRNO);
                writer.u16(*number);
            }
            Self::Signal(number) => {
                writer.u8(SIGNAL);
                writer.u8(*number);
            }
            Self::Opaque { sort, id } => {
                writer.u8(OPAQUE);
                writer.text(sort)?;
                writer.u64(*id);
            }
            Self::Time(nanoseconds) => {
                writer.u8(TIME);
                writer.i64(*nanoseconds);
            }
            Self::Struct(fields) => {
                writer.u8(STRUCT);
                writer.length_u8(fields.len(), "fields")?;
                for (name, value) in fields {
                    writer.text(name)?;
                    value.write(writer)?;
                }
            }
            Self::Seq(items) => {
                writer.u8(SEQ);
                writer.length_u16(items.len(), "items")?;
                for item in items {
                    item.write(writer)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Self::read_nested(reader, 0)
    }

    fn read_nested(reader: &mut Reader<'a>, depth: usize) -> Result<Self, WireError> {
        if depth > DEPTH_LIMIT {
            return Err(reader.error("a value nested too deeply"));
        }
        Ok(match reader.u8()? {
            NULL => Self::Null,
            FALSE => Self::Bool(false),
            TRUE => Self::Bool(true),
            INT => Self::Int(reader.i64()?),
            TEXT => Self::Text(reader.text()?),
            ERRNO => Self::Errno(reader.u16()?),
            OPAQUE => Self::Opaque { sort: reader.text()?, id: reader.u64()? },
            SIGNAL => Self::Signal(reader.u8()?),
            TIME => Self::Time(reader.i64()?),
            STRUCT => {
                let count = reader.u8()?;
                let mut fields = Vec::with_capacity(usize::from(count));
                for _ in 0..count {
                    fields.push((reader.text()?, Self::read_nested(reader, depth + 1)?));
                }
                Self::Struct(fields)
            }
            SEQ => {
                let count = reader.u16()?;
                let mut items = Vec::new();
                for _ in 0..count {
                    items.push(Self::read_nested(reader, depth + 1)?);
                }
                Self::Seq(items)
            }
            tag => return Err(reader.error(format!("a value of unknown kind {tag}"))),
        })
    }
}

impl Value<'static> {
    /// Reads a value of a test case.
    ///
    /// # Errors
    /// A value that the table "Values" does not have; the message shows it.
    pub fn from_json(json: &Json) -> Result<Self, WireError> {
        Self::from_json_nested(json, 0)
    }

    fn from_json_nested(json: &Json, depth: usize) -> Result<Self, WireError> {
        if depth > DEPTH_LIMIT {
            return Err(WireError::new("a value nested too deeply"));
        }
        match json {
            Json::Null => Ok(Self::Null),
            Json::Bool(value) => Ok(Self::Bool(*value)),
            Json::Number(number) => number
                .as_i64()
                .map(Self::Int)
                .ok_or_else(|| WireError::new(format!("the number {number}: expected an integer of 64 bits"))),
            Json::String(text) => Ok(Self::Text(Cow::Owned(text.clone()))),
            Json::Array(_) => Err(WireError::new("a list where a value is expected: write {\"seq\": [...]}")),
            Json::Object(fields) => {
                let field = |name: &str| fields.get(name);
                if let (1, Some(Json::String(name))) = (fields.len(), field("signal")) {
                    return signal::number(name)
                        .map(Self::Signal)
                        .ok_or_else(|| WireError::new(format!("the signal {name:?}: not one of a faulting access")));
                }
                match (fields.len(), field("errno"), field("time"), field("struct"), field("seq")) {
                    (1, Some(Json::String(name)), ..) => errno::number(name)
                        .map(Self::Errno)
                        .ok_or_else(|| WireError::new(format!("the error {name:?}: not a name of a Linux error"))),
                    (1, _, Some(time), ..) if time.is_i64() => Ok(Self::Time(time.as_i64().unwrap_or_default())),
                    (1, _, _, Some(Json::Object(members)), _) => members
                        .iter()
                        .map(|(name, value)| Ok((Cow::Owned(name.clone()), Self::from_json_nested(value, depth + 1)?)))
                        .collect::<Result<_, _>>()
                        .map(Self::Struct),
                    (1, _, _, _, Some(Json::Array(items))) => items
                        .iter()
                        .map(|item| Self::from_json_nested(item, depth + 1))
                        .collect::<Result<_, _>>()
                        .map(Self::Seq),
                    (2, ..) => match (field("sort"), field("id").and_then(Json::as_u64)) {
                        (Some(Json::String(sort)), Some(id)) => Ok(Self::Opaque { sort: Cow::Owned(sort.clone()), id }),
                        _ => Err(unknown_object(json)),
                    },
                    _ => Err(unknown_object(json)),
                }
            }
        }
    }
}

impl Value<'_> {
    /// The JSON value of a result; `id` of an opaque value and the number of a time are the implementation's own.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::from(*value),
            Self::Int(number) => Json::from(*number),
            Self::Text(text) => Json::from(text.as_ref()),
            Self::Errno(number) => match errno::name(*number) {
                Some(name) => json!({ "errno": name }),
                None => json!({ "errno": format!("E{number}") }),
            },
            Self::Signal(number) => match signal::name(*number) {
                Some(name) => json!({ "signal": name }),
                None => json!({ "signal": format!("SIG{number}") }),
            },
            Self::Opaque { sort, id } => json!({ "sort": sort, "id": id }),
            Self::Time(nanoseconds) => json!({ "time": nanoseconds }),
            Self::Struct(fields) => {
                let members: Map<String, Json> =
                    fields.iter().map(|(name, value)| (name.to_string(), value.to_json())).collect();
                json!({ "struct": members })
            }
            Self::Seq(items) => json!({ "seq": items.iter().map(Self::to_json).collect::<Vec<_>>() }),
        }
    }
}

fn unknown_object(json: &Json) -> WireError {
    let mut text = json.to_string();
    if text.chars().count() > 80 {
        text = text.chars().take(77).chain("...".chars()).collect();
    }
    WireError::new(format!("the value {text}: expected one of errno, signal, sort and id, time, struct, seq"))
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("nothing"),
            Self::Bool(value) => write!(formatter, "{value}"),
            Self::Int(number) => write!(formatter, "{number}"),
            Self::Text(text) => write!(formatter, "{text:?}"),
            Self::Errno(number) => match errno::name(*number) {
                Some(name) => formatter.write_str(name),
                None => write!(formatter, "error {number}"),
            },
            Self::Signal(number) => match signal::name(*number) {
                Some(name) => formatter.write_str(name),
                None => write!(formatter, "signal {number}"),
            },
            Self::Opaque { sort, id } => write!(formatter, "{sort} {id}"),
            Self::Time(time) => write!(formatter, "time {time}"),
            Self::Struct(fields) => {
                formatter.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    write!(formatter, "{}{name}: {value}", if index == 0 { "" } else { ", " })?;
                }
                formatter.write_str("}")
            }
            Self::Seq(items) => {
                formatter.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(formatter, "{}{item}", if index == 0 { "" } else { ", " })?;
                }
                formatter.write_str("]")
            }
        }
    }
}
