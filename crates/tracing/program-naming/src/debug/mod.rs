//! What debug information (DWARF) tells of a program's types, functions and variables, as plain data.
//!
//! A compilation unit is read as a whole when something in it is first asked for, together with those that it refers to, as
//! it does where code was optimised across units.

mod read;
mod source_files;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use read::read_unit;
pub(crate) use source_files::SourceFiles;
pub(crate) use types::{Field, Type};

/// Where an entry stands in the file: what entries refer to each other by.
pub(crate) type Entry = usize;

/// A compilation unit, with those that it refers to.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// Whether its language writes `struct` in front of a type's name.
    pub is_c: bool,
    pub types: HashMap<Entry, Type>,
    /// What is known of functions apart from their code: declarations, and originals of inlined copies.
    pub declared: HashMap<Entry, Declared>,
    /// Functions with code.
    pub functions: Vec<Function>,
    pub globals: Vec<Global>,
    /// Where the constant of an adapter for a library is from, if one is here: see [`Record::origin`](types::Record).
    pub adapter: Option<Arc<str>>,
}

/// A function apart from its code.
#[derive(Debug, Default, Clone)]
pub(crate) struct Declared {
    pub name: String,
    /// The type whose method it is.
    pub class: Option<Entry>,
    /// Type parameters by name.
    pub parameters: Vec<(String, Entry)>,
    /// What it returns.
    pub returns: Option<Entry>,
    /// Whether it is in a namespace of a language's library.
    pub is_of_library: bool,
    /// The declaration that tells the rest.
    pub origin: Option<Entry>,
}

/// A function's code, or a copy of it in another.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub declared: Declared,
    /// First address and first address after of each piece.
    pub ranges: Vec<(u64, u64)>,
    pub variables: Vec<Local>,
    pub frame_base: Option<Place>,
    pub inlined: Vec<Function>,
}

/// A variable or parameter of a function.
#[derive(Debug)]
pub(crate) struct Local {
    pub of_type: Entry,
    /// Where it is, from an address up to another; `None`: always.
    pub places: Vec<(Option<(u64, u64)>, Place)>,
}

/// Where a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a register, by DWARF's number.
    Register(u16),
    /// This many bytes from the function's frame base.
    Frame(i64),
    /// This many bytes from where a register points.
    Indirect(u16, i64),
    /// The frame base is the canonical frame address.
    FrameAddress,
}

/// A variable with an address of its own.
#[derive(Debug)]
pub(crate) struct Global {
    pub address: u64,
    pub of_type: Entry,
}

impl Function {
    pub fn holds(&self, address: u64) -> bool {
        self.ranges.iter().any(|&(start, end)| (start..end).contains(&address))
    }
}

impl Unit {
    /// The function whose code holds an address and the copies in it that do, the innermost first.
    pub fn functions_at(&self, address: u64) -> Vec<&Function> {
        let mut chain = Vec::new();
        let mut candidates = &self.functions;
        while let Some(function) = candidates.iter().find(|function| function.holds(address)) {
            chain.insert(0, function);
            candidates = &function.inlined;
        }
        chain
    }

    /// All that is known of a function's declaration, the nearer ones first.
    pub fn declarations<'a>(&'a self, declared: &'a Declared) -> impl Iterator<Item = &'a Declared> {
        let next = move |known: &&'a Declared| known.origin.and_then(|origin| self.declared.get(&origin));
        std::iter::successors(Some(declared), next).take(4)
    }
}
