//! Types as debug information tells them: sizes, names, and the field at an offset.

use std::sync::Arc;

use super::{Entry, SourceFiles, Unit};

/// Deepest nesting that is followed: what refers to itself comes from a damaged file.
const DEEPEST: usize = 24;
/// Deepest nesting of fields in which pointers are looked for.
const MOST_NESTED: usize = 8;
/// Types of locks: whatever is in one is the lock.
const LOCKS: [&str; 3] = ["pthread_mutex_t", "pthread_rwlock_t", "pthread_spinlock_t"];
/// Longest name of a type with its arguments that is shown.
const LONGEST_NAME: usize = 48;

/// A type.
#[derive(Debug)]
pub(crate) enum Type {
    /// A number, a truth value, an enumeration.
    Base { name: String, size_bytes: u64 },
    /// To what, if that has a type.
    Pointer(Option<Entry>),
    /// A structure, class, union, tuple, or enumeration with contents.
    Record(Record),
    /// Of what, and how many; `None`: as many as there is room for.
    Array(Entry, Option<u64>),
    /// Another name, or a qualified form.
    Alias(Option<String>, Option<Entry>),
}

/// A type with fields.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub name: String,
    /// `struct`, `union` or `class`.
    pub keyword: &'static str,
    pub size_bytes: u64,
    pub is_declaration: bool,
    pub fields: Vec<Field>,
    /// Types of what else it may hold, depending on its value (enumerations with contents).
    pub variants: Vec<Entry>,
    /// Type parameters by name.
    pub parameters: Vec<(String, Entry)>,
    /// Whether it comes with a compiler or its library, as far as its namespace tells.
    pub is_of_library: bool,
    /// The source file that declares it; of Rust's types the crate.
    pub origin: Option<Arc<str>>,
}

/// A field of one type that is itself of another library's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrapped {
    /// The path to it, such as `queue.ring`.
    pub path: String,
    /// Its type.
    pub of_type: Entry,
    /// How far from its start what is looked for lies.
    pub offset: u64,
}

/// A field, or a base class (without a name).
#[derive(Debug)]
pub(crate) struct Field {
    pub name: String,
    pub offset: u64,
    pub of_type: Entry,
}

impl Field {
    /// Fields of tuples are numbers to those who write Rust, `__0` to debuggers.
    fn written_name(&self) -> &str {
        let number = self.name.strip_prefix("__");
        number.filter(|rest| rest.bytes().all(|letter| letter.is_ascii_digit())).unwrap_or(&self.name)
    }
}

impl Unit {
    /// The type behind other names.
    pub fn plain(&self, entry: Entry) -> Option<&Type> {
        self.plain_entry(entry).and_then(|entry| self.types.get(&entry))
    }

    fn plain_entry(&self, mut entry: Entry) -> Option<Entry> {
        for _ in 0..DEEPEST {
            match self.types.get(&entry)? {
                Type::Alias(_, target) => entry = (*target)?,
                _ => return Some(entry),
            }
        }
        None
    }

    /// What a pointer or reference points to. A record that is nothing but a pointer counts as one.
    pub fn pointee(&self, entry: Entry) -> Option<Entry> {
        let mut entry = entry;
        for _ in 0..DEEPEST {
            match self.plain(entry)? {
                Type::Pointer(target) => return *target,
                Type::Record(record) if record.size_bytes == 8 => {
                    // Next to the pointer there may be what takes no room, such as what deletes.
                    entry = record.fields.iter().find(|field| self.size(field.of_type) == Some(8))?.of_type;
                }
                _ => return None,
            }
        }
        None
    }

    /// Bytes of a type.
    pub fn size(&self, entry: Entry) -> Option<u64> {
        self.size_within(entry, 0)
    }

    fn size_within(&self, entry: Entry, depth: usize) -> Option<u64> {
        if depth > DEEPEST {
            return None;
        }
        match self.plain(entry)? {
            Type::Base { size_bytes, .. } => Some(*size_bytes),
            Type::Pointer(_) => Some(8),
            Type::Record(record) => (!record.is_declaration).then_some(record.size_bytes),
            Type::Array(of, count) => self.size_within(*of, depth + 1)?.checked_mul(count.unwrap_or(0)),
            Type::Alias(..) => None,
        }
    }

    /// A type's name as it is written.
    pub fn name(&self, entry: Entry) -> Option<String> {
        self.name_within(entry, 0)
    }

