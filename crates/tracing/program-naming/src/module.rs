//! One ELF file that is loaded in a program: its functions, variables, and what its debug information tells of them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use addr2line::Context;
use gimli::{DebugInfoOffset, Dwarf, EndianArcSlice, LittleEndian, SectionId, UnitSectionOffset};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::debug::{Unit, read_unit};
use crate::face::{self, Symbol, at, continued};
use crate::file::{CodeName, readable};
use crate::separate;

type Section = EndianArcSlice<LittleEndian>;
/// Most units that are read together: those of a program that was optimised as a whole refer to thousands.
const MOST_UNITS: usize = 256;

/// A file's names. Addresses are the file's own.
pub struct Module {
    /// What the file is called, without its folder.
    pub name: String,
    code: Vec<Symbol>,
    data: Vec<Symbol>,
    /// Those that the file has itself: everybody has these names.
    own_code: Vec<Symbol>,
    own_data: Vec<Symbol>,
    /// Of a stripped file, what its functions continue in; found when first asked for.
    pieces: Vec<(u64, u64)>,
    continued: OnceLock<Vec<Symbol>>,
    text: Vec<(u64, Vec<u8>)>,
    context: Option<Context<Section>>,
    dwarf: Option<Arc<Dwarf<Section>>>,
    /// Compilation units that were read, by where they begin. Those that refer to each other are one.
    units: HashMap<usize, Arc<Unit>>,
    unit_starts: Vec<usize>,
    /// Global variables with the units that tell their types; read when first asked for.
    globals: Option<HashMap<u64, (Arc<Unit>, usize)>>,
    /// Where the adapter that this file has is from; looked for when first asked for.
    adapter: Option<Option<Arc<str>>>,
}

