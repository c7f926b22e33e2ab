//! Kernel symbols, as `/proc/kallsyms` lists them: from an address to a function or variable, and back.
//!
//! A line is `address type name`, or `address type name<TAB>[module]`; the type's letter is that of `nm`. kallsyms has no
//! sizes, so a symbol reaches to the next one. Several names may share an address (aliases, section markers): the one that
//! a developer would use wins, by fixed rules, so that names do not depend on the order of lines. Per-CPU variables carry
//! their offset within the per-CPU area (`CONFIG_KALLSYMS_ABSOLUTE_PERCPU`) and are kept apart.

use std::collections::HashMap;

/// Longest symbol name, the kernel's `KSYM_NAME_LEN`.
const NAME_LIMIT_BYTES: usize = 512;
/// Debian's kernel has 94,000 symbols without modules.
const SYMBOL_LIMIT: usize = 4_000_000;
/// No function is longer.
const FUNCTION_LIMIT_BYTES: u64 = 1 << 20;
/// Where the upper half of the address space begins; per-CPU offsets are below.
const KERNEL_START: u64 = 0xff00_0000_0000_0000;

/// Why a symbol table was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SymbolError {
    /// A line breaks the format.
    #[error("line {line} of the symbol table: expected `address type name [module]`, {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What was found.
        problem: String,
    },
    /// All addresses are zero.
    #[error("the symbol table hides its addresses; read /proc/kallsyms as root with kernel.kptr_restrict=0")]
    Hidden,
    /// There is no function in it.
    #[error("the symbol table is empty; expected the text of /proc/kallsyms")]
    Empty,
}

/// What kind of thing a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Code.
    Function,
    /// A variable or constant in memory.
    Data,
    /// A per-CPU variable; its address is an offset within the per-CPU area.
    PerCpu,
}

/// One symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Name as listed, compiler suffixes included.
    pub name: &'a str,
    /// Virtual address, or offset for a per-CPU variable.
    pub address: u64,
    /// Bytes up to the next symbol; 0 where none follows.
    pub reach_bytes: u64,
    /// Function, variable or per-CPU variable.
    pub kind: SymbolKind,
    /// The module that it belongs to; `None` for the kernel proper.
    pub module: Option<&'a str>,
}

struct Entry {
    address: u64,
    name: std::ops::Range<u32>,
    module: Option<u16>,
    global: bool,
}

/// All symbols of a booted kernel.
pub struct KernelSymbols {
    text: String,
    modules: Vec<String>,
    /// Per kind, by address; one entry per address (the preferred name).
    functions: Vec<Entry>,
    data: Vec<Entry>,
    per_cpu: Vec<Entry>,
    by_name: HashMap<String, (SymbolKind, u64)>,
}

