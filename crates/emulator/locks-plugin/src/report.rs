//! The report: one JSON document per process or kernel, read by `commutant.lock_view.record`; replaced as a whole.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use lock_study::{CROWDS, FieldReport, FieldSet, KindReport, LockReport, Span, Spans, WINDOWS};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::program::Mapping;

/// How a lock was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Reported by annotations or the library in front of pthread's locks.
    Annotated,
    /// Found by its instructions.
    Inlined,
    /// Reported by a kernel's functions.
    Kernel,
}

/// What a lock is a part of, where the recorder itself could tell.
pub struct ClassRecord {
    /// A variable or a type's field.
    pub name: String,
    /// Whether that is a name of the lock, not only of the code that uses it.
    pub known: bool,
    /// `spinlock`, `mutex`, ...
    pub family: &'static str,
}

/// One side of a conflict: whether it wrote, and its call stack, innermost address first.
pub struct StackRecord {
    /// Whether it wrote.
    pub write: bool,
    /// Addresses.
    pub addresses: Vec<u64>,
}

/// A field on which a lock's sections conflict.
pub struct FieldRecord {
    /// `variable`, `beside_lock`, `code` or `named`.
    pub kind: &'static str,
    /// Its name, if the recorder itself could tell.
    pub name: Option<String>,
    /// Address of an example.
    pub address: u64,
    /// Bytes after the lock's start.
    pub offset: Option<u64>,
    /// How many pairs conflict on it.
    pub counted: FieldReport,
    /// An example.
    pub stacks: [StackRecord; 2],
}

/// One lock.
pub struct LockRecord {
    /// How it was found.
    pub source: Source,
    /// What it is a part of.
    pub class: Option<ClassRecord>,
    /// Locks at different addresses whose statistics were put together.
    pub instances: u64,
    /// The call stack that used it first.
    pub first_stack: Vec<u64>,
    /// Fields by rank.
    pub fields: Vec<FieldRecord>,
    /// The recorder's numbers of these fields, in the same order.
    pub field_numbers: Vec<u64>,
    /// Its statistics.
    pub report: LockReport,
}

/// What a program did before it had a second thread: no lock kept anyone out then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartUp {
    /// Instructions.
    pub instructions: u64,
    /// Time.
    pub nanoseconds: u64,
    /// Acquires of locks.
    pub acquires: u64,
    /// Locks that were acquired.
    pub locks: u64,
}

/// The memory of a thread's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackMemory {
    /// The recorder's number of the thread; the first has 0.
    pub thread: u32,
    /// Its addresses.
    pub addresses: Range<u64>,
}

/// All of it.
pub struct Record<'a> {
    /// The process.
    pub process_id: u32,
    /// Threads that there were.
    pub thread_count: u32,
    /// Instructions that they executed.
    pub instructions: u64,
    /// Time since the start.
    pub nanoseconds: u64,
    /// What is left out of these, and of all locks.
    pub start_up: Option<StartUp>,
    /// Where files are mapped.
    pub mappings: &'a [Mapping],
    /// Where stacks lie.
    pub stacks: Vec<StackMemory>,
    /// Locks with at least one section.
    pub locks: Vec<LockRecord>,
    /// What else was seen of a kernel; null for a program.
    pub kernel: Value,
}

/// Version of the document.
const SCHEMA_VERSION: u32 = 6;

impl Record<'_> {
    /// Writes the document next to its place and moves it there, so that a reader finds the old one or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".part");
        let mut writer = BufWriter::new(std::fs::File::create(&beside)?);
        serde_json::to_writer(&mut writer, self)?;
        writer.flush()?;
        drop(writer);
        std::fs::rename(beside, path)
    }
}

impl Serialize for Record<'_> {
    /// Lock by lock: a value of all of them would take 40 KB for each.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mappings = self.mappings.iter().filter(|mapping| !mapping.path.is_empty());
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema_version", &SCHEMA_VERSION)?;
        map.serialize_entry("kind", "lock-record")?;
        map.serialize_entry("process_id", &self.process_id)?;
        map.serialize_entry("threads", &self.thread_count)?;
        map.serialize_entry("instructions", &self.instructions)?;
        map.serialize_entry("nanoseconds", &self.nanoseconds)?;
        map.serialize_entry("start_up", &self.start_up.map(start_up))?;
        map.serialize_entry("crowds", &CROWDS)?;
        map.serialize_entry("mappings", &mappings.map(mapping).collect::<Vec<_>>())?;
        map.serialize_entry("stacks", &self.stacks.iter().map(stack).collect::<Vec<_>>())?;
        map.serialize_entry("locks", &Each(&self.locks))?;
        map.serialize_entry("kernel", &self.kernel)?;
        map.end()
    }
}

struct Each<'a>(&'a [LockRecord]);

impl Serialize for Each<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(lock))
    }
}

