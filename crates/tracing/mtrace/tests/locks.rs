//! From bytes of a machine's trace to locks over findings: two locks of one type are distinguished.

use std::sync::Arc;

use kernel_naming::{CaptureKind, KernelSymbols, KernelTypes, Namer, ObjectCapture};
use mtrace::encode;
use mtrace::findings::{Finding, TraceAnalyzer};
use mtrace::names::{NameSource, Names};
use mtrace::record::{Access, AccessKind, Header, Mode, Moments, SharedLine, Window};

const SYMBOLS: &str = "ffffffff81000000 T mutex_lock\nffffffff81001000 T mutex_unlock\nffffffff81002000 T touch\nffffffff81003000 T _etext\n";
const LOCK: u64 = 0xffff_ffff_8100_0004;
const UNLOCK: u64 = 0xffff_ffff_8100_1004;
const TOUCH: u64 = 0xffff_ffff_8100_2004;
/// Of each object the first line has the lock, the second one data.
const OBJECTS: [u64; 2] = [0xffff_8880_0100_0000, 0xffff_8880_0200_0000];

/// A line of an inode, with what both cores did there and when: the second core a hundred accesses later.
fn line(object: u64, offset: u64, of_whom: &str, made: &[(u64, u32)]) -> SharedLine {
    let mut capture = ObjectCapture::unknown(object + offset);
    capture.kind = CaptureKind::Slab as u32;
    (capture.object, capture.object_size) = (object, 128);
    capture.cache_name[..11].copy_from_slice(b"inode_cache");
    capture.of_whom[..of_whom.len()].copy_from_slice(of_whom.as_bytes());
    let both = (0..2_u8).flat_map(|core| made.iter().map(move |&(instruction, at)| (core, instruction, at)));
    let both: Vec<(u8, u64, u32)> = both.collect();
    let access = |&(core, instruction, _): &(u8, u64, u32)| {
        let offset = u8::from(offset > 0) * 8;
        Access { instruction, stack: 0, core, offset, size_bytes: 8, kind: AccessKind::Write }
    };
    SharedLine {
        address: object + offset,
        physical: Some(object & 0xfff_ffff),
        captures: vec![capture.to_bytes().to_vec()],
        accesses: both.iter().map(access).collect(),
        moments: both
            .iter()
            .map(|&(core, _, at)| at + 100 * u32::from(core))
            .map(|at| Moments { first: at, last: at })
            .collect(),
    }
}

/// Two inodes, each locked and touched by both cores; the inner section lies in the outer one, or after it.
fn findings(owners: [&str; 2], is_nested: bool) -> Vec<Finding> {
    let inner = if is_nested { 20 } else { 50 };
    let lines = vec![
        line(OBJECTS[0], 0, owners[0], &[(LOCK, 10), (UNLOCK, 40)]),
        line(OBJECTS[0], 64, owners[0], &[(TOUCH, 12)]),
        line(OBJECTS[1], 0, owners[1], &[(LOCK, inner), (UNLOCK, inner + 8)]),
        line(OBJECTS[1], 64, owners[1], &[(TOUCH, inner + 4)]),
    ];
    let capture_bytes = ObjectCapture::SIZE_BYTES as u32;
    let mut bytes = encode::header(&Header { mode: Mode::System, capture_bytes }).to_vec();
    let ignored_lines = [0; mtrace::rules::RULE_COUNT];
    let window = Window {
        sequence: 0,
        lost_accesses: 0,
        counted_accesses: vec![6, 6],
        logged_accesses: vec![200, 200],
        ignored_lines,
        lines,
    };
    encode::window(&mut bytes, &window);
    encode::end(&mut bytes, 1);
    let symbols = KernelSymbols::parse(SYMBOLS.as_bytes()).expect("symbols");
    let names = Names::new(NameSource::Kernel(Arc::new(Namer::new(KernelTypes::none(), symbols))));
    let mut analyzer = TraceAnalyzer::new(&bytes[..], names).expect("a header");
    analyzer.read_batch(&mut Vec::new()).expect("a correct trace");
    let store = analyzer.findings();
    (0..store.len() as u32).map(|number| store.get(number).expect("a known number").0.clone()).collect()
}

/// Function, what it is about, the lock that covers it with what that is about, and the lock's number.
fn told(found: &[Finding]) -> Vec<(&str, &str, bool, &str, u32)> {
    let one = |finding: &Finding| !finding.under.is_empty();
    let mut rows: Vec<_> = found
        .iter()
        .map(|finding| {
            let is_data = finding.first.function == "touch";
            (
                if is_data { "data" } else { "lock" },
                &*finding.owner,
                one(finding),
                &*finding.under_owner,
                finding.lock_number,
            )
        })
        .collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[test]
fn what_locks_are_about_tells_them_apart() {
    let found = findings(["d", "f n0"], false);
    let expected = [
        ("data", "d", true, "d", 0),
        ("data", "f n0", true, "f n0", 0),
        ("lock", "d", false, "", 0),
        ("lock", "f n0", false, "", 0),
    ];
    assert_eq!(told(&found), expected);
}

#[test]
fn the_order_in_which_they_are_taken_tells_others_apart() {
    for owner in ["d", ""] {
        let found = findings([owner, owner], false);
        let expected = [
            ("data", owner, true, owner, 0),
            ("data", owner, true, owner, 1),
            ("lock", owner, false, "", 0),
            ("lock", owner, false, "", 1),
        ];
        assert_eq!(told(&found), expected);
    }
}

#[test]
fn what_lies_under_both_follows_from_the_outer_one() {
    let found = findings(["d", "f n0"], true);
    let expected = [
        ("data", "d", true, "d", 0),
        ("data", "f n0", true, "d", 0),
        ("lock", "d", false, "", 0),
        ("lock", "f n0", true, "d", 0),
    ];
    assert_eq!(told(&found), expected);
}