impl Module {
    /// Reads a file; of one that cannot be read nothing is known but its name.
    #[must_use]
    pub fn open(path: &Path) -> Module {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut module = Module {
            name,
            code: Vec::new(),
            data: Vec::new(),
            own_code: Vec::new(),
            own_data: Vec::new(),
            pieces: Vec::new(),
            continued: OnceLock::new(),
            text: Vec::new(),
            context: None,
            dwarf: None,
            units: HashMap::new(),
            unit_starts: Vec::new(),
            globals: None,
            adapter: None,
        };
        if let Ok(bytes) = std::fs::read(path)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            module.read(&file);
            (module.own_code, module.own_data) = (module.code.clone(), module.data.clone());
            module.pieces = face::pieces(&file);
            if module.dwarf.is_none()
                && let Some(bytes) = separate::debug_file(&file).file.and_then(|path| std::fs::read(path).ok())
                && let Ok(file) = object::File::parse(&*bytes)
            {
                module.read(&file);
            }
        }
        module
    }

    fn read(&mut self, file: &object::File<'_>) {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let place = match symbol.kind() {
                SymbolKind::Text => &mut self.code,
                SymbolKind::Data => &mut self.data,
                _ => continue,
            };
            if let Ok(name) = symbol.name()
                && symbol.is_definition()
                && symbol.size() > 0
            {
                place.push((symbol.address(), symbol.address().saturating_add(symbol.size()), readable(name)));
            }
        }
        for symbols in [&mut self.code, &mut self.data] {
            // Of several names the one that a program would write: a library's own begin with underscores.
            symbols.sort_by_cached_key(|(start, _, name)| {
                let bare = name.trim_start_matches("__GI_").trim_start_matches('_').len();
                (*start, name.len() - bare, name.clone())
            });
            symbols.dedup_by_key(|symbol| symbol.0);
        }
        if self.text.is_empty() {
            let is_text = |section: &object::Section<'_, '_>| section.kind() == object::SectionKind::Text;
            let bytes = |section: object::Section<'_, '_>| Some((section.address(), section.data().ok()?.to_vec()));
            self.text = file.sections().filter(is_text).filter_map(bytes).collect();
        }
        if file.section_by_name(".debug_info").is_some() {
            let load = |id: SectionId| -> Result<Section, gimli::Error> {
                let data = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
                Ok(EndianArcSlice::new(Arc::from(&*data.unwrap_or_default()), LittleEndian))
            };
            if let Ok(dwarf) = Dwarf::load(load) {
                let dwarf = Arc::new(dwarf);
                self.context = Context::from_arc_dwarf(Arc::clone(&dwarf)).ok();
                self.dwarf = Some(dwarf);
            }
        }
    }

    /// The function whose symbol holds an address, and how many bytes after its start.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(&str, u64)> {
        symbol_at(&self.code, address)
    }

    /// What the function at an address is called, whatever debug symbols are installed: by the file's own symbols; else the
    /// module, with the name that debug symbols have (`libc.so.6!_int_free`), or its place there.
    #[must_use]
    pub fn public_function(&self, address: u64) -> String {
        let found = || {
            self.continued.get_or_init(|| continued(&self.own_code, &self.pieces, |at, most| self.code_bytes(at, most)))
        };
        let own = at(&self.own_code, address).or_else(|| at(found(), address));
        own.map_or_else(|| self.hidden(self.function(address), address), |(_, _, name)| name.clone())
    }

    /// Whether the variable at an address is one of the file's own symbols.
    #[must_use]
    pub fn is_own_variable(&self, address: u64) -> bool {
        at(&self.own_data, address).is_some()
    }

    fn hidden(&self, known: Option<(&str, u64)>, address: u64) -> String {
        known.map_or_else(|| format!("{}+{address:#x}", self.name), |(name, _)| format!("{}!{name}", self.name))
    }

    /// The variable that an address lies in, and how many bytes after its start.
    #[must_use]
    pub fn variable(&self, address: u64) -> Option<(&str, u64)> {
        symbol_at(&self.data, address)
    }

    /// The functions that an instruction belongs to, the innermost first; none without debug information.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<CodeName> {
        self.context.as_ref().map_or_else(Vec::new, |context| CodeName::all(context, address))
    }

    /// The unit that has the code at an address.
    pub(crate) fn unit_of_code(&mut self, address: u64) -> Option<Arc<Unit>> {
        let context = self.context.as_ref()?;
        let unit = context.find_dwarf_and_unit(address).skip_all_loads()?;
        let UnitSectionOffset(place) = unit.header.offset();
        self.unit_at(place)
    }

    /// The unit that begins at a place of the file, read together with those that it refers to.
    fn unit_at(&mut self, place: usize) -> Option<Arc<Unit>> {
        if let Some(known) = self.units.get(&place) {
            return Some(Arc::clone(known));
        }
        let dwarf = self.dwarf.clone()?;
        let (mut read, mut places, mut asked) = (Unit::default(), Vec::new(), vec![place]);
        while let Some(place) = asked.pop().filter(|_| places.len() < MOST_UNITS) {
            let starts = self.starts(&dwarf);
            let Some(&start) = starts.get(starts.partition_point(|start| *start <= place).wrapping_sub(1)) else {
                continue;
            };
            if places.contains(&start) {
                continue;
            }
            places.push(start);
            let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(start));
            let Some(unit) = header.ok().and_then(|header| dwarf.unit(header).ok()) else { continue };
            let (more, elsewhere) = read_unit(unit.unit_ref(&dwarf), read);
            read = more;
            asked.extend(elsewhere);
        }
        let read = Arc::new(read);
        for place in places {
            self.units.insert(place, Arc::clone(&read));
        }
        Some(read)
    }

    /// Where units begin, in order.
    fn starts(&mut self, dwarf: &Dwarf<Section>) -> &[usize] {
        if self.unit_starts.is_empty() {
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                let UnitSectionOffset(place) = header.offset();
                self.unit_starts.push(place);
            }
        }
        &self.unit_starts
    }

    /// The unit and type of the global variable at exactly this address.
    pub(crate) fn type_of_variable(&mut self, address: u64) -> Option<(Arc<Unit>, usize)> {
        if self.globals.is_none() {
            self.globals = Some(self.read_globals());
        }
        self.globals.as_ref()?.get(&address).map(|(unit, entry)| (Arc::clone(unit), *entry))
    }

    /// Where the adapter for a library that this file has is from: its source file, or crate. What is from there was written
    /// to try the library, and is none of it.
    pub(crate) fn adapter(&mut self) -> Option<Arc<str>> {
        if self.adapter.is_none() {
            self.adapter = Some(self.find_adapter());
        }
        self.adapter.clone().flatten()
    }

    fn find_adapter(&mut self) -> Option<Arc<str>> {
        self.own_data.iter().find(|(_, _, name)| name.starts_with("commutant_adapter"))?;
        let dwarf = self.dwarf.clone()?;
        let places = self.starts(&dwarf).to_vec();
        places.into_iter().find_map(|place| self.unit_at(place)?.adapter.clone())
    }

    fn read_globals(&mut self) -> HashMap<u64, (Arc<Unit>, usize)> {
        let mut globals = HashMap::new();
        let Some(dwarf) = self.dwarf.clone() else { return globals };
        for place in self.starts(&dwarf).to_vec() {
            let Some(read) = self.unit_at(place) else { continue };
            for global in &read.globals {
                globals.entry(global.address).or_insert_with(|| (Arc::clone(&read), global.of_type));
            }
        }
        globals
    }

    /// The bytes of code from an address on, at most this many.
    pub(crate) fn code_bytes(&self, address: u64, most: usize) -> &[u8] {
        for (start, bytes) in &self.text {
            if let Some(rest) = address.checked_sub(*start).and_then(|offset| bytes.get(offset as usize..)) {
                return &rest[..rest.len().min(most)];
            }
        }
        &[]
    }
}

fn symbol_at(symbols: &[Symbol], address: u64) -> Option<(&str, u64)> {
    at(symbols, address).map(|(start, _, name)| (name.as_str(), address - start))
}
