//! One ELF file with its symbols and debug information.

use std::path::Path;

use addr2line::{Context, Loader, demangle_auto};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol, SymbolKind};

use crate::separate::{self, Separate};

/// Why a file cannot be used for naming.
#[derive(Debug, thiserror::Error)]
pub enum ProgramNamingError {
    /// It cannot be read.
    #[error("cannot read {path}: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// What went wrong.
        problem: std::io::Error,
    },
    /// It is no ELF file of 64 bits, or a damaged one.
    #[error("{path}: expected an ELF file of 64 bits: {problem}")]
    NotElf {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Its debug information is missing or not that of what was loaded.
    #[error("{path}: {problem}")]
    Mismatch {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// What an instruction belongs to; a call that was inlined has one for each function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeName {
    /// The function, demangled.
    pub function: String,
    /// Source file and line, if debug information tells.
    pub line: Option<(String, u32)>,
}

impl CodeName {
    /// The functions that debug information tells of an instruction, the innermost first.
    pub(crate) fn all<R: gimli::Reader>(context: &Context<R>, address: u64) -> Vec<Self> {
        let mut names = Vec::new();
        if let Ok(mut frames) = context.find_frames(address).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                let function = frame.function.as_ref().and_then(|function| function.demangle().ok());
                let Some(function) = function.map(std::borrow::Cow::into_owned) else { continue };
                let place = frame.location.as_ref();
                let line = place.and_then(|place| Some((place.file?.to_owned(), place.line.unwrap_or(0))));
                names.push(Self { function, line });
            }
        }
        names
    }
}

/// A segment that is mapped from the file.
#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    file_bytes: u64,
    address: u64,
}

/// A variable's first address, first address after, and name.
type Variable = (u64, u64, String);

/// A file's names.
pub struct ProgramFile {
    loader: Loader,
    segments: Vec<Segment>,
    /// By first address.
    variables: Vec<Variable>,
    passed_over: Option<String>,
}

impl ProgramFile {
    /// Reads a file; `with_debug_file` also the debug information of a stripped one, where debuggers look for it.
    ///
    /// # Errors
    /// It cannot be read, or is no ELF file.
    pub fn open(path: &Path, with_debug_file: bool) -> Result<Self, ProgramNamingError> {
        let shown = || path.display().to_string();
        let not_elf = |problem: String| ProgramNamingError::NotElf { path: shown(), problem };
        let bytes = std::fs::read(path).map_err(|problem| ProgramNamingError::Unreadable { path: shown(), problem })?;
        let (segments, variables) = read(&bytes).map_err(|error| not_elf(error.to_string()))?;
        let separate = object::File::parse(&*bytes).ok().filter(|file| with_debug_file && !file.has_debug_symbols());
        let Separate { file: separate, of_other_build } =
            separate.map(|file| separate::debug_file(&file)).unwrap_or_default();
        let passed_over = of_other_build
            .map(|other| format!("{}: its debug information, {}, is of another build", shown(), other.display()));
        let loader = separate.as_ref().and_then(|path| Loader::new(path).ok());
        let loader = match loader {
            Some(loader) => loader,
            None => Loader::new(path).map_err(|error| not_elf(error.to_string()))?,
        };
        let mut file = Self { loader, segments, variables, passed_over };
        if let Some(Ok((_, variables))) = separate.and_then(|path| std::fs::read(path).ok()).map(|bytes| read(&bytes)) {
            file.variables.extend(variables);
            file.variables.sort();
            file.variables.dedup_by_key(|variable| variable.0);
        }
        Ok(file)
    }

    /// What there was for the file, but was not used, and why.
    #[must_use]
    pub fn passed_over(&self) -> Option<&str> {
        self.passed_over.as_deref()
    }

    /// The address of what stands at an offset of the file.
    #[must_use]
    pub fn address_at(&self, offset: u64) -> Option<u64> {
        // A mapping starts at a page, its segment perhaps after the page's start.
        const PAGE_BYTES: u64 = 4096;
        self.segments
            .iter()
            .find(|segment| {
                let start = segment.offset & !(PAGE_BYTES - 1);
                (start..segment.offset.saturating_add(segment.file_bytes)).contains(&offset)
            })
            .map(|segment| segment.address.wrapping_add(offset).wrapping_sub(segment.offset))
    }

    /// The functions that an instruction belongs to, the innermost first; none if there is no symbol for it.
    #[must_use]
    pub fn code(&self, address: u64) -> Vec<CodeName> {
        let mut names = Vec::new();
        let is_mapped = |segment: &Segment| address.wrapping_sub(segment.address) < segment.file_bytes;
        if !self.segments.iter().any(is_mapped) {
            return names;
        }
        if let Ok(mut frames) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let Some(function) = frame.function.as_ref().and_then(|function| function.demangle().ok()) else {
                    continue;
                };
                let line = frame.location.as_ref().and_then(|location| {
                    let file = location.file?;
                    Some((file.to_owned(), location.line.unwrap_or(0)))
                });
                names.push(CodeName { function: function.into_owned(), line });
            }
        }
        if names.is_empty()
            && let Some(symbol) = self.loader.find_symbol(address)
        {
            let function = readable(symbol);
            names.push(CodeName { function, line: None });
        }
        names
    }

    /// The variable that an address lies in, and how many bytes after its start.
    #[must_use]
    pub fn variable(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.variables.partition_point(|&(start, ..)| start <= address);
        let (start, end, name) = &self.variables[behind.checked_sub(1)?];
        (address < *end).then(|| (name.as_str(), address - start))
    }
}

fn read(bytes: &[u8]) -> object::Result<(Vec<Segment>, Vec<Variable>)> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let segments = header
        .program_headers(endian, bytes)?
        .iter()
        .filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD)
        .map(|segment| Segment {
            offset: segment.p_offset(endian),
            file_bytes: segment.p_filesz(endian),
            address: segment.p_vaddr(endian),
        })
        .collect();
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes)?;
    let mut variables: Vec<Variable> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0 && symbol.is_definition())
        .filter_map(|symbol| {
            let name = readable(symbol.name().ok()?);
            Some((symbol.address(), symbol.address().saturating_add(symbol.size()), name))
        })
        .collect();
    variables.sort();
    variables.dedup_by_key(|variable| variable.0);
    Ok((segments, variables))
}

/// A symbol's name as its source has it. Only what carries the mark of C++ or Rust is decoded: to the decoder the name of
/// a C variable such as `m` is an encoded type, `unsigned long`.
pub(crate) fn readable(symbol: &str) -> String {
    if symbol.starts_with("_Z") || symbol.starts_with("_R") {
        demangle_auto(symbol.into(), None).into_owned()
    } else {
        symbol.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_of_c_are_not_taken_for_encoded_types() {
        for name in ["m", "x", "i", "f", "Pv", "queue_lock"] {
            assert_eq!(readable(name), name);
        }
    }

    #[test]
    fn names_of_cpp_and_rust_are_decoded() {
        assert_eq!(readable("_ZN5store4lockE"), "store::lock");
        assert_eq!(readable("_ZN5store4lock17h0123456789abcdefE"), "store::lock");
        assert_eq!(readable("_RNvC6_123foo3bar"), "123foo::bar");
    }
}
