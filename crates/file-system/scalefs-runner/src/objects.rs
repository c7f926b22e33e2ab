//! A list of what lies where in the arena, for whoever names shared lines: a file that grows.
//! Its form is that of [`parts::listing`]. A kind is told again whenever memory of it is. What was told stays true: chunks
//! keep their kind.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use scalefs::parts::{self, Part};

use crate::instance::Instance;

/// The list, and how far it has come.
pub struct ObjectList {
    file: File,
    /// Memory up to here has been told of.
    told: usize,
}

impl ObjectList {
    /// Begins a list with the tables of an instance, in a file that exists.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(path: &str, instance: &Instance) -> io::Result<Self> {
        let mut list = Self { file: OpenOptions::new().append(true).open(path)?, told: 0 };
        let tables = instance.arena().tables().into_iter().chain(instance.file_system().tables());
        list.write(tables)?;
        list.update(instance)?;
        Ok(list)
    }

    /// Adds the chunks that were taken since. No core works meanwhile.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update(&mut self, instance: &Instance) -> io::Result<()> {
        let told = self.told;
        let new = parts::chunks(instance.arena()).filter(|part| part.memory.end > told);
        let new: Vec<_> =
            new.map(|Part { memory, kind }| Part { memory: memory.start.max(told)..memory.end, kind }).collect();
        self.told = new.last().map_or(told, |part| part.memory.end);
        let root = instance.file_system().root_directory();
        self.write(new.into_iter().flat_map(|part| with_root(part, &root)))
    }

    fn write(&mut self, parts: impl Iterator<Item = Part>) -> io::Result<()> {
        self.file.write_all(parts::listing(parts).as_bytes())
    }
}

/// The part, of which that of the root directory is told apart if it lies there.
fn with_root(part: Part, root: &Part) -> Vec<Part> {
    if !part.memory.contains(&root.memory.start) {
        return vec![part];
    }
    let Part { memory, kind } = part;
    let before = Part { memory: memory.start..root.memory.start, kind };
    let behind = Part { memory: root.memory.start + kind.stride_bytes..memory.end, kind };
    [before, root.clone(), behind].into_iter().filter(|part| !part.memory.is_empty()).collect()
}
