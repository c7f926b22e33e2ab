//! Closing windows: against the definition of a conflict, and rule by rule.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use mtrace::decode::TraceDecoder;
use mtrace::record::{AccessKind, Event, Header, Mode, Window};
use mtrace::rules::{Rule, RuleSet};
use proptest::prelude::*;

use super::*;
use crate::vcpu::Site;

/// Captures the address itself, for the eight bytes around it. A slab lies at the start of physical memory.
#[derive(Clone, Copy)]
struct Echo {
    /// Bytes from one of the slab's objects to the next.
    distance: u64,
}

const BASE: u64 = 0xffff_8880_0000_0000;
const SLAB_BYTES: u64 = 4096;

impl Capturer for Echo {
    fn capture(&mut self, address: u64, out: &mut Vec<u8>) -> Range<u64> {
        out.extend_from_slice(&address.to_le_bytes());
        address & !7..(address & !7) + 8
    }

    fn object_off_lines(&mut self, address: u64) -> Option<Range<u64>> {
        let start = address - (address - BASE) % self.distance;
        let in_slab = address - BASE < SLAB_BYTES && !self.distance.is_multiple_of(LINE_BYTES);
        in_slab.then_some(start..start + self.distance)
    }
}

/// An access of a test: core, address, bytes, whether it writes, and the rule that its memory calls for.
type Step = (usize, u64, u8, bool, Option<Rule>);

fn vcpus(count: usize) -> Vec<Vcpu> {
    (0..count).map(|_| Vcpu::new(u64::MAX, true, RuleSet::all())).collect()
}

/// Closes windows of the same analysis, one after the other, and reads their records back.
fn close(windows: &[Vec<Step>], core_count: usize, direct_map: DirectMap) -> Vec<Window> {
    close_with_slab(windows, core_count, direct_map, LINE_BYTES)
}

fn close_with_slab(windows: &[Vec<Step>], core_count: usize, direct_map: DirectMap, distance: u64) -> Vec<Window> {
    close_by(WindowAnalysis::new(false), windows, core_count, direct_map, distance)
}

fn close_by(
    mut analysis: WindowAnalysis,
    windows: &[Vec<Step>],
    core_count: usize,
    direct_map: DirectMap,
    distance: u64,
) -> Vec<Window> {
    let mut bytes = encode::header(&Header { mode: Mode::System, capture_bytes: 8 }).to_vec();
    let mut stacks = TraceStacks::default();
    let mut vcpus = vcpus(core_count);
    for (sequence, steps) in windows.iter().enumerate() {
        vcpus.iter_mut().for_each(Vcpu::open_window);
        for &(core, address, size_bytes, write, rule) in steps {
            vcpus[core].record(address, address, Site::new(0x1000 + core as u64, 0), size_bytes, write.into(), rule);
        }
        let mut numbered: Vec<(u8, &mut Vcpu)> = (0u8..).zip(&mut vcpus).collect();
        let logs = Logs { vcpus: &mut numbered, core_count, direct_map };
        analysis.close(sequence as u64, logs, &mut stacks, Some(&mut Echo { distance }), &mut bytes);
    }
    encode::end(&mut bytes, windows.len() as u64);
    let mut decoder = TraceDecoder::new(&bytes[..]).expect("a header");
    let mut read = Vec::new();
    while let Some(event) = decoder.next_event().expect("a correct trace") {
        if let Event::Window(window) = event {
            read.push(window);
        }
    }
    read
}

fn close_one(steps: &[Step]) -> Window {
    close(&[steps.to_vec()], 4, DirectMap::default()).remove(0)
}

#[test]
fn a_line_counts_for_the_first_rule_that_it_needs() {
    let runner = Some(Rule::Runner);
    let interrupt = Some(Rule::Interrupt);
    let window = close_one(&[
        // Both sides counted: stays.
        (0, 0x000, 8, true, None),
        (1, 0x008, 8, false, None),
        // The writer is an interrupt's.
        (0, 0x040, 8, true, interrupt),
        (1, 0x040, 8, false, None),
        // The runner's access alone does not remove the conflict, the interrupt's then does.
        (0, 0x080, 8, true, runner),
        (1, 0x080, 8, true, None),
        (2, 0x080, 8, false, interrupt),
        // The interrupt's accesses are next to the conflict of two that count.
        (0, 0x0c0, 8, true, None),
        (1, 0x0c0, 8, true, None),
        (2, 0x0c0, 8, true, interrupt),
        // Never a conflict.
        (0, 0x100, 8, true, runner),
        (0, 0x100, 8, true, None),
    ]);
    assert_eq!(window.lines.iter().map(|line| line.address).collect::<Vec<_>>(), [0x000, 0x0c0]);
    assert_eq!(window.ignored_by(Rule::Interrupt), 2);
    assert_eq!(window.ignored_lines.iter().sum::<u32>(), 2);
    assert_eq!(window.counted_accesses, [3, 4, 0, 0]);
    // What a rule ignores is not shown, even on a line that stays.
    assert!(window.lines[1].accesses.iter().all(|access| access.core != 2));
}

