//! A plain reference of the calls on names: maps, one call at a time. And the calls as values, to be drawn and compared.

use std::collections::BTreeMap;

use percpu::Core;
use proptest::prelude::*;
use scalefs::{Errno, FieldChoice, OpenFlags, ScaleFs, names};
use sync::Spin;

/// One call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Open(String, OpenFlags),
    Link(String, String),
    Unlink(String),
    Rename(String, String),
    Stat(String),
    Access(String),
}

/// What a call returns: for `stat` a file's number and link count, else zeros.
pub type Outcome = Result<(u64, u32), Errno>;

/// Names and the files they lead to, by numbers from 1 (other calls than `stat` return 0).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reference {
    pub names: BTreeMap<String, u64>,
    pub made: u64,
}

impl Reference {
    fn file(&self, name: &str) -> Result<u64, Errno> {
        match name.len() {
            0 => Err(Errno::ENOENT),
            256.. => Err(Errno::ENAMETOOLONG),
            _ => self.names.get(name).copied().ok_or(Errno::ENOENT),
        }
    }

    pub fn link_count(&self, file: u64) -> u32 {
        self.names.values().filter(|other| **other == file).count() as u32
    }

    pub fn call(&mut self, call: &Call) -> Outcome {
        match call {
            Call::Open(name, flags) => match (self.file(name), flags) {
                (Ok(_), OpenFlags::CreateNew) => Err(Errno::EEXIST),
                (Ok(_), _) => Ok((0, 0)),
                (Err(Errno::ENOENT), OpenFlags::Create | OpenFlags::CreateNew) if !name.is_empty() => {
                    self.made += 1;
                    self.names.insert(name.clone(), self.made);
                    Ok((0, 0))
                }
                (Err(errno), _) => Err(errno),
            },
            Call::Link(old, new) => {
                let file = self.file(old)?;
                match self.file(new) {
                    Ok(_) => Err(Errno::EEXIST),
                    Err(Errno::ENOENT) if !new.is_empty() => {
                        self.names.insert(new.clone(), file);
                        Ok((0, 0))
                    }
                    Err(errno) => Err(errno),
                }
            }
            Call::Unlink(name) => {
                self.file(name)?;
                self.names.remove(name);
                Ok((0, 0))
            }
            Call::Rename(old, new) => {
                if new.is_empty() {
                    return Err(Errno::ENOENT);
                }
                let file = self.file(old)?;
                if new.len() > 255 {
                    return Err(Errno::ENAMETOOLONG);
                }
                if self.names.get(new) != Some(&file) {
                    self.names.remove(old);
                    self.names.insert(new.clone(), file);
                }
                Ok((0, 0))
            }
            Call::Stat(name) => self.file(name).map(|file| (file, self.link_count(file))),
            Call::Access(name) => self.file(name).map(|_| (0, 0)),
        }
    }
}

/// The same call on ScaleFS; `stat` returns the inode's number.
pub fn call(fs: &ScaleFs, core: &Core, call: &Call) -> Outcome {
    let verbs = fs.begin(core, &Spin);
    match call {
        Call::Open(name, flags) => {
            names::open(&verbs, name.as_bytes(), *flags, 0o644).map(|node| names::close(&verbs, node)).map(|()| (0, 0))
        }
        Call::Link(old, new) => names::link(&verbs, old.as_bytes(), new.as_bytes()).map(|()| (0, 0)),
        Call::Unlink(name) => names::unlink(&verbs, name.as_bytes()).map(|()| (0, 0)),
        Call::Rename(old, new) => names::rename(&verbs, old.as_bytes(), new.as_bytes()).map(|()| (0, 0)),
        Call::Stat(name) => names::stat(&verbs, name.as_bytes(), FieldChoice::All)
            .map(|attributes| (attributes.number.0, attributes.link_count.unwrap())),
        Call::Access(name) => names::access(&verbs, name.as_bytes()).map(|()| (0, 0)),
    }
}

/// Numbers of two systems, which must correspond one to one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bijection {
    there: BTreeMap<u64, u64>,
    back: BTreeMap<u64, u64>,
}

impl Bijection {
    /// Whether both outcomes are the same up to the numbers of files.
    pub fn same(&mut self, ours: &Outcome, theirs: &Outcome) -> bool {
        match (ours, theirs) {
            (Ok((our_file, our_count)), Ok((their_file, their_count))) => {
                *self.there.entry(*our_file).or_insert(*their_file) == *their_file
                    && *self.back.entry(*their_file).or_insert(*our_file) == *our_file
                    && our_count == their_count
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

/// A call on few names, some of them bad.
pub fn any_call() -> impl Strategy<Value = Call> {
    let name = || {
        prop_oneof![
            20 => (0..5_u8).prop_map(|number| format!("n{number}")),
            1 => Just(String::new()),
            1 => Just("x".repeat(255)),
            1 => Just("x".repeat(256)),
        ]
    };
    let flags = prop_oneof![Just(OpenFlags::Existing), Just(OpenFlags::Create), Just(OpenFlags::CreateNew)];
    prop_oneof![
        3 => (name(), flags).prop_map(|(name, flags)| Call::Open(name, flags)),
        2 => (name(), name()).prop_map(|(old, new)| Call::Link(old, new)),
        2 => name().prop_map(Call::Unlink),
        3 => (name(), name()).prop_map(|(old, new)| Call::Rename(old, new)),
        2 => name().prop_map(Call::Stat),
        1 => name().prop_map(Call::Access),
    ]
}
