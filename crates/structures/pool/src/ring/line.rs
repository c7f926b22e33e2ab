//! One line of a ring: bytes of a message under a checksum that its number is a part of.

use sync::mutant::planted;

use crate::checksum::checksum;
use crate::line::LINE_BYTES;

/// Bytes of a line before the message's: checksum 4, number 3, length and last 1.
const HEAD_BYTES: usize = 8;

/// Bytes of a message in one line.
pub const PAYLOAD_BYTES: usize = LINE_BYTES - HEAD_BYTES;

/// The message ends with this line.
const LAST: u8 = 0x80;
const LENGTH: u8 = 0x3F;

/// So much of a line's number stands in it; the whole number is under the checksum.
const NUMBER_BITS: u32 = 24;
const NUMBERS: u64 = 1 << NUMBER_BITS;

/// A line as it lies in memory.
pub type Bytes = [u8; LINE_BYTES];

/// What a line turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// The wanted line.
    Whole {
        /// Its part of the message.
        payload: &'a [u8],
        /// Whether the message ends here.
        is_last: bool,
    },
    /// Nothing, or a line that was wanted before.
    Old,
    /// Parts of two lines, or wrong bits.
    Torn,
    /// A valid line that no right sender writes.
    Impossible,
}

/// The line with this number and part of a message.
pub fn encode(salt: u32, number: u64, payload: &[u8], is_last: bool) -> Bytes {
    let mut bytes = [0; LINE_BYTES];
    bytes[4..7].copy_from_slice(&number.to_le_bytes()[..3]);
    bytes[7] = payload.len() as u8 | if is_last { LAST } else { 0 };
    bytes[HEAD_BYTES..HEAD_BYTES + payload.len()].copy_from_slice(payload);
    let sum = sum_of(salt, number, &bytes);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What these bytes are to somebody who wants line `number`.
pub fn decode(salt: u32, bytes: &Bytes, number: u64) -> Seen<'_> {
    if is_unwritten(bytes) {
        return Seen::Old;
    }
    // Numbers of lines that can be met lie close together: half of those that three bytes tell apart, to either side.
    let ahead = (low_number(bytes).wrapping_sub(number)) % NUMBERS;
    let is_old = ahead >= NUMBERS / 2;
    let found = if is_old { number.wrapping_sub(NUMBERS - ahead) } else { number + ahead };
    if !is_valid(salt, bytes, found) && !planted("pool: the checksum of a ring's line is not looked at") {
        return Seen::Torn;
    }
    if found != number && !planted("pool: the number of a ring's line is not looked at") {
        return if is_old { Seen::Old } else { Seen::Impossible };
    }
    let length = usize::from(bytes[7] & LENGTH);
    if length > PAYLOAD_BYTES || bytes[7] & !(LAST | LENGTH) != 0 {
        return Seen::Impossible;
    }
    Seen::Whole { payload: &bytes[HEAD_BYTES..HEAD_BYTES + length], is_last: bytes[7] & LAST != 0 }
}

/// Whether nothing was ever written here.
pub fn is_unwritten(bytes: &Bytes) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Whether a line agrees with its checksum, if it has this number.
pub fn is_valid(salt: u32, bytes: &Bytes, number: u64) -> bool {
    bytes[..4] == sum_of(salt, number, bytes).to_le_bytes()
}

/// The number of a line that is not before `least`.
pub fn number_from(bytes: &Bytes, least: u64) -> u64 {
    least + low_number(bytes).wrapping_sub(least) % NUMBERS
}

fn low_number(bytes: &Bytes) -> u64 {
    u64::from(u32::from_le_bytes([bytes[4], bytes[5], bytes[6], 0]))
}

fn sum_of(salt: u32, number: u64, bytes: &Bytes) -> u32 {
    checksum(checksum(salt, &number.to_le_bytes()), &bytes[4..])
}
