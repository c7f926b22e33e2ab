//! Names that everybody has for a stripped module's code, whatever debug symbols are installed: those that it exports.
//!
//! What an exported function only jumps to is a part of it (`pthread_mutex_unlock` sets an argument, and jumps to a function
//! that has no name without debug symbols). How far such a piece reaches, the tables for unwinding say, which are never
//! stripped. A piece that several exported functions jump to is a part of none.

use std::collections::HashMap;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use iced_x86::{Decoder, DecoderOptions};
use object::{Object, ObjectSection};

/// First address, first address after, name.
pub(crate) type Symbol = (u64, u64, String);

/// First address and first address after it of each piece of code, by the tables for unwinding; ascending.
pub(crate) fn pieces(file: &object::File<'_>) -> Vec<(u64, u64)> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    let Ok(data) = section.uncompressed_data() else { return Vec::new() };
    let address = |name| file.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_eh_frame_hdr(address(".eh_frame_hdr"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let frames = EhFrame::from(EndianSlice::new(&data, LittleEndian));
    let mut found = Vec::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
        {
            found.push((entry.initial_address(), entry.initial_address().saturating_add(entry.len())));
        }
    }
    found.sort_unstable();
    found
}

/// The pieces that one exported function alone jumps to, by its name; ascending. `code` gives the bytes from an address on.
pub(crate) fn continued<'a>(
    exported: &[Symbol],
    pieces: &[(u64, u64)],
    code: impl Fn(u64, usize) -> &'a [u8],
) -> Vec<Symbol> {
    let mut reached: HashMap<usize, Option<&str>> = HashMap::new();
    for (start, end, name) in exported {
        let bytes = code(*start, (end - start) as usize);
        for instruction in Decoder::with_ip(64, bytes, *start, DecoderOptions::NONE).iter() {
            if !(instruction.is_jmp_short_or_near() || instruction.is_jcc_short_or_near()) {
                continue;
            }
            let target = instruction.near_branch_target();
            if (*start..*end).contains(&target) || at(exported, target).is_some() {
                continue;
            }
            let behind = pieces.partition_point(|piece| piece.0 <= target);
            let Some(place) = behind.checked_sub(1).filter(|place| target < pieces[*place].1) else { continue };
            let known = reached.entry(place).or_insert(Some(name));
            *known = known.filter(|known| known == name);
        }
    }
    let named = |(place, name): (usize, Option<&str>)| Some((pieces[place].0, pieces[place].1, name?.to_owned()));
    let mut found: Vec<Symbol> = reached.into_iter().filter_map(named).collect();
    found.sort();
    found
}

/// The symbol that holds an address.
pub(crate) fn at(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let behind = symbols.partition_point(|symbol| symbol.0 <= address);
    symbols.get(behind.checked_sub(1)?).filter(|(_, end, _)| address < *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0x100: `mov esi, 1; jmp 0x200`, as `pthread_mutex_unlock` is; 0x110 and 0x120: `jmp 0x300`; 0x130: `jmp 0x120`.
    fn code(address: u64, count: usize) -> &'static [u8] {
        const UNLOCK: [u8; 10] = [0xbe, 1, 0, 0, 0, 0xe9, 0xf6, 0, 0, 0];
        const FIRST: [u8; 5] = [0xe9, 0xeb, 1, 0, 0];
        const SECOND: [u8; 5] = [0xe9, 0xdb, 1, 0, 0];
        const OTHER: [u8; 2] = [0xeb, 0xee];
        match address {
            0x100 => &UNLOCK[..count],
            0x110 => &FIRST[..count],
            0x120 => &SECOND[..count],
            _ => &OTHER[..count],
        }
    }

    #[test]
    fn what_one_exported_function_jumps_to_is_a_part_of_it() {
        let exported: Vec<Symbol> =
            [(0x100, 0x10a, "unlock"), (0x110, 0x115, "first"), (0x120, 0x125, "second"), (0x130, 0x132, "other")]
                .map(|(start, end, name): (u64, u64, &str)| (start, end, name.to_owned()))
                .to_vec();
        let pieces = [(0x100, 0x10a), (0x200, 0x280), (0x300, 0x340)];
        assert_eq!(continued(&exported, &pieces, code), [(0x200, 0x280, "unlock".to_owned())], "0x300 is of two");
        assert_eq!(continued(&exported[..2], &pieces, code).len(), 2);
        assert_eq!(continued(&exported, &[], code), [], "nothing says how far it reaches");
    }

    #[test]
    fn a_symbol_holds_its_addresses_alone() {
        let symbols = [(16, 32, "a".to_owned()), (48, 64, "b".to_owned())];
        let name = |address| at(&symbols, address).map(|symbol| symbol.2.as_str());
        assert_eq!([15, 16, 31, 32, 63, 64].map(name), [None, Some("a"), Some("a"), None, Some("b"), None]);
    }
}
