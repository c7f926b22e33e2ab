//! The layout as text, one item per line; a version in the first line.
//!
//! ```text
//! layout_version 4
//! <number> <value>                                         every number of `Numbers`, once, in hexadecimal
//! type <name> <size>                                       numbered from 0 in order
//! root object|pointer|percpu|percpu_object <type> <address>
//! root pointers:<count>|list:<offset> <type> <address>
//! edge <type> pointer|pointers:<count>|percpu|page <offset> <type> <offset in target> [if <offset> <mask> <value>]
//! region <name> <pointer> mask|shift <variable> <bytes of an entry>
//! ```
//!
//! All values are hexadecimal with `0x`. Reading is strict: an unknown, missing or repeated number, an index without a type,
//! or a value out of bounds is an error that names its line.

use std::fmt::Write as _;

use super::pointers::{Edge, EdgeKind, Guard, Region, RegionEntries, Root, RootKind, TYPE_NAME_LIMIT_BYTES, TypeEntry};
use super::{GuestLayout, LayoutError, Numbers};

/// Version of this text.
pub(super) const LAYOUT_VERSION: u64 = 4;
/// More items of a kind than any derived layout has; a bound against hostile text.
const ITEM_LIMIT: usize = 4096;
/// Offsets within an object stay below this.
const OFFSET_LIMIT: u64 = 1 << 20;

impl GuestLayout {
    /// Writes the layout as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (key, value) in self.numbers.values() {
            line(&mut text, format_args!("{key} {value:#x}"));
        }
        for kind in &self.types {
            line(&mut text, format_args!("type {} {:#x}", kind.name, kind.size_bytes));
        }
        for root in &self.roots {
            let kind = match root.kind {
                RootKind::Object => "object".to_owned(),
                RootKind::Pointer => "pointer".to_owned(),
                RootKind::PerCpuPointer => "percpu".to_owned(),
                RootKind::PerCpuObject => "percpu_object".to_owned(),
                RootKind::Pointers(count) => format!("pointers:{count:#x}"),
                RootKind::List(offset) => format!("list:{offset:#x}"),
            };
            line(&mut text, format_args!("root {kind} {:#x} {:#x}", root.target, root.address));
        }
        for edge in &self.edges {
            let kind = match edge.kind {
                EdgeKind::Pointer => "pointer".to_owned(),
                EdgeKind::PerCpu => "percpu".to_owned(),
                EdgeKind::Page => "page".to_owned(),
                EdgeKind::Pointers(count) => format!("pointers:{count:#x}"),
            };
            let guard = edge.guard.map_or(String::new(), |guard| {
                format!(" if {:#x} {:#x} {:#x}", guard.offset_bytes, guard.mask, guard.value)
            });
            let (source, offset, target) = (edge.source, edge.offset_bytes, edge.target);
            let within = edge.target_offset_bytes;
            line(&mut text, format_args!("edge {source:#x} {kind} {offset:#x} {target:#x} {within:#x}{guard}"));
        }
        for region in &self.regions {
            let kind = match region.entries {
                RegionEntries::Mask => "mask",
                RegionEntries::ShiftFrom32 => "shift",
            };
            let (name, pointer) = (&region.name, region.pointer);
            let (variable, entry_bytes) = (region.entries_variable, region.entry_bytes);
            line(&mut text, format_args!("region {name} {pointer:#x} {kind} {variable:#x} {entry_bytes:#x}"));
        }
        text
    }

    /// Reads a layout's text.
    ///
    /// # Errors
    /// [`LayoutError::Text`] names the line and what was expected there.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let mut layout = Self {
            numbers: Numbers::default(),
            types: Vec::new(),
            roots: Vec::new(),
            edges: Vec::new(),
            regions: Vec::new(),
        };
        let mut seen: Vec<&str> = Vec::new();
        let mut last_line = 0;
        for (index, row) in text.lines().enumerate() {
            last_line = index + 1;
            let fail = |problem: String| LayoutError::Text { line: index + 1, problem };
            let mut words = Words { words: row.split(' ') };
            let key = words.next().map_err(fail)?;
            if index == 0 && key != "layout_version" {
                return Err(fail(format!("expected `layout_version`, found {key:?}")));
            }
            match key {
                "type" => layout.types.push(words.type_entry().map_err(fail)?),
                "root" => layout.roots.push(words.root().map_err(fail)?),
                "edge" => layout.edges.push(words.edge().map_err(fail)?),
                "region" => layout.regions.push(words.region().map_err(fail)?),
                number => {
                    if seen.contains(&number) {
                        return Err(fail(format!("`{number}` stands here a second time")));
                    }
                    let value = words.value(u64::MAX).map_err(fail)?;
                    if !layout.numbers.set(number, value) {
                        return Err(fail(format!("expected a known key, found {:?}", shortened(number))));
                    }
                    if number == "layout_version" && value != LAYOUT_VERSION {
                        return Err(fail(format!("expected layout version {LAYOUT_VERSION}, found {value}")));
                    }
                    seen.push(number);
                }
            }
            words.end().map_err(fail)?;
            let counts = [layout.types.len(), layout.roots.len(), layout.edges.len(), layout.regions.len()];
            if counts.iter().any(|count| *count > ITEM_LIMIT) {
                return Err(fail(format!("expected at most {ITEM_LIMIT} items of a kind")));
            }
        }
        let fail = |problem: String| LayoutError::Text { line: last_line, problem };
        if !text.is_empty() && !text.ends_with('\n') {
            // A number that lost its last digits is a number.
            return Err(fail("expected the line to end with a line feed: the text is cut off".to_owned()));
        }
        if let Some(missing) = Numbers::KEYS.iter().find(|key| !seen.contains(*key)) {
            return Err(fail(format!("the text ends without `{missing}`")));
        }
        layout.check().map_err(fail)?;
        layout.edges.sort_by_key(|edge| edge.source);
        Ok(layout)
    }

    /// Conditions that capturing relies on to stay cheap (it checks every read itself).
    fn check(&self) -> Result<(), String> {
        let type_count = self.types.len();
        let indices = self.roots.iter().map(|root| root.target);
        let indices = indices.chain(self.edges.iter().flat_map(|edge| [edge.source, edge.target]));
        if let Some(index) = indices.into_iter().find(|index| usize::from(*index) >= type_count) {
            return Err(format!("type {index} is referred to, but there are {type_count}"));
        }
        let numbers = &self.numbers;
        for (key, value) in [("page_size", numbers.page_size), ("stack_size", numbers.stack_size)] {
            if value == 0 || value > OFFSET_LIMIT {
                return Err(format!("expected `{key}` between 1 and {OFFSET_LIMIT}, found {value}"));
            }
        }
        if numbers.image_end < numbers.image_start {
            return Err("expected `image_end` behind `image_start`".to_owned());
        }
        if numbers.page_reserved_bit > 63 {
            return Err(format!("expected `page_reserved_bit` below 64, found {}", numbers.page_reserved_bit));
        }
        Ok(())
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
}

