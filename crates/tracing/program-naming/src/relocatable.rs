//! A relocatable file, as a kernel's module is one, by the addresses at which it was loaded.
//!
//! All its sections begin at 0, so an address says nothing until each section has a place. Where functions were loaded
//! tells the places, and the debug information is relocated to them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SymbolKind};

use crate::file::{CodeName, ProgramNamingError};

type Section = EndianArcSlice<LittleEndian>;

/// A relocatable file's debug information.
pub struct RelocatableFile {
    context: Context<Section>,
}

impl RelocatableFile {
    /// Reads a file of whose functions `loaded` tells the addresses; functions that it does not know say nothing.
    ///
    /// # Errors
    /// It cannot be read, is no ELF file, has no debug information, or its functions lie otherwise than the loaded ones.
    pub fn open(path: &Path, loaded: &HashMap<String, u64>) -> Result<Self, ProgramNamingError> {
        let shown = || path.display().to_string();
        let bytes = std::fs::read(path).map_err(|problem| ProgramNamingError::Unreadable { path: shown(), problem })?;
        let refused = |problem: String| ProgramNamingError::NotElf { path: shown(), problem };
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes)
            .map_err(|error| refused(error.to_string()))?;
        let file = object::File::Elf64(file);
        if file.section_by_name(".debug_info").is_none() {
            return Err(ProgramNamingError::Mismatch { path: shown(), problem: "it has no debug information".into() });
        }
        let places =
            places(&file, loaded).map_err(|problem| ProgramNamingError::Mismatch { path: shown(), problem })?;
        let load = |id: SectionId| -> Result<Section, gimli::Error> {
            let data = file.section_by_name(id.name()).map(|section| relocated(&file, &section, &places));
            Ok(EndianArcSlice::new(Arc::from(data.unwrap_or_default()), LittleEndian))
        };
        let dwarf = Dwarf::load(load).map_err(|error| refused(error.to_string()))?;
        let context = Context::from_dwarf(dwarf).map_err(|error| refused(error.to_string()))?;
        Ok(Self { context })
    }

    /// The functions that an instruction belongs to, the innermost first; none if debug information does not tell.
    #[must_use]
    pub fn code(&self, address: u64) -> Vec<CodeName> {
        CodeName::all(&self.context, address)
    }
}

/// Where each section was loaded, from functions whose name is theirs alone.
fn places(file: &object::File<'_>, loaded: &HashMap<String, u64>) -> Result<HashMap<SectionIndex, u64>, String> {
    let mut functions: HashMap<&str, Option<(SectionIndex, u64)>> = HashMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition()) {
        if let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index()) {
            let place = Some((section, symbol.address()));
            functions.entry(name).and_modify(|known| *known = None).or_insert(place);
        }
    }
    let mut places = HashMap::new();
    for (name, address) in loaded {
        let Some(&Some((section, offset))) = functions.get(name.as_str()) else { continue };
        let place = address.wrapping_sub(offset);
        if *places.entry(section).or_insert(place) != place {
            return Err(format!("another kernel's: {name} lies elsewhere in the one that was loaded"));
        }
    }
    if places.is_empty() {
        Err("another kernel's: it has none of the functions that were loaded".into())
    } else {
        Ok(places)
    }
}

/// A section's bytes with the addresses that they refer to.
fn relocated<'a>(
    file: &object::File<'a>,
    section: &object::Section<'a, '_>,
    places: &HashMap<SectionIndex, u64>,
) -> Vec<u8> {
    let mut data = section.uncompressed_data().unwrap_or_default().into_owned();
    for (offset, relocation) in section.relocations() {
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let Ok(symbol) = file.symbol_by_index(symbol) else { continue };
        let place = symbol.section_index().and_then(|section| places.get(&section)).copied().unwrap_or(0);
        let value = place.wrapping_add(symbol.address()).wrapping_add_signed(relocation.addend());
        let size = usize::from(relocation.size() / 8);
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(size));
        if let Some(end) = end
            && let Some(bytes) = data.get_mut(end - size..end)
            && let Some(value) = value.to_le_bytes().get(..size)
        {
            bytes.copy_from_slice(value);
        }
    }
    data
}
