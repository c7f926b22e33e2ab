//! The record of a kernel: every lock of which sections were compared or awaited, and the rest of each class as one.

use std::collections::HashMap;
use std::path::Path;

use lock_study::{FieldReport, LockId, LockReport};
use serde_json::json;

use super::functions::{Family, Functions};
use super::names::KernelNames;
use super::recorder::Recorder;
use crate::report::{ClassRecord, FieldRecord, LockRecord, Record, Source, StackRecord};

/// Locks of a class that are reported one by one: those that were held longest.
const INSTANCE_LIMIT: usize = 32;

impl Recorder<KernelNames> {
    /// Writes the record to a file; a failure is one line on standard error.
    pub fn write_report(&mut self, functions: &Functions, out: &Path) {
        if let Err(error) = self.record(functions).write(out) {
            eprintln!("commutant lock recorder: cannot write '{}': {error}", out.display());
        }
    }

    fn record(&self, functions: &Functions) -> Record<'static> {
        let counts = self.counts();
        let mut by_class: HashMap<(u64, Family), Vec<LockReport>> = HashMap::new();
        for (index, &family) in self.families().iter().enumerate() {
            let report = self.study().report(LockId(index as u32));
            by_class.entry((report.class, family)).or_default().push(report);
        }
        let mut classes: Vec<_> = by_class.into_iter().collect();
        classes.sort_by_key(|&((class, family), _)| (class, family.name()));
        let locks =
            classes.into_iter().flat_map(|((_, family), reports)| self.class_records(family, reports)).collect();
        Record {
            process_id: 0,
            thread_count: self.thread_count(),
            instructions: self.instructions(),
            nanoseconds: self.elapsed_nanoseconds(),
            start_up: None,
            mappings: &[],
            stacks: Vec::new(),
            locks,
            kernel: json!({
                "calls": counts.calls,
                "failed": counts.failed,
                "handed_over": counts.handed_over,
                "read_copy_update_sections": counts.read_copy_update,
                "missing_functions": functions.missing,
            }),
        }
    }

    /// The instances of a class that are worth telling apart, and all others as one.
    fn class_records(&self, family: Family, mut reports: Vec<LockReport>) -> Vec<LockRecord> {
        reports.sort_by_key(|report| {
            let telling = report.pairs.compared > 0 || report.contended > 0;
            (std::cmp::Reverse((telling, report.hold.total.instructions)), report.address)
        });
        let own = reports.iter().take(INSTANCE_LIMIT).take_while(|report| report.pairs.compared > 0).count();
        let rest = reports.split_off(own.max(1));
        let mut records: Vec<_> = reports.into_iter().map(|report| self.lock_record(family, report, 1)).collect();
        if let [first, others @ ..] = rest.as_slice() {
            let mut joined = first.clone();
            others.iter().for_each(|other| joined.join(other));
            records.push(self.lock_record(family, joined, rest.len() as u64));
        }
        records
    }

    fn lock_record(&self, family: Family, report: LockReport, instances: u64) -> LockRecord {
        let class = self.class(report.class);
        LockRecord {
            source: Source::Kernel,
            class: Some(ClassRecord { name: class.name.clone(), known: class.known, family: family.name() }),
            instances,
            first_stack: Vec::new(),
            field_numbers: report.fields.ranked().into_iter().map(|field| field.field).collect(),
            fields: report.fields.ranked().into_iter().map(|field| self.field_record(field)).collect(),
            report,
        }
    }

    fn field_record(&self, counted: FieldReport) -> FieldRecord {
        let field = self.names().fields()[counted.field as usize];
        let stacks =
            [0, 1].map(|side| StackRecord { write: field.writes[side], addresses: self.stack(field.stacks[side]) });
        let name = Some(self.names().text(field.name).to_owned());
        FieldRecord { kind: "named", name, address: field.address, offset: None, counted, stacks }
    }
}
