//! The name of a socket, as a value.

/// Longest name in bytes (`sun_path` of Linux less the byte that says "abstract").
pub const MAX_NAME_BYTES: usize = 107;

/// A socket's name: from 1 to [`MAX_NAME_BYTES`] bytes, of any value; or none.
#[derive(Clone, Copy)]
pub struct Name {
    length: u8,
    bytes: [u8; MAX_NAME_BYTES],
}

impl Name {
    /// No name.
    pub const NONE: Name = Name { length: 0, bytes: [0; MAX_NAME_BYTES] };

    /// A name of these bytes; `None` for none of them or too many.
    pub fn new(bytes: &[u8]) -> Option<Name> {
        let length = u8::try_from(bytes.len()).ok().filter(|&length| length > 0)?;
        let mut name = Name { length, ..Name::NONE };
        name.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(name)
    }

    /// The bytes; none if there is no name.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Name {}

impl core::fmt::Debug for Name {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{:?}", self.bytes().escape_ascii())
    }
}