fn mapping(mapping: &Mapping) -> Value {
    json!({"start": mapping.start, "end": mapping.end, "offset": mapping.offset, "path": mapping.path})
}

fn start_up(seen: StartUp) -> Value {
    json!({
        "instructions": seen.instructions,
        "nanoseconds": seen.nanoseconds,
        "acquires": seen.acquires,
        "locks": seen.locks,
    })
}

fn stack(stack: &StackMemory) -> Value {
    json!({"thread": stack.thread, "start": stack.addresses.start, "end": stack.addresses.end})
}

fn lock(lock: &LockRecord) -> Value {
    let report = &lock.report;
    let pairs = &report.pairs;
    json!({
        "address": report.address,
        "source": match lock.source {
            Source::Annotated => "annotated",
            Source::Inlined => "inlined",
            Source::Kernel => "kernel",
        },
        "class": lock.class.as_ref().map(|class| json!({
            "name": class.name,
            "known": class.known,
            "family": class.family,
        })),
        "instances": lock.instances,
        "generations": report.generations,
        "first_stack": lock.first_stack,
        "acquires": report.acquires,
        "shared_acquires": report.shared_acquires,
        "contended": report.contended,
        "contended_compared": report.contended_compared,
        "contended_conflicts": report.contended_conflicts,
        "wait": spans(report.wait),
        "sections": report.sections,
        "hold": spans(report.hold),
        "set_bytes": report.set_bytes,
        "written_bytes": report.written_bytes,
        "device_sections": report.device_sections,
        "handed_over": report.handed_over,
        "releases_without_acquire": report.releases_without_acquire,
        "never_released": report.never_released,
        "compared_sections": report.compared_sections,
        "conflicting_sections": report.conflicting_sections,
        "pairs": {
            "compared": pairs.compared,
            "conflicting": pairs.conflicting,
            "conflicting_without_per_cpu": pairs.conflicting_without_per_cpu,
            "conflicting_bytes": pairs.conflicting_bytes,
            "set_bytes": pairs.set_bytes,
        },
        "windows": WINDOWS.iter().zip(&report.windows).map(|(size, tally)| json!({
            "window_sections": size,
            "pairs": tally.pairs,
            "conflicting_pairs": tally.conflicting_pairs,
            "sections": tally.sections,
            "conflicting_sections": tally.conflicting_sections,
        })).collect::<Vec<_>>(),
        "outside_reads": report.outside_reads,
        "outside_writes": report.outside_writes,
        "speed_ups": report.density.speed_ups(),
        "kinds": report.kinds.reports().iter().map(kind).collect::<Vec<_>>(),
        "threads": report.kinds.threads().iter().map(|known| json!({
            "thread": known.thread,
            "sections": known.sections,
        })).collect::<Vec<_>>(),
        "kind_pairs": report.kinds.pairs().iter().map(|pair| json!({
            "kinds": pair.kinds.map(|kind| kind.0),
            "compared": pair.compared,
            "conflicting": pair.conflicting,
        })).collect::<Vec<_>>(),
        "gaps": {
            "count": report.gaps.count,
            "instructions": report.gaps.instructions,
            "squares": report.gaps.squares,
        },
        "fields": lock.fields.iter().map(field).collect::<Vec<_>>(),
        "field_sets": report.fields.sets().iter().filter_map(|set| field_set(set, &lock.field_numbers)).collect::<Vec<_>>(),
        "field_pairs": report.fields.compared,
        "forgotten_field_pairs": report.fields.forgotten_pairs,
    })
}

fn kind(report: &KindReport) -> Value {
    json!({
        "caller": report.kind.caller,
        "shared": report.kind.shared,
        "writes": report.kind.writes,
        "sections": report.sections,
        "hold": spans(report.hold),
        "hold_squares": report.hold_squares,
        "compared": report.compared,
        "conflicting": report.conflicting,
    })
}

/// A set by the places of its fields; None if one of them was forgotten.
fn field_set(set: &FieldSet, numbers: &[u64]) -> Option<Value> {
    let place = |field: &u64| numbers.iter().position(|number| number == field);
    let places: Option<Vec<usize>> = set.fields.iter().map(place).collect();
    places.map(|places| json!({"fields": places, "pairs": set.pairs}))
}

fn field(field: &FieldRecord) -> Value {
    json!({
        "kind": field.kind,
        "name": field.name,
        "address": field.address,
        "offset": field.offset,
        "pairs": field.counted.pairs,
        "pairs_on_it_alone": field.counted.pairs_on_it_alone,
        "stacks": field.stacks.iter().map(|side| json!({
            "write": side.write,
            "addresses": side.addresses,
        })).collect::<Vec<_>>(),
    })
}

fn spans(spans: Spans) -> Value {
    let span = |span: Span| json!({"instructions": span.instructions, "nanoseconds": span.nanoseconds});
    json!({"total": span(spans.total), "longest": span(spans.longest)})
}