#[test]
fn accesses_are_distinct_captured_by_object_and_in_order() {
    let window = close_one(&[
        (1, 0x04, 4, true, None),
        (0, 0x10, 8, false, None),
        (0, 0x00, 8, true, None),
        (0, 0x10, 8, false, None),
        (0, 0x04, 4, true, None),
    ]);
    let [line] = &window.lines[..] else { panic!("expected one line, got {window:?}") };
    let told: Vec<(u8, u8, u8, bool)> = line
        .accesses
        .iter()
        .map(|access| (access.core, access.offset, access.size_bytes, access.kind == AccessKind::Write))
        .collect();
    assert_eq!(told, [(0, 16, 8, false), (0, 0, 8, true), (0, 4, 4, true), (1, 4, 4, true)]);
    let captured: Vec<u64> =
        line.captures.iter().map(|bytes| u64::from_le_bytes(bytes[..].try_into().expect("eight bytes"))).collect();
    assert_eq!(captured, [0x10, 0x00]);
}

#[test]
fn one_piece_of_memory_under_two_addresses_is_one_line() {
    let base = 0xffff_8880_0000_0000;
    let direct_map = DirectMap { base, bytes: 1 << 30 };
    let steps = vec![(0, 0x12345, 1, true, None), (1, base + 0x12345, 1, false, None)];
    let window = close(&[steps], 2, direct_map).remove(0);
    let [line] = &window.lines[..] else { panic!("expected one line, got {window:?}") };
    assert_eq!((line.address, line.physical), (base + 0x12340, Some(0x12340)));
}

fn any_step() -> impl Strategy<Value = Step> {
    let rule = prop_oneof![4 => Just(None), 1 => (0..Rule::ALL.len()).prop_map(|index| Some(Rule::ALL[index]))];
    (0usize..4, 0u64..400, prop::sample::select(&[1u8, 2, 4, 8, 16, 32][..]), any::<bool>(), rule)
}

/// What the definition says: lines with a conflict among the accesses that a set of rules leaves.
fn conflicting_lines(steps: &[Step], line_of: impl Fn(u64) -> u64, leaves: impl Fn(Rule) -> bool) -> BTreeSet<u64> {
    let mut touched: BTreeMap<u64, (BTreeSet<usize>, bool)> = BTreeMap::new();
    for &(core, address, size_bytes, write, rule) in steps {
        if rule.is_none_or(&leaves) {
            for byte in address..address + u64::from(size_bytes) {
                let line = touched.entry(line_of(byte)).or_default();
                line.0.insert(core);
                line.1 |= write;
            }
        }
    }
    touched.into_iter().filter(|(_, (cores, written))| cores.len() > 1 && *written).map(|(line, _)| line).collect()
}

