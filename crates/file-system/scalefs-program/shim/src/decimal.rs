//! Numbers in decimal, where there is no formatting.

/// Room for the longest number.
const MOST_DIGITS: usize = 20;

/// A number's digits.
pub(crate) struct Decimal {
    digits: [u8; MOST_DIGITS],
    start: usize,
}

impl Decimal {
    pub(crate) fn of(number: u64) -> Decimal {
        let mut decimal = Decimal { digits: [0; MOST_DIGITS], start: MOST_DIGITS };
        let mut left = number;
        loop {
            decimal.start -= 1;
            decimal.digits[decimal.start] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                return decimal;
            }
        }
    }

    pub(crate) fn digits(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}