    fn name_within(&self, entry: Entry, depth: usize) -> Option<String> {
        if depth > DEEPEST {
            return None;
        }
        match self.types.get(&entry)? {
            Type::Base { name, .. } => Some(name.clone()),
            Type::Record(record) if record.name.is_empty() => None,
            Type::Record(record) if self.is_c => Some(format!("{} {}", record.keyword, record.name)),
            Type::Record(record) => Some(shortened(&record.name)),
            Type::Pointer(Some(target)) => Some(format!("{}*", self.name_within(*target, depth + 1)?)),
            Type::Pointer(None) => Some("void*".to_owned()),
            Type::Array(of, count) => {
                let count = count.map_or_else(String::new, |count| count.to_string());
                Some(format!("{}[{count}]", self.name_within(*of, depth + 1)?))
            }
            Type::Alias(name, target) => {
                // A typedef names what has no name of its own; else what it stands for is the better name.
                let own = target.and_then(|target| self.name_within(target, depth + 1));
                own.or_else(|| name.clone())
            }
        }
    }

    /// What a type that is only room for another is room for (Rust's `MaybeUninit<T>`); others are themselves.
    pub fn content(&self, entry: Entry) -> Entry {
        match self.plain(entry) {
            Some(Type::Record(record)) if record.is_of_library && record.name.starts_with("MaybeUninit<") => {
                record.parameters.first().map_or(entry, |(_, parameter)| *parameter)
            }
            _ => entry,
        }
    }

    /// The path of the innermost field at an offset, such as `head.lock`; empty where there is none. Elements of an array
    /// are `[]`, whichever it is.
    pub fn field_at(&self, entry: Entry, offset: u64) -> String {
        let mut path = String::new();
        self.add_field(entry, offset, &mut path, 0);
        path
    }

