//! Reads a compilation unit into plain data.

use std::collections::BTreeSet;
use std::sync::Arc;

use gimli::{
    AttributeValue, EndianArcSlice, EntriesTreeNode, Expression, LittleEndian, Operation, UnitRef, UnitSectionOffset,
    constants,
};

use super::source_files::LIBRARY_NAMESPACES;
use super::types::Record;
use super::{Declared, Entry, Field, Function, Global, Local, Place, Type, Unit};

pub(crate) type Section = EndianArcSlice<LittleEndian>;
type Node<'abbrev, 'tree> = EntriesTreeNode<'abbrev, 'tree, Section>;
type Die = gimli::DebuggingInformationEntry<Section>;

/// Deepest nesting of entries that is read.
const DEEPEST: usize = 64;

/// How the constants begin that make a shared object an adapter.
const ADAPTER: &str = "commutant_adapter";

struct Reading<'a> {
    unit: UnitRef<'a, Section>,
    into: Unit,
    /// The paths of the files of the line table.
    files: Vec<Arc<str>>,
    /// The outermost namespace that the present entry is in: in Rust, the crate.
    namespace: Option<Arc<str>>,
    is_rust: bool,
    /// How many namespaces of a language's library the present entry is in.
    library_namespaces: usize,
    /// Entries of other units that this one refers to.
    elsewhere: BTreeSet<Entry>,
}

/// Reads a whole unit into what was read of others. What cannot be read is left out. Returns the entries of further units that
/// it refers to.
pub(crate) fn read_unit(unit: UnitRef<'_, Section>, into: Unit) -> (Unit, BTreeSet<Entry>) {
    let mut reading = Reading {
        unit,
        into,
        files: source_files(&unit),
        namespace: None,
        is_rust: false,
        library_namespaces: 0,
        elsewhere: BTreeSet::new(),
    };
    if let Ok(mut tree) = unit.entries_tree(None)
        && let Ok(root) = tree.root()
    {
        let language = root.entry().attr_value(constants::DW_AT_language);
        reading.is_rust = matches!(language, Some(AttributeValue::Language(constants::DW_LANG_Rust)));
        reading.into.is_c |= matches!(
            language,
            Some(AttributeValue::Language(
                constants::DW_LANG_C | constants::DW_LANG_C89 | constants::DW_LANG_C99 | constants::DW_LANG_C11
            ))
        ) || matches!(language, Some(AttributeValue::Language(constants::DwLang(0x2c..=0x2d))));
        reading.children(root, None, 0);
    }
    (reading.into, reading.elsewhere)
}

fn source_files(unit: &UnitRef<'_, Section>) -> Vec<Arc<str>> {
    let Some(program) = &unit.line_program else { return Vec::new() };
    let header = program.header();
    let path = |file: &gimli::FileEntry<Section>| -> Arc<str> {
        let text = |value| unit.attr_string(value).ok().map(|text| String::from_utf8_lossy(text.bytes()).into_owned());
        let directory = file.directory(header).and_then(text).unwrap_or_default();
        let name = text(file.path_name()).unwrap_or_default();
        if name.starts_with('/') { name.into() } else { format!("{directory}/{name}").into() }
    };
    // DWARF 5 counts files from 0, older ones from 1.
    let first = (header.version() < 5).then(|| Arc::from(""));
    first.into_iter().chain(header.file_names().iter().map(path)).collect()
}

