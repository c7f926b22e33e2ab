//! What the first page of a pool file says: that it is one, how large, for how many domains, and who is in it.
//!
//! ```text
//! line 0            magic 8 │ version 4 │ domains 4 │ bytes 8 │ self-test at 8 │ first free byte 8 │ 0 │ checksum 4
//! line 1 + d        domain d: state 8 │ host 8 │ process 8 │ incarnation 8, written by domain d alone
//! ```

use crate::checksum::checksum;
use crate::coherence::{CoherenceTest, DOMAINS};
use crate::line::LINE_BYTES;

/// The first eight bytes of every pool file.
pub const MAGIC: [u8; 8] = *b"POOL/cc\n";

/// Version of the format; others are refused.
pub const VERSION: u32 = 1;

/// The fixed part of a pool file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Domains that the pool can have.
    pub domain_count: usize,
    /// Bytes of the file.
    pub size_bytes: usize,
}

/// Why a file is no pool that can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not begin as a pool.
    NoPool,
    /// It has another version.
    Version(u32),
    /// Bits of its header are wrong, or a stranger wrote it.
    Damaged,
}

impl Header {
    /// Offset of the line of a domain.
    pub fn line_of_domain(domain: usize) -> usize {
        (1 + domain) * LINE_BYTES
    }

    /// Where the self-test's lines lie.
    pub fn coherence_test(&self) -> CoherenceTest {
        CoherenceTest { at: Header::line_of_domain(self.domain_count), domain_count: self.domain_count }
    }

    /// The first byte that the pool's users have, at the beginning of a page.
    pub fn first_free(&self) -> usize {
        let test = self.coherence_test();
        (test.at + CoherenceTest::bytes(self.domain_count)).next_multiple_of(4096)
    }

    /// The first line of the file.
    pub fn encode(&self) -> [u8; LINE_BYTES] {
        let mut line = [0; LINE_BYTES];
        line[..8].copy_from_slice(&MAGIC);
        line[8..12].copy_from_slice(&VERSION.to_le_bytes());
        line[12..16].copy_from_slice(&(self.domain_count as u32).to_le_bytes());
        line[16..24].copy_from_slice(&(self.size_bytes as u64).to_le_bytes());
        line[24..32].copy_from_slice(&(self.coherence_test().at as u64).to_le_bytes());
        line[32..40].copy_from_slice(&(self.first_free() as u64).to_le_bytes());
        let sum = checksum(VERSION, &line[..LINE_BYTES - 4]);
        line[LINE_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        line
    }

    /// What the first line of a file says.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn decode(line: &[u8; LINE_BYTES]) -> Result<Header, Refused> {
        if line[..8] != MAGIC {
            return Err(Refused::NoPool);
        }
        let version = word(line, 8) as u32;
        if version != VERSION {
            return Err(Refused::Version(version));
        }
        let header = Header {
            domain_count: (word(line, 8) >> 32) as usize,
            size_bytes: usize::try_from(word(line, 16)).map_err(|_| Refused::Damaged)?,
        };
        let is_possible = (1..=DOMAINS).contains(&header.domain_count) && header.size_bytes > header.first_free();
        // All else follows from these two: a line that says otherwise, or has another checksum, is none of ours.
        if is_possible && header.encode() == *line { Ok(header) } else { Err(Refused::Damaged) }
    }
}

/// The eight bytes at `start`.
pub fn word(bytes: &[u8], start: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[start..start + 8]);
    u64::from_le_bytes(word)
}
