//! Values as bytes.

use messages::DomainNumber;
use posix_calls::{Ended, Kind, OnExec, Permissions, PipeEnd, Whence};

/// Bytes of any length up to 4 GiB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes(pub Vec<u8>);

/// What is left of a message.
#[derive(Debug)]
pub struct Reader<'m> {
    rest: &'m [u8],
}

impl<'m> Reader<'m> {
    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Option<&'m [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }
}

/// A value in a message.
pub trait Field: Sized {
    /// Puts it after what is there.
    fn put(&self, bytes: &mut Vec<u8>);
    /// Takes it; `None` if these bytes are none.
    fn take(reader: &mut Reader<'_>) -> Option<Self>;
}

/// The message that a value stands for.
pub fn encode(value: &impl Field) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    value.put(&mut bytes);
    bytes
}

/// The value of a message; `None` if it is no such value, or more than one.
pub fn decode<F: Field>(message: &[u8]) -> Option<F> {
    let mut reader = Reader { rest: message };
    let value = F::take(&mut reader)?;
    reader.rest.is_empty().then_some(value)
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn take(reader: &mut Reader<'_>) -> Option<$number> {
                Some(<$number>::from_le_bytes(reader.take(size_of::<$number>())?.try_into().ok()?))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, i64);

impl Field for bool {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn take(reader: &mut Reader<'_>) -> Option<bool> {
        match u8::take(reader)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Field for Bytes {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.0.len() as u32).put(bytes);
        bytes.extend_from_slice(&self.0);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Bytes> {
        let length = u32::take(reader)? as usize;
        Some(Bytes(reader.take(length)?.to_vec()))
    }
}

impl<F: Field> Field for Option<F> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.is_some().put(bytes);
        if let Some(value) = self {
            value.put(bytes);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Option<Option<F>> {
        Some(if bool::take(reader)? { Some(F::take(reader)?) } else { None })
    }
}

/// Values one after the other: no message has more than 65,535.
impl<F: Field> Field for Vec<F> {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.len() as u16).put(bytes);
        self.iter().for_each(|value| value.put(bytes));
    }

    fn take(reader: &mut Reader<'_>) -> Option<Vec<F>> {
        (0..u16::take(reader)?).map(|_| F::take(reader)).collect()
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        self.1.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<(A, B)> {
        Some((A::take(reader)?, B::take(reader)?))
    }
}

impl Field for DomainNumber {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }

    fn take(reader: &mut Reader<'_>) -> Option<DomainNumber> {
        u16::take(reader).map(DomainNumber)
    }
}

impl Field for Kind {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self as u8);
    }

    fn take(reader: &mut Reader<'_>) -> Option<Kind> {
        let number = u8::take(reader)?;
        Some(Kind::from_number(number)).filter(|kind| *kind as u8 == number)
    }
}

/// Declares how values of a type without fields lie in messages: each as a byte.
macro_rules! bytes_of {
    ($($type:ty: $($value:path = $number:literal),*);* $(;)?) => {$(
        impl Field for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.push(match self { $($value => $number),* });
            }

            fn take(reader: &mut Reader<'_>) -> Option<$type> {
                match u8::take(reader)? {
                    $($number => Some($value),)*
                    _ => None,
                }
            }
        }
    )*};
}

bytes_of! {
    PipeEnd: PipeEnd::Read = 0, PipeEnd::Write = 1;
    Whence: Whence::Start = 0, Whence::Current = 1, Whence::End = 2;
    OnExec: OnExec::Keep = 0, OnExec::Close = 1;
}

impl Field for Ended {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(match *self {
            Ended::Exited(status) => [0, status],
            Ended::Killed(signal) => [1, signal],
        });
    }

    fn take(reader: &mut Reader<'_>) -> Option<Ended> {
        match <[u8; 2]>::try_from(reader.take(2)?).ok()? {
            [0, status] => Some(Ended::Exited(status)),
            [1, signal] => Some(Ended::Killed(signal)),
            _ => None,
        }
    }
}

impl Field for Permissions {
    fn put(&self, bytes: &mut Vec<u8>) {
        [self.mode, self.user, self.group].iter().for_each(|number| number.put(bytes));
    }

    fn take(reader: &mut Reader<'_>) -> Option<Permissions> {
        Some(Permissions { mode: u32::take(reader)?, user: u32::take(reader)?, group: u32::take(reader)? })
    }
}

/// Declares a kind of message: each variant with its number and fields.
macro_rules! message {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$of_variant:meta])* $variant:ident = $number:literal { $($(#[$of_field:meta])* $field:ident: $type:ty),* $(,)? }),* $(,)?
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of_variant])* $variant { $($(#[$of_field])* $field: $type),* }),*
        }

        impl $crate::wire::Field for $name {
            fn put(&self, bytes: &mut Vec<u8>) {
                match self {
                    $($name::$variant { $($field),* } => {
                        bytes.push($number);
                        $($field.put(bytes);)*
                    })*
                }
            }

            fn take(reader: &mut $crate::wire::Reader<'_>) -> Option<$name> {
                match <u8 as $crate::wire::Field>::take(reader)? {
                    $($number => Some($name::$variant { $($field: $crate::wire::Field::take(reader)?),* }),)*
                    _ => None,
                }
            }
        }
    };
}

pub(super) use message;
