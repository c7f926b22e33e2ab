//! Numbers that look random, quick and the same in each run.

/// A row of them (Marsaglia's xorshift, 64 bits).
pub struct Random(u64);

impl Random {
    /// Another row for each seed.
    pub fn new(seed: usize) -> Random {
        Random((seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `end`.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(end)) >> 64) as u64
    }
}
