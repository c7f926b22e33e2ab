//! The target: every window starts in a fresh, empty directory, which is the working directory of all its processes.
//!
//! The directory's name counts up, and the directory is removed afterwards, so no dentry or inode outlives its window by
//! name. Removal unlinks the names that the test could have created; only if something is left is the directory read.

use std::ffi::CString;

use commutant_wire::value::Value;

use super::calls::{After, CALLS, decode};
use super::operation::Operation;
use crate::arguments::Arguments;
use crate::crew::Crew;
use crate::place::Place;
use crate::target::{Agents, Marks, Signature, Target};

/// Linux, with directories under `root` on the file system under test.
pub struct Linux {
    signatures: Vec<Signature>,
    /// Absolute path of the directory that holds the windows' directories.
    root: String,
    /// Number of the window, for its directory's name.
    window: u64,
    path: CString,
    /// Names that calls of this window may have created.
    names: Vec<String>,
    /// Whether calls of this window may have left descriptors open.
    descriptors: bool,
}

impl Linux {
    /// Windows' directories will be made in `root`, an absolute path.
    #[must_use]
    pub fn new(root: &str) -> Self {
        Self {
            signatures: CALLS.iter().map(|call| call.signature).collect(),
            root: root.to_owned(),
            window: 0,
            path: CString::default(),
            names: Vec::new(),
            descriptors: false,
        }
    }

    /// Removes whatever is left in the window's directory: slow, and only for calls that create names of their own.
    fn sweep(&self) -> Result<(), String> {
        let path = self.path.to_string_lossy().into_owned();
        std::fs::remove_dir_all(&path).map_err(|error| format!("removing {path}: {error}"))
    }
}

/// The coordinator's own system calls are those of its process.
const COORDINATOR: Place = Place::Home { process: 0 };

/// A system call that belongs to no call of the test.
fn call<const N: usize>(crew: &mut Crew<Linux>, place: Place, number: i64, arguments: [u64; N]) -> i64 {
    crew.operation(place).set(number, arguments);
    crew.run(place, Marks::None)
}

fn check(what: &str, result: i64) -> Result<(), String> {
    match i32::try_from(-result) {
        Ok(number) if number > 0 => Err(format!("{what}: {}", std::io::Error::from_raw_os_error(number))),
        _ => Ok(()),
    }
}

impl Target for Linux {
    type Operation = Operation;

    fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    fn fresh(&mut self, crew: &mut Crew<Self>, agents: Agents) -> Result<(), String> {
        self.window += 1;
        self.names.clear();
        self.descriptors = false;
        self.path = CString::new(format!("{}/{}", self.root, self.window)).map_err(|error| error.to_string())?;
        let mode = 0o755;
        check("making a directory", call(crew, COORDINATOR, libc::SYS_mkdir, [self.path.as_ptr() as u64, mode]))?;
        for place in agents.iter() {
            // The path lies in the coordinator's memory, which other processes do not share: it goes by the slot.
            let operation = crew.operation(place);
            operation.names[0].set_path(&self.path);
            let address = operation.names[0].address();
            operation.set(libc::SYS_chdir, [address]);
            check("entering the directory", crew.run(place, Marks::None))?;
        }
        Ok(())
    }

    fn place(&self, _: usize, home: Place, _: Place) -> Place {
        home
    }

    fn prepare(&mut self, operation: &mut Operation, call: usize, arguments: &Arguments<'_>) -> Result<(), String> {
        let definition = &CALLS[call];
        (definition.prepare)(operation, arguments)?;
        for parameter in definition.created_names {
            let name = arguments.text(*parameter)?;
            if !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_owned());
            }
        }
        self.descriptors |= definition.leaves_descriptors;
        Ok(())
    }

    fn execute(operation: &mut Operation, marks: Marks) -> i64 {
        operation.execute(marks)
    }

    fn finish(&mut self, crew: &mut Crew<Self>, place: Place, number: usize, result: i64) -> Result<Value, String> {
        let definition = &CALLS[number];
        let value = decode(definition, crew.operation(place), result);
        if definition.after == After::Close && result >= 0 {
            let closed = call(crew, place, libc::SYS_close, [result.cast_unsigned()]);
            check("closing a descriptor", closed)?;
        }
        Ok(value)
    }

    fn clean(&mut self, crew: &mut Crew<Self>, agents: Agents) -> Result<(), String> {
        if self.descriptors {
            for place in agents.iter() {
                let everything = [0, u64::from(u32::MAX), 0];
                check("closing descriptors", call(crew, place, libc::SYS_close_range, everything))?;
            }
        }
        // The coordinator unlinks in its working directory, and need not be among the window's processes.
        let directory = self.path.as_ptr() as u64;
        if !agents.iter().any(|place| place == COORDINATOR) {
            check("entering the directory", call(crew, COORDINATOR, libc::SYS_chdir, [directory]))?;
        }
        for name in &self.names {
            let operation = crew.operation(COORDINATOR);
            operation.names[0].set(name)?;
            let address = operation.names[0].address();
            operation.set(libc::SYS_unlink, [address]);
            match crew.run(COORDINATOR, Marks::None) {
                result if result == -i64::from(libc::ENOENT) => {}
                result => check("removing a file", result)?,
            }
        }
        match call(crew, COORDINATOR, libc::SYS_rmdir, [directory]) {
            result if result == -i64::from(libc::ENOTEMPTY) => self.sweep(),
            result => check("removing the directory", result),
        }
    }
}
