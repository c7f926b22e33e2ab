//! The report: one JSON document, the same for the same run.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use qemu_plugin::call_tree::ROOT;
use transfers::coherence::LINE_BYTES;

use crate::counter::Counter;

/// Lines that are reported one by one: those that move most.
const TOP_LINES: usize = 32;

/// All that was counted.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether the program came to its end.
    complete: bool,
    cores: usize,
    lines: usize,
    memory_bytes: usize,
    works: Vec<Work>,
    transfers: Vec<Row>,
    /// Addresses of instructions, the innermost first: of those of `place` and `cause`.
    stacks: BTreeMap<u32, Vec<u64>>,
    /// How many lines moved so often.
    lines_by_transfers: Vec<(u32, u64)>,
    /// Address and transfers of the lines that moved most.
    top_lines: Vec<(u64, u32)>,
}

#[derive(Debug, Serialize)]
struct Work {
    instructions: u64,
    accesses: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    way: &'static str,
    work: u8,
    work_of_cause: u8,
    place: u32,
    cause: u32,
    address: u64,
    transfers: u64,
    invalidated: u64,
}

impl Report {
    /// Of what was counted so far.
    pub fn of(counter: &Counter) -> Report {
        let mut rows: Vec<_> = counter.transfers.iter().collect();
        rows.sort_by_key(|(key, counted)| (std::cmp::Reverse(counted.transfers), **key));
        let places: BTreeSet<u32> = rows.iter().flat_map(|(key, _)| [key.place, key.cause]).collect();
        let stack = |number: u32| {
            let (code, mut node) = counter.place(number)?;
            let mut stack = vec![code];
            while node != ROOT {
                stack.push(counter.tree.node(node).site);
                node = counter.tree.node(node).parent;
            }
            Some((number, stack))
        };
        let mut by_line: Vec<(u64, u32)> = counter.caches().transfers_by_line().collect();
        by_line.sort_by_key(|&(line, transfers)| (std::cmp::Reverse(transfers), line));
        let mut lines_by_transfers = BTreeMap::new();
        for (_, transfers) in &by_line {
            *lines_by_transfers.entry(*transfers).or_insert(0) += 1;
        }
        let row = |(key, counted): (&crate::counter::Key, &crate::counter::Counted)| Row {
            way: if key.is_upgrade { "upgrade" } else { "miss" },
            work: key.work,
            work_of_cause: key.work_of_cause,
            place: key.place,
            cause: key.cause,
            address: counted.address,
            transfers: counted.transfers,
            invalidated: counted.invalidated,
        };
        Report {
            complete: counter.has_ended,
            cores: counter.core_count(),
            lines: counter.caches().line_count(),
            memory_bytes: counter.caches().memory_bytes(),
            works: counter
                .works
                .iter()
                .map(|work| Work { instructions: work.instructions, accesses: work.accesses })
                .collect(),
            transfers: rows.into_iter().map(row).collect(),
            stacks: places.into_iter().filter_map(stack).collect(),
            lines_by_transfers: lines_by_transfers.into_iter().collect(),
            top_lines: by_line.into_iter().take(TOP_LINES).map(|(line, count)| (line * LINE_BYTES, count)).collect(),
        }
    }
}