fn shortened(word: &str) -> String {
    word.chars().take(60).collect()
}

fn hexadecimal(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x")?;
    let plain = (1..=16).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// The words of one line.
struct Words<'a> {
    words: std::str::Split<'a, char>,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.words.next().filter(|word| !word.is_empty()).ok_or_else(|| "the line ends too early".to_owned())
    }

    fn end(&mut self) -> Result<(), String> {
        self.words.next().map_or(Ok(()), |word| Err(format!("expected the line to end, found {:?}", shortened(word))))
    }

    fn value(&mut self, limit: u64) -> Result<u64, String> {
        let word = self.next()?;
        let value = hexadecimal(word).filter(|value| *value <= limit);
        value.ok_or_else(|| format!("expected a number from 0x0 to {limit:#x}, found {:?}", shortened(word)))
    }

    fn offset(&mut self) -> Result<u32, String> {
        Ok(self.value(OFFSET_LIMIT)? as u32)
    }

    fn index(&mut self) -> Result<u16, String> {
        Ok(self.value(ITEM_LIMIT as u64)? as u16)
    }

    fn name(&mut self) -> Result<String, String> {
        let name = self.next()?;
        if name.len() > TYPE_NAME_LIMIT_BYTES || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "expected a name of at most {TYPE_NAME_LIMIT_BYTES} bytes, found {:?}",
                shortened(name)
            ));
        }
        Ok(name.to_owned())
    }

    fn type_entry(&mut self) -> Result<TypeEntry, String> {
        Ok(TypeEntry { name: self.name()?, size_bytes: self.value(u64::from(u32::MAX))? })
    }

    /// A kind, with the number after its colon.
    fn kind(&mut self) -> Result<(&'a str, u32), String> {
        let word = self.next()?;
        let (kind, number) = word.split_once(':').unwrap_or((word, "0x0"));
        let number = hexadecimal(number).filter(|number| *number <= OFFSET_LIMIT);
        let number = number.ok_or_else(|| format!("expected a small number behind {kind:?}"))?;
        Ok((kind, number as u32))
    }

    fn root(&mut self) -> Result<Root, String> {
        let kind = match self.kind()? {
            ("object", _) => RootKind::Object,
            ("pointer", _) => RootKind::Pointer,
            ("percpu", _) => RootKind::PerCpuPointer,
            ("percpu_object", _) => RootKind::PerCpuObject,
            ("pointers", count) => RootKind::Pointers(count),
            ("list", offset) => RootKind::List(offset),
            (kind, _) => return Err(format!("expected the kind of a root, found {:?}", shortened(kind))),
        };
        Ok(Root { kind, target: self.index()?, address: self.value(u64::MAX)? })
    }

    fn edge(&mut self) -> Result<Edge, String> {
        let source = self.index()?;
        let kind = match self.kind()? {
            ("pointer", _) => EdgeKind::Pointer,
            ("pointers", count) => EdgeKind::Pointers(count),
            ("percpu", _) => EdgeKind::PerCpu,
            ("page", _) => EdgeKind::Page,
            (kind, _) => return Err(format!("expected the kind of an edge, found {:?}", shortened(kind))),
        };
        let (offset_bytes, target, target_offset_bytes) = (self.offset()?, self.index()?, self.offset()?);
        let guard = match self.words.next() {
            None => None,
            Some("if") => {
                let (offset_bytes, mask, value) = (self.offset()?, self.value(u64::MAX)?, self.value(u64::MAX)?);
                Some(Guard { offset_bytes, mask, value })
            }
            Some(word) => return Err(format!("expected `if` or the end of the line, found {:?}", shortened(word))),
        };
        Ok(Edge { source, kind, offset_bytes, target, target_offset_bytes, guard })
    }

    fn region(&mut self) -> Result<Region, String> {
        let (name, pointer) = (self.name()?, self.value(u64::MAX)?);
        let entries = match self.next()? {
            "mask" => RegionEntries::Mask,
            "shift" => RegionEntries::ShiftFrom32,
            word => return Err(format!("expected `mask` or `shift`, found {:?}", shortened(word))),
        };
        let (entries_variable, entry_bytes) = (self.value(u64::MAX)?, self.value(OFFSET_LIMIT)?);
        Ok(Region { name, pointer, entries_variable, entries, entry_bytes })
    }
}
