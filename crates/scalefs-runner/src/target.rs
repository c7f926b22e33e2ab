//! ScaleFS as a target of the interpreter.
//!
//! All windows run on one instance. A window's files have its number behind their name, so no name is used twice, and its
//! names are removed afterwards: the directory is empty again. Hash collisions thus fall on other tests each time. Cores
//! maintain before each window, never within.

use commutant_runner::arguments::Arguments;
use commutant_runner::crew::Crew;
use commutant_runner::marker;
use commutant_runner::place::Place;
use commutant_runner::target::{Agents, Marks, Signature, Target};
use commutant_wire::value::Value;
use scalefs::OpenFlags;

use crate::calls::{self, Opened};
use crate::instance::{Actor, actor};

/// All calls. The last two are those of the self-test.
pub const SIGNATURES: &[Signature] = &[
    Signature { name: "open", parameters: &["name", "creat", "excl"] },
    Signature { name: "link", parameters: &["old", "new"] },
    Signature { name: "unlink", parameters: &["name"] },
    Signature { name: "rename", parameters: &["src", "dst"] },
    Signature { name: "stat", parameters: &["name"] },
    Signature { name: "access", parameters: &["name"] },
    Signature { name: "count_shared", parameters: &[] },
    Signature { name: "count_per_core", parameters: &[] },
];

const LONGEST_NAME_BYTES: usize = 255;
/// So often, in windows, the coordinator maintains cores that no thread has.
const IDLE_CORES_PERIOD: u64 = 64;
const COORDINATOR: Place = Place::Home { process: 0 };

/// A file name in an operation: no pointer leads to the heap.
pub struct Name {
    bytes: [u8; LONGEST_NAME_BYTES],
    length: u8,
}

impl Default for Name {
    fn default() -> Self {
        Self { bytes: [0; LONGEST_NAME_BYTES], length: 0 }
    }
}

impl Name {
    fn set(&mut self, text: &str) -> Result<(), String> {
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.contains(&b'/') || bytes.contains(&0) {
            return Err(format!("{text:?} is not a name of a file in one directory"));
        }
        self.length = u8::try_from(bytes.len())
            .map_err(|_| format!("a file name of {} bytes: expected at most {LONGEST_NAME_BYTES}", bytes.len()))?;
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What an actor is to do.
#[derive(Debug, Clone, Copy, Default)]
enum Work {
    #[default]
    Nothing,
    Open(OpenFlags),
    Close(Opened),
    Link,
    Unlink,
    Rename,
    Stat,
    Access,
    CountShared,
    CountPerCore,
    Maintain {
        idle_cores_too: bool,
    },
}

/// What came back.
#[derive(Debug, Clone, Copy, Default)]
enum Outcome {
    #[default]
    Success,
    Opened(Opened),
    Status {
        number: u64,
        link_count: u32,
    },
}

/// One operation with all that it needs.
#[derive(Default)]
#[repr(align(128))]
pub struct Operation {
    work: Work,
    names: [Name; 2],
    outcome: Outcome,
}

// SAFETY: what is opened is an inode in the arena, kept by a reference; any core may close it.
unsafe impl Send for Operation {}

impl Operation {
    /// Returns 0 or a negative error number.
    fn perform(&mut self, actor: &Actor) -> i64 {
        let [first, second] = [self.names[0].bytes(), self.names[1].bytes()];
        let done = |()| Outcome::Success;
        let outcome = match self.work {
            Work::Open(flags) => calls::open(actor, first, flags).map(Outcome::Opened),
            Work::Link => calls::link(actor, first, second).map(done),
            Work::Unlink => calls::unlink(actor, first).map(done),
            Work::Rename => calls::rename(actor, first, second).map(done),
            Work::Access => calls::access(actor, first).map(done),
            Work::Stat => calls::stat(actor, first).map(|attributes| Outcome::Status {
                number: attributes.number.0,
                link_count: attributes.link_count,
            }),
            Work::Nothing => Ok(Outcome::Success),
            Work::Close(opened) => {
                calls::close(actor, opened);
                Ok(Outcome::Success)
            }
            Work::CountShared => {
                calls::count_shared();
                Ok(Outcome::Success)
            }
            Work::CountPerCore => {
                calls::count_per_core(actor);
                Ok(Outcome::Success)
            }
            Work::Maintain { idle_cores_too } => {
                calls::maintain(actor, idle_cores_too);
                Ok(Outcome::Success)
            }
        };
        match outcome {
            Ok(outcome) => {
                self.outcome = outcome;
                0
            }
            Err(errno) => -i64::from(errno.number()),
        }
    }
}

/// ScaleFS as a target.
pub struct ScaleFsTarget {
    workers: usize,
    /// Number of the window, for its names.
    window: u64,
    /// Names that this window may have created.
    names: Vec<String>,
}

impl ScaleFsTarget {
    /// Over the instance that the threads have entered, with `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { workers, window: 0, names: Vec::new() }
    }

    /// A window's own name.
    fn name(&self, text: &str) -> String {
        format!("{text}-{}", self.window)
    }

    fn remember(&mut self, name: String) {
        if !self.names.contains(&name) {
            self.names.push(name);
        }
    }
}

fn run(crew: &mut Crew<ScaleFsTarget>, place: Place, work: Work) -> i64 {
    crew.operation(place).work = work;
    crew.run(place, Marks::None)
}

impl Target for ScaleFsTarget {
    type Operation = Operation;