impl Reading<'_> {
    fn children(&mut self, node: Node<'_, '_>, class: Option<Entry>, depth: usize) {
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            self.entry(child, class, depth);
        }
    }

    fn text(&self, die: &Die, attribute: gimli::DwAt) -> Option<String> {
        let text = self.unit.attr_string(die.attr_value(attribute)?).ok()?;
        Some(String::from_utf8_lossy(text.bytes()).into_owned())
    }

    fn entry_of(&self, die: &Die) -> Entry {
        die.offset().0 + self.start()
    }

    /// Where the unit begins: entries are distinguished within the whole file.
    fn start(&self) -> usize {
        let UnitSectionOffset(start) = self.unit.header.offset();
        start
    }

    fn reference(&mut self, die: &Die, attribute: gimli::DwAt) -> Option<Entry> {
        let start = self.start();
        match die.attr_value(attribute)? {
            AttributeValue::UnitRef(offset) => Some(offset.0 + start),
            AttributeValue::DebugInfoRef(offset) => {
                let unit = start..start + self.unit.header.length_including_self();
                if !unit.contains(&offset.0) {
                    self.elsewhere.insert(offset.0);
                }
                Some(offset.0)
            }
            _ => None,
        }
    }

    fn number(die: &Die, attribute: gimli::DwAt) -> Option<u64> {
        die.attr_value(attribute)?.udata_value()
    }

    fn entry(&mut self, node: Node<'_, '_>, class: Option<Entry>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let die = node.entry();
        let entry = self.entry_of(die);
        match die.tag() {
            constants::DW_TAG_subprogram => {
                let function = self.function(node, class, depth);
                self.into.declared.insert(entry, function.declared.clone());
                if !function.ranges.is_empty() {
                    self.into.functions.push(function);
                }
            }
            constants::DW_TAG_variable => self.global(die),
            constants::DW_TAG_base_type | constants::DW_TAG_enumeration_type | constants::DW_TAG_unspecified_type => {
                let name = self.text(die, constants::DW_AT_name).unwrap_or_default();
                let size_bytes = Self::number(die, constants::DW_AT_byte_size).unwrap_or(0);
                self.into.types.insert(entry, Type::Base { name, size_bytes });
            }
            constants::DW_TAG_pointer_type
            | constants::DW_TAG_reference_type
            | constants::DW_TAG_rvalue_reference_type => {
                let target = self.reference(die, constants::DW_AT_type);
                self.into.types.insert(entry, Type::Pointer(target));
            }
            constants::DW_TAG_typedef
            | constants::DW_TAG_const_type
            | constants::DW_TAG_volatile_type
            | constants::DW_TAG_restrict_type
            | constants::DW_TAG_atomic_type => {
                let name = self.text(die, constants::DW_AT_name);
                let target = self.reference(die, constants::DW_AT_type);
                self.into.types.insert(entry, Type::Alias(name, target));
            }
            constants::DW_TAG_array_type => self.array(node),
            constants::DW_TAG_structure_type | constants::DW_TAG_class_type | constants::DW_TAG_union_type => {
                self.record(node, depth);
            }
            constants::DW_TAG_namespace => {
                let name = self.text(die, constants::DW_AT_name);
                let is_library = name.as_deref().is_some_and(|name| LIBRARY_NAMESPACES.contains(&name));
                let is_outermost = self.namespace.is_none();
                if is_outermost {
                    self.namespace = name.map(Arc::from);
                }
                self.library_namespaces += usize::from(is_library);
                self.children(node, class, depth + 1);
                self.library_namespaces -= usize::from(is_library);
                if is_outermost {
                    self.namespace = None;
                }
            }
            // What only holds other entries.
            _ => self.children(node, class, depth + 1),
        }
    }

    fn file_of(&self, die: &Die) -> Option<&Arc<str>> {
        let Some(AttributeValue::FileIndex(number)) = die.attr_value(constants::DW_AT_decl_file) else { return None };
        self.files.get(usize::try_from(number).ok()?)
    }

    /// Where an entry is from: its crate, as rustc says of no type which file it is from; else its source file.
    fn origin_of(&self, die: &Die) -> Option<Arc<str>> {
        if self.is_rust { self.namespace.clone() } else { self.file_of(die).cloned() }
    }

    fn array(&mut self, node: Node<'_, '_>) {
        let entry = self.entry_of(node.entry());
        let Some(of) = self.reference(node.entry(), constants::DW_AT_type) else { return };
        let mut counts = Vec::new();
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let die = child.entry();
            if die.tag() == constants::DW_TAG_subrange_type {
                let upper = || Self::number(die, constants::DW_AT_upper_bound).and_then(|bound| bound.checked_add(1));
                counts.push(Self::number(die, constants::DW_AT_count).or_else(upper));
            }
        }
        let count = if counts.is_empty() {
            None
        } else {
            counts.into_iter().try_fold(1u64, |all, count| all.checked_mul(count?))
        };
        self.into.types.insert(entry, Type::Array(of, count));
    }

    fn record(&mut self, node: Node<'_, '_>, depth: usize) {
        let die = node.entry();
        let entry = self.entry_of(die);
        let mut record = Record {
            name: self.text(die, constants::DW_AT_name).unwrap_or_default(),
            keyword: match die.tag() {
                constants::DW_TAG_union_type => "union",
                constants::DW_TAG_class_type => "class",
                _ => "struct",
            },
            size_bytes: Self::number(die, constants::DW_AT_byte_size).unwrap_or(0),
            is_declaration: die.has_attr(constants::DW_AT_declaration),
            is_of_library: self.library_namespaces > 0,
            origin: self.origin_of(die),
            ..Record::default()
        };
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let die = child.entry();
            let of_type = self.reference(die, constants::DW_AT_type);
            match (die.tag(), of_type) {
                (constants::DW_TAG_member | constants::DW_TAG_inheritance, Some(of_type)) => {
                    let is_static =
                        die.has_attr(constants::DW_AT_external) || die.has_attr(constants::DW_AT_declaration);
                    if !is_static {
                        let name = self.text(die, constants::DW_AT_name).unwrap_or_default();
                        let bits = || Self::number(die, constants::DW_AT_data_bit_offset).map(|bits| bits / 8);
                        let offset =
                            Self::number(die, constants::DW_AT_data_member_location).or_else(bits).unwrap_or(0);
                        record.fields.push(Field { name, offset, of_type });
                    }
                }
                (constants::DW_TAG_template_type_parameter, Some(of_type)) => {
                    record.parameters.push((self.text(die, constants::DW_AT_name).unwrap_or_default(), of_type));
                }
                (constants::DW_TAG_member | constants::DW_TAG_inheritance, None) => {}
                // Which of these fields there are depends on the value.
                (constants::DW_TAG_variant_part, _) => self.variants(child, &mut record.variants),
                _ => self.entry(child, Some(entry), depth + 1),
            }
        }
        self.into.types.insert(entry, Type::Record(record));
    }

    fn variants(&mut self, node: Node<'_, '_>, into: &mut Vec<Entry>) {
        let mut variants = node.children();
        while let Ok(Some(variant)) = variants.next() {
            let mut members = variant.children();
            while let Ok(Some(member)) = members.next() {
                into.extend(self.reference(member.entry(), constants::DW_AT_type));
                self.entry(member, None, DEEPEST);
            }
        }
    }

    fn function(&mut self, node: Node<'_, '_>, class: Option<Entry>, depth: usize) -> Function {
        let die = node.entry();
        let origin = self.origin(die);
        let returns = self.reference(die, constants::DW_AT_type);
        let mut function = Function {
            declared: Declared {
                name: self.text(die, constants::DW_AT_name).unwrap_or_default(),
                class,
                parameters: Vec::new(),
                returns,
                is_of_library: self.library_namespaces > 0,
                origin,
            },
            ranges: self.ranges(die),
            frame_base: match die.attr_value(constants::DW_AT_frame_base) {
                Some(AttributeValue::Exprloc(expression)) => self.place(expression),
                _ => None,
            },
            ..Function::default()
        };
        self.body(node, &mut function, depth + 1);
        function
    }

    /// Reads what stands in a function or a block of it.
    fn body(&mut self, node: Node<'_, '_>, function: &mut Function, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let die = child.entry();
            match die.tag() {
                constants::DW_TAG_variable | constants::DW_TAG_formal_parameter => {
                    self.global(die);
                    if let Some(of_type) = self.reference(die, constants::DW_AT_type) {
                        let entry = self.entry_of(die);
                        self.into.types.insert(entry, Type::Alias(None, Some(of_type)));
                    }
                    if let Some(local) = self.local(die) {
                        function.variables.push(local);
                    }
                }
                constants::DW_TAG_lexical_block => self.body(child, function, depth + 1),
                constants::DW_TAG_inlined_subroutine => {
                    let inlined = self.function(child, None, depth + 1);
                    function.inlined.push(inlined);
                }
                constants::DW_TAG_template_type_parameter => {
                    if let Some(of_type) = self.reference(die, constants::DW_AT_type) {
                        let name = self.text(die, constants::DW_AT_name).unwrap_or_default();
                        function.declared.parameters.push((name, of_type));
                    }
                }
                _ => self.entry(child, None, depth + 1),
            }
        }
    }

    fn ranges(&self, die: &Die) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        if let Ok(mut ranges) = self.unit.die_ranges(die) {
            while let Ok(Some(range)) = ranges.next() {
                if range.begin < range.end {
                    found.push((range.begin, range.end));
                }
            }
        }
        found
    }

    fn origin(&mut self, die: &Die) -> Option<Entry> {
        let copied = self.reference(die, constants::DW_AT_abstract_origin);
        copied.or_else(|| self.reference(die, constants::DW_AT_specification))
    }

    /// The type of a variable, or of the one that it is a copy of: that variable itself, where another unit has it.
    fn type_of(&mut self, die: &Die) -> Option<Entry> {
        if let Some(own) = self.reference(die, constants::DW_AT_type) {
            return Some(own);
        }
        let origin = self.origin(die)?;
        if self.elsewhere.contains(&origin) {
            return Some(origin);
        }
        let origin = self.unit.entry(gimli::UnitOffset(origin.checked_sub(self.start())?)).ok()?;
        self.reference(&origin, constants::DW_AT_type)
    }

    /// The name of a variable, or of the declaration that it is the definition of.
    fn name_of(&mut self, die: &Die) -> Option<String> {
        self.text(die, constants::DW_AT_name).or_else(|| {
            let declared = self.reference(die, constants::DW_AT_specification)?;
            let declared = self.unit.entry(gimli::UnitOffset(declared.checked_sub(self.start())?)).ok()?;
            self.text(&declared, constants::DW_AT_name)
        })
    }

    fn local(&mut self, die: &Die) -> Option<Local> {
        let of_type = self.type_of(die)?;
        let mut places = Vec::new();
        match die.attr_value(constants::DW_AT_location)? {
            AttributeValue::Exprloc(expression) => places.extend(self.place(expression).map(|place| (None, place))),
            value => {
                let mut list = self.unit.attr_locations(value).ok()??;
                while let Ok(Some(item)) = list.next() {
                    if let Some(place) = self.place(item.data) {
                        places.push((Some((item.range.begin, item.range.end)), place));
                    }
                }
            }
        }
        (!places.is_empty()).then_some(Local { of_type, places })
    }

    fn place(&self, expression: Expression<Section>) -> Option<Place> {
        let mut operations = expression.operations(self.unit.encoding());
        let first = operations.next().ok()??;
        let place = match first {
            Operation::Register { register } => Place::Register(register.0),
            Operation::FrameOffset { offset } => Place::Frame(offset),
            Operation::RegisterOffset { register, offset, .. } => Place::Indirect(register.0, offset),
            Operation::CallFrameCFA => Place::FrameAddress,
            _ => return None,
        };
        operations.next().ok()?.is_none().then_some(place)
    }

    fn global(&mut self, die: &Die) {
        let Some(AttributeValue::Exprloc(expression)) = die.attr_value(constants::DW_AT_location) else { return };
        if self.name_of(die).is_some_and(|name| name.starts_with(ADAPTER)) {
            self.into.adapter = self.into.adapter.take().or_else(|| self.origin_of(die));
        }
        let mut operations = expression.operations(self.unit.encoding());
        let address = match operations.next() {
            Ok(Some(Operation::Address { address })) => Some(address),
            Ok(Some(Operation::AddressIndex { index })) => self.unit.address(index).ok(),
            _ => None,
        };
        if let (Some(address), Ok(None), Some(of_type)) = (address, operations.next(), self.type_of(die)) {
            self.into.globals.push(Global { address, of_type });
        }
    }
}