impl KernelSymbols {
    /// Reads the text of `/proc/kallsyms`.
    ///
    /// # Errors
    /// [`SymbolError`] for a line that breaks the format, hidden addresses, or a table without functions.
    pub fn parse(kallsyms: &[u8]) -> Result<Self, SymbolError> {
        let mut table = Self {
            text: String::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            data: Vec::new(),
            per_cpu: Vec::new(),
            by_name: HashMap::new(),
        };
        let mut lines = 0;
        let mut all_zero = true;
        let body = kallsyms.strip_suffix(b"\n").unwrap_or(kallsyms);
        for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
            if body.is_empty() {
                break;
            }
            lines += 1;
            if index >= SYMBOL_LIMIT || table.text.len() > u32::MAX as usize - NAME_LIMIT_BYTES {
                return Err(line_error(index, format!("found more than {SYMBOL_LIMIT} lines")));
            }
            all_zero &= table.add_line(index, line)? == 0;
        }
        if lines > 0 && all_zero {
            return Err(SymbolError::Hidden);
        }
        if table.functions.is_empty() {
            return Err(SymbolError::Empty);
        }
        let text = std::mem::take(&mut table.text);
        for (entries, kind) in [
            (&mut table.functions, SymbolKind::Function),
            (&mut table.data, SymbolKind::Data),
            (&mut table.per_cpu, SymbolKind::PerCpu),
        ] {
            prefer_one_per_address(entries, kind, &text);
        }
        table.text = text;
        Ok(table)
    }

    /// Adds one line; gives its address.
    fn add_line(&mut self, index: usize, line: &[u8]) -> Result<u64, SymbolError> {
        let line = std::str::from_utf8(line).map_err(|_| line_error(index, "found bytes that are not UTF-8"))?;
        let (symbol, module) = match line.split_once('\t') {
            Some((symbol, module)) => {
                let name = module.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                (symbol, Some(name.ok_or_else(|| line_error(index, format!("found {module:?} for the module")))?))
            }
            None => (line, None),
        };
        let mut parts = symbol.split(' ');
        let (Some(address), Some(letter), Some(name), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(line_error(index, format!("found {:?}", shortened(line))));
        };
        let hexadecimal = (1..=16).contains(&address.len()) && address.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = if hexadecimal { u64::from_str_radix(address, 16).ok() } else { None };
        let value = value.ok_or_else(|| line_error(index, format!("found the address {:?}", shortened(address))))?;
        // `?` is what nm, and the kernel after it, say of a symbol whose section they know no letter for: in a kernel without
        // hibernation `__nosave_begin` is one. It is data unless its neighbours say otherwise.
        if letter.len() != 1 || !letter.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'?') {
            return Err(line_error(index, format!("found the type {:?}", shortened(letter))));
        }
        if name.is_empty() || name.len() > NAME_LIMIT_BYTES || name.contains(char::is_control) {
            return Err(line_error(index, format!("found the name {:?}", shortened(name))));
        }
        let letter = letter.as_bytes()[0];
        let kind = match letter.to_ascii_lowercase() {
            _ if value < KERNEL_START => SymbolKind::PerCpu,
            b't' | b'w' | b'i' => SymbolKind::Function,
            _ => SymbolKind::Data,
        };
        let module = module.map(|module| self.module_index(index, module)).transpose()?;
        let start = self.text.len() as u32;
        self.text.push_str(name);
        let entry =
            Entry { address: value, name: start..self.text.len() as u32, module, global: letter.is_ascii_uppercase() };
        match kind {
            SymbolKind::Function => self.functions.push(entry),
            SymbolKind::Data => self.data.push(entry),
            SymbolKind::PerCpu => self.per_cpu.push(entry),
        }
        // Of several symbols of one name (static functions) the first, which is the kernel's before a module's.
        self.by_name.entry(name.to_owned()).or_insert((kind, value));
        Ok(value)
    }

    fn module_index(&mut self, line: usize, name: &str) -> Result<u16, SymbolError> {
        // A module's symbols stand together, so the last module is almost always the one.
        if let Some(position) = self.modules.iter().rposition(|module| module == name) {
            return Ok(position as u16);
        }
        let index =
            u16::try_from(self.modules.len()).map_err(|_| line_error(line, "found more than 65,536 modules"))?;
        self.modules.push(name.to_owned());
        Ok(index)
    }

    /// The address of a symbol of the kernel (for per-CPU variables: the offset); the first listed, if several have it.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).map(|(_, address)| *address)
    }

    /// The function that holds a code address.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<Symbol<'_>> {
        let symbol = self.lookup(&self.functions, SymbolKind::Function, address)?;
        // What lies after the last function of the kernel or of a module, or after a section's end mark, is none.
        let within = address - symbol.address < symbol.reach_bytes.clamp(1, FUNCTION_LIMIT_BYTES);
        (within && !is_marker(symbol.name, SymbolKind::Function)).then_some(symbol)
    }

    /// All functions, by address.
    pub fn functions(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.functions.iter().filter_map(|entry| self.function_at(entry.address))
    }

    /// The variable that holds an address of the kernel image or of a module.
    #[must_use]
    pub fn data_at(&self, address: u64) -> Option<Symbol<'_>> {
        let symbol = self.lookup(&self.data, SymbolKind::Data, address)?;
        let function = self.lookup(&self.functions, SymbolKind::Function, address);
        // Code between the variable and the address: the address lies in code, or in data that has no symbol.
        function.is_none_or(|function| function.address <= symbol.address).then_some(symbol)
    }

    /// The per-CPU variable at an offset of the per-CPU area.
    #[must_use]
    pub fn per_cpu_at(&self, offset: u64) -> Option<Symbol<'_>> {
        self.lookup(&self.per_cpu, SymbolKind::PerCpu, offset)
    }

    fn lookup<'a>(&'a self, entries: &'a [Entry], kind: SymbolKind, address: u64) -> Option<Symbol<'a>> {
        let next = entries.partition_point(|entry| entry.address <= address);
        let entry = entries.get(next.checked_sub(1)?)?;
        let reach_bytes = entries.get(next).map_or(0, |after| after.address - entry.address);
        let name = entry_name(&self.text, entry);
        let module = entry.module.and_then(|index| self.modules.get(usize::from(index))).map(String::as_str);
        Some(Symbol { name, address: entry.address, reach_bytes, kind, module })
    }

    /// Number of functions, variables and per-CPU variables with an address of their own.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.functions.len(), self.data.len(), self.per_cpu.len())
    }
}