    fn add_field(&self, entry: Entry, offset: u64, path: &mut String, depth: usize) {
        if depth > DEEPEST || self.is_lock(entry) {
            return;
        }
        match self.plain(entry) {
            Some(Type::Array(of, _)) => {
                if let Some(size) = self.size(*of).filter(|size| *size > 0) {
                    *path += "[]";
                    self.add_field(*of, offset % size, path, depth + 1);
                }
            }
            Some(Type::Record(record)) => {
                // A wrapper of a single field says nothing by that field's name, if it is a library's or the field has none.
                if let Some(field) = self.field_holding(record, offset) {
                    let says_little = record.is_of_library || field.name.starts_with("__");
                    let is_wrapper = !self.is_c && says_little && self.size(field.of_type) == Some(record.size_bytes);
                    if !field.name.is_empty() && !is_wrapper {
                        if !path.is_empty() {
                            path.push('.');
                        }
                        *path += field.written_name();
                    }
                    self.add_field(field.of_type, offset - field.offset, path, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn field_holding<'a>(&self, record: &'a Record, offset: u64) -> Option<&'a Field> {
        let holds = |field: &&Field| {
            let size = match self.size(field.of_type).unwrap_or(0) {
                0 if self.is_flexible(field.of_type) => u64::MAX - field.offset,
                size => size,
            };
            (field.offset..field.offset.saturating_add(size)).contains(&offset)
        };
        record.fields.iter().find(holds)
    }

    /// What types of one origin wrap at an offset: a record of a library's. Locks and containers that come with a compiler
    /// are a part of what wraps them, and so is how the elements of an array lie.
    pub fn wrapped_at(&self, entry: Entry, offset: u64, wrapping: &str) -> Option<Wrapped> {
        let mut found = Wrapped { path: String::new(), of_type: entry, offset };
        for _ in 0..DEEPEST {
            if self.is_lock(found.of_type) {
                return None;
            }
            let Some(Type::Record(record)) = self.plain(found.of_type) else { return None };
            let origin = record.origin.as_deref()?;
            if origin != wrapping {
                let is_library = !found.path.is_empty() && !SourceFiles::come_with_compiler(origin);
                return (is_library && self.name(found.of_type).is_some()).then_some(found);
            }
            let field = self.field_holding(record, found.offset)?;
            if !field.name.is_empty() {
                let dot = if found.path.is_empty() { "" } else { "." };
                found.path = format!("{}{dot}{}", found.path, field.written_name());
            }
            (found.of_type, found.offset) = (field.of_type, found.offset - field.offset);
        }
        None
    }

    /// Whether a type is one of pthread's locks, by any of its names.
    fn is_lock(&self, mut entry: Entry) -> bool {
        for _ in 0..DEEPEST {
            let Some(Type::Alias(name, target)) = self.types.get(&entry) else { return false };
            if name.as_deref().is_some_and(|name| LOCKS.contains(&name)) {
                return true;
            }
            let Some(target) = target else { return false };
            entry = *target;
        }
        false
    }

    /// The type that begins at an offset: of the innermost field, but no further into what is a pointer.
    pub fn type_at(&self, entry: Entry, offset: u64) -> Option<Entry> {
        let (mut entry, mut offset) = (entry, offset);
        for _ in 0..DEEPEST {
            match self.plain(entry)? {
                Type::Record(record) => {
                    let holds = |field: &&Field| {
                        let size = self.size(field.of_type).unwrap_or(0);
                        (field.offset..field.offset.saturating_add(size)).contains(&offset)
                    };
                    // What takes no room of its own, such as an empty base, lies where another field does.
                    let size = |field: &&Field| self.size(field.of_type);
                    let field = record.fields.iter().filter(holds).max_by_key(size)?;
                    (entry, offset) = (field.of_type, offset - field.offset);
                }
                Type::Array(of, _) => {
                    let size = self.size(*of).filter(|size| *size > 0)?;
                    (entry, offset) = (*of, offset % size);
                }
                _ => return (offset == 0).then_some(entry),
            }
        }
        None
    }

    /// How a block of this many bytes consists of this type: its name, `[]` after it if there are several; `None` if it
    /// does not.
    pub fn label(&self, entry: Entry, block_bytes: u64) -> Option<String> {
        let size = self.size(entry).filter(|size| *size > 0)?;
        let name = self.name(entry)?;
        if block_bytes == size || (block_bytes > size && self.is_flexible(entry)) {
            return Some(name);
        }
        (block_bytes > size && block_bytes.is_multiple_of(size)).then(|| format!("{name}[]"))
    }

    /// Whether a type is, or ends in, an array of as many elements as there is room for.
    fn is_flexible(&self, entry: Entry) -> bool {
        self.is_flexible_within(entry, 0)
    }

    fn is_flexible_within(&self, entry: Entry, depth: usize) -> bool {
        match self.plain(entry) {
            Some(Type::Array(_, None | Some(0))) => true,
            Some(Type::Record(record)) if depth <= DEEPEST => {
                let last = record.fields.iter().max_by_key(|field| field.offset);
                last.is_some_and(|field| self.is_flexible_within(field.of_type, depth + 1))
            }
            _ => false,
        }
    }

    /// What the pointers within a type point to, those within what it is itself a pointer to as well.
    pub fn pointees(&self, entry: Entry) -> Vec<Entry> {
        let (mut found, mut asked) = (Vec::new(), vec![(entry, 0)]);
        asked.extend(self.pointee(entry).map(|target| (target, 0)));
        while let Some((entry, depth)) = asked.pop() {
            match self.plain(entry) {
                Some(Type::Pointer(target)) => found.extend(target),
                Some(Type::Record(record)) if depth < MOST_NESTED => {
                    let parts = record.fields.iter().map(|field| field.of_type).chain(record.variants.iter().copied());
                    asked.extend(parts.map(|part| (part, depth + 1)));
                }
                _ => {}
            }
        }
        found
    }

    /// The only record of that size that the unit's own sources define.
    pub fn only_record_of(&self, size_bytes: u64) -> Option<Entry> {
        let mut fitting: Vec<(String, Entry)> = self
            .types
            .iter()
            .filter(|(_, known)| {
                matches!(known, Type::Record(record) if record.size_bytes == size_bytes
                    && !record.is_declaration && !record.is_of_library && !record.name.is_empty())
            })
            .filter_map(|(entry, _)| Some((self.name(*entry)?, *entry)))
            .collect();
        fitting.sort();
        fitting.dedup_by(|one, other| one.0 == other.0);
        match fitting.as_slice() {
            [(_, entry)] => Some(*entry),
            _ => None,
        }
    }
}

/// A name without the arguments of its type, where they are long. Rust's constants are left out in any case: all that a
/// compiler tells of one is a number of its own.
fn shortened(name: &str) -> String {
    let mut readable = name.to_owned();
    while let Some(start) = readable.find("{CONST#")
        && let Some(length) = readable[start..].find('}')
    {
        let before = readable[..start].trim_end_matches(' ').trim_end_matches(',').len();
        readable.replace_range(before..start + length + 1, "");
    }
    let readable = readable.replace("<>", "");
    match readable.find('<') {
        Some(start) if readable.len() > LONGEST_NAME => format!("{}<..>", &readable[..start]),
        _ => readable,
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn names_have_no_numbers_of_a_compilers_own() {
        for (name, expected) in [
            ("Bucket<i64, i64, (), {CONST#7035eb7e01971375}>", "Bucket<i64, i64, ()>"),
            ("Ring<{CONST#7035eb7e01971375}>", "Ring"),
            ("Pair<A<u8, {CONST#1}>, {CONST#2}>", "Pair<A<u8>>"),
            ("Cut<{CONST#7035", "Cut<{CONST#7035"),
            ("Map<std::string, std::vector<std::pair<int, long>>>", "Map<..>"),
        ] {
            assert_eq!(shortened(name), expected);
        }
    }
}
