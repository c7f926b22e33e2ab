//! Which of Adya's anomalies a history of lists has, to which transactions append and which they read (Adya, "Weak consistency",
//! 1999; the inference from lists is that of Kingsbury and Alvaro, "Elle", VLDB 2020).
//!
//! A list tells its past: who read `[1, 2]` came after whoever appended 2, and before whoever appended what stands behind it. So
//! each two transactions that meet at a list are ordered, by an edge; a circle of edges is an anomaly, named by its edges.

use std::collections::{BTreeMap, BTreeSet};

/// What a transaction has done with a list: each value is appended once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Append(usize, u64),
    Read(usize, Vec<u64>),
}

/// A transaction that has happened.
#[derive(Clone, Debug)]
pub struct Committed {
    pub began: u64,
    pub ended: u64,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    pub committed: Vec<Committed>,
    /// Values that transactions have appended which did not happen.
    pub aborted: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// G1a: a value of a transaction that did not happen.
    AbortedRead,
    /// G1b: a value to which its transaction has appended another one.
    IntermediateRead,
    /// Two reads of a list of which none begins with the other: an append was lost.
    Order,
    /// A circle of appends.
    G0,
    /// A circle of appends and reads of what was appended.
    G1c,
    /// With one read of what came before an append: read skew.
    GSingle,
    /// With several: write skew.
    G2,
    /// A circle that has an edge from a transaction to one that began when it had ended.
    RealTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Append,
    Read,
    Before,
    Time,
}

type Edges = BTreeMap<usize, BTreeSet<(usize, Edge)>>;

/// The first anomaly of a history, the graver ones first.
pub fn anomaly(history: &History) -> Option<Anomaly> {
    let mut writers = BTreeMap::new();
    let mut lasts = BTreeSet::new();
    for (number, transaction) in history.committed.iter().enumerate() {
        let mut last = BTreeMap::new();
        for step in &transaction.steps {
            if let Step::Append(list, value) = step {
                writers.insert(*value, number);
                last.insert(*list, *value);
            }
        }
        lasts.extend(last.into_values());
    }
    let mut longest: BTreeMap<usize, &[u64]> = BTreeMap::new();
    let reads = || {
        history.committed.iter().enumerate().flat_map(|(number, transaction)| {
            transaction.steps.iter().filter_map(move |step| match step {
                Step::Read(list, values) => Some((number, *list, &values[..])),
                Step::Append(..) => None,
            })
        })
    };
    for (reader, list, values) in reads() {
        if values.iter().any(|value| history.aborted.contains(value)) {
            return Some(Anomaly::AbortedRead);
        }
        let last = values.last();
        if last.is_some_and(|value| writers.get(value) != Some(&reader) && !lasts.contains(value)) {
            return Some(Anomaly::IntermediateRead);
        }
        let known = longest.entry(list).or_default();
        if values.len() > known.len() {
            *known = values;
        }
    }
    if reads().any(|(_, list, values)| !longest[&list].starts_with(values)) {
        return Some(Anomaly::Order);
    }
    let mut edges = Edges::new();
    let mut add = |from: usize, to: usize, edge| {
        if from != to {
            edges.entry(from).or_default().insert((to, edge));
        }
    };
    let writer = |value: &u64| writers.get(value).copied();
    for values in longest.values() {
        for pair in values.windows(2) {
            if let (Some(first), Some(second)) = (writer(&pair[0]), writer(&pair[1])) {
                add(first, second, Edge::Append);
            }
        }
    }
    for (reader, list, values) in reads() {
        if let Some(writer) = values.last().and_then(writer) {
            add(writer, reader, Edge::Read);
        }
        if let Some(next) = longest[&list].get(values.len()).and_then(writer) {
            add(reader, next, Edge::Before);
        }
    }
    let circle = |kinds: &[Edge]| edges.keys().any(|&start| leads(&edges, start, start, kinds));
    if circle(&[Edge::Append]) {
        return Some(Anomaly::G0);
    }
    if circle(&[Edge::Append, Edge::Read]) {
        return Some(Anomaly::G1c);
    }
    let skips = |from: &usize| edges[from].iter().filter(|(_, edge)| *edge == Edge::Before).map(|(to, _)| *to);
    let has_single =
        edges.keys().any(|from| skips(from).any(|to| leads(&edges, to, *from, &[Edge::Append, Edge::Read])));
    if has_single {
        return Some(Anomaly::GSingle);
    }
    if circle(&[Edge::Append, Edge::Read, Edge::Before]) {
        return Some(Anomaly::G2);
    }
    add_time(&mut edges, &history.committed);
    let circle = |kinds: &[Edge]| edges.keys().any(|&start| leads(&edges, start, start, kinds));
    circle(&[Edge::Append, Edge::Read, Edge::Before, Edge::Time]).then_some(Anomaly::RealTime)
}

/// Who has ended is before all that begin later: by way of a chain of moments, numbered behind all transactions.
fn add_time(edges: &mut Edges, committed: &[Committed]) {
    let mut moments: Vec<_> = committed.iter().enumerate().map(|(number, one)| (one.ended, number)).collect();
    moments.sort_unstable();
    let node = |moment: usize| committed.len() + moment;
    for (moment, (_, number)) in moments.iter().enumerate() {
        edges.entry(*number).or_default().insert((node(moment), Edge::Time));
        if moment > 0 {
            edges.entry(node(moment - 1)).or_default().insert((node(moment), Edge::Time));
        }
    }
    for (number, one) in committed.iter().enumerate() {
        let before = moments.partition_point(|(ended, _)| *ended < one.began);
        if before > 0 {
            edges.entry(node(before - 1)).or_default().insert((number, Edge::Time));
        }
    }
}

/// Whether edges of these kinds lead from one to the other, by one edge at least.
fn leads(edges: &Edges, from: usize, to: usize, kinds: &[Edge]) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(node) = open.pop() {
        for (next, _) in edges.get(&node).into_iter().flatten().filter(|(_, edge)| kinds.contains(edge)) {
            if *next == to {
                return true;
            }
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    false
}