fn entry_name<'a>(text: &'a str, entry: &Entry) -> &'a str {
    text.get(entry.name.start as usize..entry.name.end as usize).unwrap_or("")
}

/// Sorts by address and keeps the best name of each.
fn prefer_one_per_address(entries: &mut Vec<Entry>, kind: SymbolKind, text: &str) {
    entries.sort_by_cached_key(|entry| {
        let name = entry_name(text, entry);
        let underscores = name.bytes().take_while(|byte| *byte == b'_').count();
        (entry.address, is_marker(name, kind), !entry.global, underscores, name.len(), name.to_owned())
    });
    entries.dedup_by_key(|entry| entry.address);
}

/// Names that mark the start or end of a section, or that every function has besides its own. Many functions are called
/// `..._begin` or `__..._start`; the marks of code are few (`include/asm-generic/vmlinux.lds.h`).
fn is_marker(name: &str, kind: SymbolKind) -> bool {
    const MARKERS: [&str; 15] = [
        "__indirect_thunk_start",
        "__indirect_thunk_end",
        "__start_",
        "__stop_",
        "__pfx_",
        "_text",
        "_stext",
        "_etext",
        "_sdata",
        "_edata",
        "_end",
        "__bss_start",
        "__init_begin",
        "__init_end",
        "__per_cpu_start",
    ];
    MARKERS.iter().any(|marker| if marker.ends_with('_') { name.starts_with(marker) } else { name == *marker })
        || match kind {
            SymbolKind::Function => name.ends_with("_text_start") || name.ends_with("_text_end"),
            SymbolKind::Data | SymbolKind::PerCpu => {
                name.starts_with("__") && ["_start", "_end", "_begin"].iter().any(|end| name.ends_with(end))
            }
        }
}

/// The name without what the compiler puts after it (`.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.<hash>`):
/// what stays the same from one build to the next.
#[must_use]
pub fn without_compiler_suffix(name: &str) -> &str {
    const SUFFIXES: [&str; 6] = [".isra", ".constprop", ".part", ".cold", ".llvm", ".lto_priv"];
    let cut = SUFFIXES.iter().filter_map(|suffix| {
        let at = name.find(suffix).filter(|at| *at > 0)?;
        matches!(name.as_bytes().get(at + suffix.len()), None | Some(b'.')).then_some(at)
    });
    &name[..cut.min().unwrap_or(name.len())]
}

/// The name without the number that the compiler gives to variables within functions (`__key.12`), which changes with the
/// next build.
#[must_use]
pub fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, number)) if !stem.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => name,
    }
}

fn line_error(index: usize, problem: impl Into<String>) -> SymbolError {
    SymbolError::Line { line: index + 1, problem: problem.into() }
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}