proptest! {
    #[test]
    fn agrees_with_the_definition(windows in proptest::collection::vec(proptest::collection::vec(any_step(), 0..80), 1..4)) {
        let closed = close(&windows, 4, DirectMap::default());
        for (steps, window) in windows.iter().zip(closed) {
            let staying: BTreeSet<u64> = window.lines.iter().map(|line| line.address).collect();
            prop_assert_eq!(&staying, &conflicting_lines(steps, |byte| byte & !63, |_| false));
            let mut before = conflicting_lines(steps, |byte| byte & !63, |_| true);
            for (index, rule) in Rule::ALL.into_iter().enumerate() {
                let after = conflicting_lines(steps, |byte| byte & !63, |other| other as usize > index);
                prop_assert_eq!(window.ignored_by(rule) as usize, before.difference(&after).count());
                before = after;
            }
            for line in &window.lines {
                let mut told = BTreeSet::new();
                for access in &line.accesses {
                    let mask = (access.core, access.kind == AccessKind::Write, access.byte_mask());
                    prop_assert!(told.insert(mask), "an access came twice");
                }
                let mut expected = BTreeSet::new();
                for &(core, address, size_bytes, write, rule) in steps {
                    let bytes = (address..address + u64::from(size_bytes)).filter(|byte| byte & !63 == line.address);
                    let mask = bytes.fold(0u64, |mask, byte| mask | 1 << (byte % 64));
                    if rule.is_none() && mask != 0 {
                        expected.insert((core as u8, write, mask));
                    }
                }
                prop_assert_eq!(told, expected);
            }
        }
    }

    #[test]
    fn neighbours_are_pairs_that_share_neither_line(
        windows in proptest::collection::vec(proptest::collection::vec(any_step(), 0..40), 1..4),
    ) {
        let closed = close_by(WindowAnalysis::new(true), &windows, 4, DirectMap::default(), LINE_BYTES);
        for (steps, window) in windows.iter().zip(closed) {
            let shared = conflicting_lines(steps, |byte| byte & !63, |_| false);
            let mut expected = shared.clone();
            let touches = |line: u64| {
                let touching = steps.iter().filter(move |step| {
                    step.4.is_none() && step.1 < line + 64 && line < step.1 + u64::from(step.2)
                });
                touching.map(|step| (step.0, step.3))
            };
            for lower in (0..512).step_by(128) {
                let beside = |one: (usize, bool)| {
                    touches(lower + 64).any(|other| one.0 != other.0 && (one.1 || other.1))
                };
                if !shared.contains(&lower) && !shared.contains(&(lower + 64)) && touches(lower).any(beside) {
                    expected.extend([lower, lower + 64]);
                }
            }
            let staying: BTreeSet<u64> = window.lines.iter().map(|line| line.address).collect();
            prop_assert_eq!(staying, expected);
        }
    }

    #[test]
    fn lines_of_objects_off_lines_are_counted_from_their_start(
        windows in proptest::collection::vec(proptest::collection::vec(any_step(), 0..60), 1..4),
        distance in prop::sample::select(&[8u64, 24, 40, 64, 72, 104, 200][..]),
    ) {
        let direct_map = DirectMap { base: BASE, bytes: 1 << 20 };
        let in_slab = |steps: &Vec<Step>| steps.iter().map(|step| (step.0, BASE + step.1, step.2, step.3, step.4)).collect();
        let windows: Vec<Vec<Step>> = windows.iter().map(in_slab).collect();
        let line_of = |byte: u64| {
            let within = (byte - BASE) % distance;
            if distance.is_multiple_of(64) { byte & !63 } else { byte - within % 64 }
        };
        for (steps, window) in windows.iter().zip(close_with_slab(&windows, 4, direct_map, distance)) {
            let staying: BTreeSet<u64> = window.lines.iter().map(|line| line.address).collect();
            prop_assert_eq!(&staying, &conflicting_lines(steps, line_of, |_| false));
            for line in &window.lines {
                prop_assert_eq!(line.physical, Some(line.address - BASE));
                for access in &line.accesses {
                    let bytes = line.address + u64::from(access.offset)..;
                    let mut bytes = bytes.take(usize::from(access.size_bytes));
                    prop_assert!(bytes.all(|byte| line_of(byte) == line.address), "{:#x} {:?}", line.address, access);
                }
            }
        }
    }
}

#[test]
fn the_table_grows_and_shrinks_with_its_windows() {
    let shared = [BASE + 70 * LINE_BYTES, BASE + 4711 * LINE_BYTES];
    let window = |line_count: u64| -> Vec<Step> {
        let written = (0..line_count).map(|line| (0, BASE + line * LINE_BYTES, 8, true, None));
        written.chain(shared.map(|address| (1, address, 8, false, None))).collect()
    };
    let sizes = [10_000, 100, 100, 5_000, 100_000, 100];
    let windows: Vec<_> = sizes.into_iter().map(window).collect();
    for (read, size) in close(&windows, 2, DirectMap::default()).iter().zip(sizes) {
        let found: Vec<u64> = read.lines.iter().map(|line| line.address).collect();
        let expected = if size < 4711 { &shared[..1] } else { &shared };
        assert_eq!(found, expected, "{size} lines");
    }
}
