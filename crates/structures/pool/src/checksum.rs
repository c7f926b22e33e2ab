//! CRC-32C (Castagnoli), by eight tables of 256 words: what makes a line validate itself.
//!
//! Every change of up to three bits of a line is found, and of two versions that are mixed all but one in four billion.

/// Reflected polynomial of CRC-32C (RFC 3720, 12.1).
const POLYNOMIAL: u32 = 0x82F6_3B78;

static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 0 { value >> 1 } else { (value >> 1) ^ POLYNOMIAL };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The checksum of `bytes`, begun with `salt`, so that what belongs elsewhere is not taken for valid here.
pub fn checksum(salt: u32, bytes: &[u8]) -> u32 {
    let mut state = !salt;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word) ^ u64::from(state);
        state = 0;
        let mut index = 0;
        while index < 8 {
            state ^= TABLES[7 - index][(word >> (8 * index)) as usize & 0xFF];
            index += 1;
        }
    }
    for byte in rest {
        state = (state >> 8) ^ TABLES[0][((state ^ u32::from(*byte)) & 0xFF) as usize];
    }
    !state
}