    fn signatures(&self) -> &[Signature] {
        SIGNATURES
    }

    fn fresh(&mut self, crew: &mut Crew<Self>, _: Agents) -> Result<(), String> {
        self.window += 1;
        self.names.clear();
        let idle_cores_too = self.window % IDLE_CORES_PERIOD == 1;
        run(crew, COORDINATOR, Work::Maintain { idle_cores_too });
        for core in 0..self.workers {
            run(crew, Place::Worker { process: 0, core }, Work::Maintain { idle_cores_too: false });
        }
        Ok(())
    }

    fn place(&self, _: usize, home: Place, _: Place) -> Place {
        home
    }

    fn prepare(
        &mut self,
        operation: &mut Operation,
        _: Place,
        call: usize,
        arguments: &Arguments<'_>,
    ) -> Result<(), String> {
        let texts = match SIGNATURES[call].name {
            "link" | "rename" => vec![arguments.text(0)?, arguments.text(1)?],
            "count_shared" | "count_per_core" => vec![],
            _ => vec![arguments.text(0)?],
        };
        for (place, text) in operation.names.iter_mut().zip(&texts) {
            let name = self.name(text);
            place.set(&name)?;
            self.remember(name);
        }
        operation.work = match SIGNATURES[call].name {
            "open" => Work::Open(match (arguments.flag(1)?, arguments.flag(2)?) {
                (true, true) => OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
                (true, false) => OpenFlags::CREATE,
                (false, _) => OpenFlags::NONE,
            }),
            "link" => Work::Link,
            "unlink" => Work::Unlink,
            "rename" => Work::Rename,
            "stat" => Work::Stat,
            "access" => Work::Access,
            "count_shared" => Work::CountShared,
            "count_per_core" => Work::CountPerCore,
            other => return Err(format!("{other} is listed but not made")),
        };
        Ok(())
    }

    fn execute(operation: &mut Operation, marks: Marks) -> i64 {
        let actor = actor();
        if marks == Marks::None {
            return operation.perform(actor);
        }
        marker::call_begin();
        let result = operation.perform(actor);
        marker::call_end();
        result
    }

    fn finish(&mut self, crew: &mut Crew<Self>, place: Place, _: usize, result: i64) -> Result<Value, String> {
        if result < 0 {
            return u16::try_from(-result).map(Value::Errno).map_err(|_| format!("error number {result}"));
        }
        match crew.operation(place).outcome {
            Outcome::Success => Ok(Value::Int(0)),
            Outcome::Opened(opened) => {
                run(crew, place, Work::Close(opened));
                Ok(Value::Int(0))
            }
            Outcome::Status { number, link_count } => Ok(Value::Struct(vec![
                ("ino".into(), Value::Opaque { sort: "Inum".into(), id: number }),
                ("nlink".into(), Value::Int(i64::from(link_count))),
            ])),
        }
    }

    fn clean(&mut self, crew: &mut Crew<Self>, _: Agents) -> Result<(), String> {
        for name in std::mem::take(&mut self.names) {
            crew.operation(COORDINATOR).names[0].set(&name)?;
            match run(crew, COORDINATOR, Work::Unlink) {
                0 => {}
                result if result == -i64::from(libc::ENOENT) => {}
                result => return Err(format!("removing {name}: error number {}", -result)),
            }
        }
        Ok(())
    }
}
