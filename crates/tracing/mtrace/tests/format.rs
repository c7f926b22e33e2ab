//! The trace format against itself: what is written is read back, and what was not written so is refused with a position.

use std::io::{Read, Write};

use mtrace::decode::{TraceDecoder, TraceError};
use mtrace::encode::{self, WindowSummary, WindowWriter};
use mtrace::record::{
    Access, AccessKind, Event, Header, MAX_BODY_BYTES, MAX_CORES, Mode, Moments, SharedLine, StackNode, Window,
};
use mtrace::rules::RULE_COUNT;
use proptest::prelude::*;

const CAPTURE_BYTES: usize = 12;
const ACCESS_BYTES: usize = 24;

/// What a test writes.
#[derive(Debug, Clone)]
enum Written {
    Nodes(Vec<StackNode>),
    Window(Window),
    Reset,
    Flush,
}

fn any_access(cores: u8, nodes: u32) -> impl Strategy<Value = Access> {
    (any::<u64>(), 0..nodes, 0..cores, 0u8..64, 1u8..=64, 0u8..3).prop_map(
        |(instruction, stack, core, offset, size_bytes, kind)| {
            let size_bytes = size_bytes.min(64 - offset);
            Access {
                instruction,
                stack,
                core,
                offset,
                size_bytes,
                kind: AccessKind::from_number(kind).expect("a kind"),
            }
        },
    )
}

fn any_line(cores: u8, nodes: u32) -> impl Strategy<Value = SharedLine> {
    let captures = proptest::collection::vec(proptest::collection::vec(any::<u8>(), CAPTURE_BYTES), 0..4);
    let moments = (0..u32::MAX, 0..u32::MAX).prop_map(|(a, b)| Moments { first: a.min(b), last: a.max(b) });
    let accesses = proptest::collection::vec((any_access(cores, nodes), moments), 0..8);
    let physical = proptest::option::of((0u64..1 << 40).prop_map(|line| line * 64));
    ((any::<u64>().prop_map(|address| address & !63), physical), captures, accesses).prop_map(
        |((address, physical), captures, accesses)| {
            let (accesses, moments) = accesses.into_iter().unzip();
            SharedLine { address, physical, captures, accesses, moments }
        },
    )
}

/// A correct trace as a sequence of what is written.
fn any_trace() -> impl Strategy<Value = Vec<Written>> {
    let windows = proptest::collection::vec(
        (1u8..5, 1u32..20, proptest::collection::vec(any_line(1, 1), 0..5), any::<[u32; 6]>(), any::<bool>()),
        0..6,
    );
    windows.prop_map(|windows| {
        let mut trace = Vec::new();
        let mut node_count = 1;
        for (sequence, (cores, nodes, mut lines, ignored_lines, reset)) in windows.into_iter().enumerate() {
            if reset {
                trace.push(Written::Reset);
                node_count = 1;
            }
            let new = (0..nodes).map(|index| StackNode { parent: (node_count + index) / 2, site: u64::from(index) });
            trace.push(Written::Nodes(new.collect()));
            node_count += nodes;
            lines.sort_by_key(|line| (line.address, line.physical));
            lines.dedup_by_key(|line| (line.address, line.physical));
            for (index, access) in lines.iter_mut().flat_map(|line| &mut line.accesses).enumerate() {
                access.core = index as u8 % cores;
                access.stack = index as u32 % node_count;
            }
            trace.push(Written::Window(Window {
                sequence: sequence as u64,
                lost_accesses: u64::from(reset),
                counted_accesses: (0..u64::from(cores)).collect(),
                logged_accesses: vec![u32::MAX; usize::from(cores)],
                ignored_lines,
                lines,
            }));
            trace.push(Written::Flush);
        }
        trace
    })
}

/// The bytes, with an end.
fn bytes_of(trace: &[Written]) -> Vec<u8> {
    let mut bytes = encode::header(&Header { mode: Mode::System, capture_bytes: CAPTURE_BYTES as u32 }).to_vec();
    let (mut windows, mut nodes) = (0, 1);
    for written in trace {
        match written {
            Written::Nodes(new) => {
                encode::stack_nodes(&mut bytes, nodes, new);
                nodes += new.len() as u32;
            }
            Written::Window(window) => {
                encode::window(&mut bytes, window);
                windows += 1;
            }
            Written::Reset => {
                encode::stack_reset(&mut bytes);
                nodes = 1;
            }
            Written::Flush => encode::flush(&mut bytes, windows),
        }
    }
    encode::end(&mut bytes, windows);
    bytes
}

fn read_all(source: impl Read) -> Result<Vec<Event>, TraceError> {
    let mut decoder = TraceDecoder::new(source)?;
    let mut events = Vec::new();
    while let Some(event) = decoder.next_event()? {
        events.push(event);
    }
    Ok(events)
}

/// Gives one byte at a time: records arrive in any pieces.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(bytes.len()).min(1);
        bytes[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// Positions of the records' headers.
fn record_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![32];
    while let Some(&start) = starts.last().filter(|&&start| start + 12 <= bytes.len()) {
        let length = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().expect("four bytes"));
        starts.push(start + 12 + length as usize);
    }
    starts.pop();
    starts
}

/// Makes each record's checksum right again, so that what stands in it is looked at.
fn mend_checksums(bytes: &mut [u8]) {
    for start in record_starts(bytes) {
        let length = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().expect("four bytes")) as usize;
        if let Some(body) = bytes.get(start + 12..start + 12 + length) {
            let checksum = crc32fast::hash(&[&bytes[start..start + 8], body].concat());
            bytes[start + 8..start + 12].copy_from_slice(&checksum.to_le_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read_back(trace in any_trace()) {
        let bytes = bytes_of(&trace);
        let mut expected: Vec<Event> = Vec::new();
        let mut windows = 0;
        for written in &trace {
            match written {
                Written::Nodes(_) => {}
                Written::Window(window) => {
                    expected.push(Event::Window(window.clone()));
                    windows += 1;
                }
                Written::Reset => expected.push(Event::StackReset),
                Written::Flush => expected.push(Event::Flush(windows)),
            }
        }
        expected.push(Event::End(windows));
        prop_assert_eq!(&read_all(&bytes[..]).expect("a correct trace"), &expected);
        prop_assert_eq!(&read_all(Trickle(&bytes)).expect("a correct trace"), &expected);
    }

    #[test]
    fn every_truncation_is_noticed_where_it_is(trace in any_trace(), cut in any::<prop::sample::Index>()) {
        let bytes = bytes_of(&trace);
        let length = cut.index(bytes.len());
        match read_all(&bytes[..length]) {
            Err(TraceError::CutOff { position, .. }) => prop_assert!(position <= length as u64),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed(trace in any_trace(), place in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = bytes_of(&trace);
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        // The header's mode is the one thing that a single bit can turn into another correct one, and the announced size
        // of captures shows in the first line that has any.
        if !(12..20).contains(&at) {
            prop_assert!(read_all(&bytes[..]).is_err());
        }
    }

    #[test]
    fn hostile_records_with_right_checksums_are_survived(
        trace in any_trace(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = bytes_of(&trace);
        for (place, value) in changes {
            let at = 32 + place.index(bytes.len() - 32);
            bytes[at] = value;
        }
        mend_checksums(&mut bytes);
        if let Err(TraceError::Damaged { position, .. } | TraceError::CutOff { position, .. }) = read_all(&bytes[..]) {
            prop_assert!(position <= bytes.len() as u64);
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read_all(&bytes[..]).is_err());
        let mut with_header = encode::header(&Header { mode: Mode::User, capture_bytes: 0 }).to_vec();
        with_header.write_all(&bytes).expect("a vector");
        prop_assert!(read_all(&with_header[..]).is_err());
    }
}

fn message_of(bytes: &[u8]) -> String {
    read_all(bytes).expect_err("a damaged trace").to_string()
}

#[test]
fn messages_name_position_and_expectation() {
    let header = encode::header(&Header { mode: Mode::User, capture_bytes: 0 }).to_vec();
    let with = |at: usize, value: u8| {
        let mut changed = header.clone();
        changed[at] = value;
        changed
    };
    assert_eq!(message_of(b""), "trace cut off at byte 0: expected a header of 32 bytes");
    assert!(message_of(&with(0, 0)).starts_with("trace damaged at byte 0: expected the first eight bytes of a trace"));
    assert_eq!(
        message_of(&with(8, 9)),
        "trace damaged at byte 8: expected format version 3, got 9; trace again with this release"
    );
    assert!(message_of(&with(12, 2)).contains("at byte 12: expected mode 0 (user) or 1 (system), got 2"));
    assert!(message_of(&with(18, 1)).contains("at byte 16: expected captures of at most 1024 bytes, got 65536"));
    assert!(message_of(&with(31, 7)).contains("at byte 31: expected a zero byte, got 7"));
    assert!(message_of(&header).contains("at byte 32: expected a further record"));
    let mut kind = header.clone();
    encode::flush(&mut kind, 0);
    kind[32] = 77;
    mend_checksums(&mut kind);
    assert_eq!(message_of(&kind), "trace damaged at byte 32: expected a record of kind 1 to 6, got kind 77");
    let mut long = header.clone();
    long.extend_from_slice(&[2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert!(
        message_of(&long)
            .contains("at byte 36: expected a record of at most 16777216 bytes, got a length of 4294967295")
    );
    let mut count = header.clone();
    encode::end(&mut count, 3);
    assert_eq!(message_of(&count), "trace damaged at byte 44: expected a count of 0 windows, got 3");
}

#[test]
fn nothing_follows_an_error_or_the_end() {
    let mut bytes = encode::header(&Header { mode: Mode::User, capture_bytes: 0 }).to_vec();
    encode::flush(&mut bytes, 1);
    let mut decoder = TraceDecoder::new(&bytes[..]).expect("a header");
    assert!(decoder.next_event().is_err());
    assert!(matches!(decoder.next_event(), Ok(None)));
}

#[test]
fn a_message_of_the_tracer_is_passed_on() {
    let mut bytes = encode::header(&Header { mode: Mode::User, capture_bytes: 0 }).to_vec();
    encode::message(&mut bytes, "no more room");
    encode::end(&mut bytes, 0);
    let events = read_all(&bytes[..]).expect("a correct trace");
    assert_eq!(events, [Event::Message("no more room".to_owned()), Event::End(0)]);
}

/// A header, a stack node, and a window with one line: its first 20 bytes at 72, a capture at 92, an access at 96.
fn documented() -> Vec<u8> {
    let mut bytes = encode::header(&Header { mode: Mode::System, capture_bytes: 4 }).to_vec();
    encode::stack_nodes(&mut bytes, 1, &[StackNode { parent: 0, site: 0x1122_3344_5566_7788 }]);
    let access =
        Access { instruction: 0x99, stack: 1, core: 1, offset: 8, size_bytes: 4, kind: AccessKind::PrefetchForWrite };
    encode::window(
        &mut bytes,
        &Window {
            sequence: 0,
            lost_accesses: 5,
            counted_accesses: vec![6, 7],
            logged_accesses: vec![6, 5],
            ignored_lines: [1, 2, 3, 4, 5, 6],
            lines: vec![SharedLine {
                address: 0x1000,
                physical: None,
                captures: vec![b"abcd".to_vec()],
                accesses: vec![access],
                moments: vec![Moments { first: 3, last: 4 }],
            }],
        },
    );
    bytes
}

/// Where a part of a window is not what it may be, the message says where that part stands.
#[test]
fn each_part_of_a_window_is_refused_where_it_stands() {
    let bytes = documented();
    let starts = record_starts(&bytes);
    let (nodes, window) = (starts[0] + 12, starts[1] + 12);
    for (place, value, position, expected) in [
        (nodes, 2, nodes, "expected stack nodes from number 1, got number 2"),
        (nodes + 4, 2, nodes + 4, "expected 2 stack nodes of 12 bytes, got 12 bytes"),
        (nodes + 16, 1, nodes + 16, "expected the parent of stack node 1 before it, got 1"),
        (window, 1, window, "expected window 0, got 1"),
        (window + 17, 0xff, window + 16, "expected at most"),
        (window + 18, 5, window + 18, "expected 6 rules, got 5"),
        (window + 20, 3, window + 20, "expected 3 lines, got 48 bytes"),
        (window + 20, 0, window + 72, "expected the end of this record, got 48 further bytes"),
        (window + 20, 2, window + 120, "expected 8 further bytes in this record, got 0"),
        (window + 72, 1, window + 72, "expected a line's address, got 0x1001"),
        (window + 80, 0xfe, window + 80, "expected a line's physical address, got 0xfffffffffffffffe"),
        (window + 89, 0xff, window + 88, "expected at most"),
        (window + 90, 2, window + 96, "expected 2 accesses, got 24 bytes"),
        (window + 104, 2, window + 104, "expected a stack node below 2, got 2"),
        (window + 108, 2, window + 108, "expected a core below 2, got 2"),
        (window + 109, 61, window + 109, "expected bytes within a line, got 4 bytes from byte 61"),
        (window + 110, 0, window + 109, "expected bytes within a line, got 0 bytes from byte 8"),
        (window + 111, 3, window + 111, "expected 0 (read), 1 (write) or 2 (prefetch for writing), got 3"),
        (window + 116, 2, window + 116, "expected a last time from 3 on, got 2"),
        (window + 116, 5, window + 116, "expected times below 5, got 5"),
    ] {
        let mut changed = bytes.clone();
        changed[place] = value;
        mend_checksums(&mut changed);
        let message = message_of(&changed);
        assert!(message.starts_with(&format!("trace damaged at byte {position}: {expected}")), "{message}");
    }
    for (place, value) in [(window + 80, 0xff), (window + 109, 60), (window + 110, 56), (window + 116, 3)] {
        let mut changed = bytes.clone();
        changed[place] = value;
        encode::end(&mut changed, 1);
        mend_checksums(&mut changed);
        assert_eq!(read_all(&changed[..]).map(|events| events.len()).expect("as much as there may be"), 2);
    }
}

/// Pins the bytes that docs/reference/trace-format.md describes.
#[test]
fn bytes_are_as_documented() {
    let bytes = documented();
    let record = |kind: u8, body: &[u8]| {
        let mut record = vec![kind, 0, 0, 0, body.len() as u8, 0, 0, 0];
        let checksum = crc32fast::hash(&[&record, body].concat());
        record.extend_from_slice(&checksum.to_le_bytes());
        record.extend_from_slice(body);
        record
    };
    let header = [&b"\x89MTRACE\n"[..], &[3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0], &[0; 12]].concat();
    let nodes = [&[1, 0, 0, 0, 1, 0, 0, 0][..], &[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11], &[0; 4]].concat();
    let window = [
        &[0; 8][..],
        &[5, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 6, 0, 1, 0, 0, 0],
        &[6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0],
        &[6, 0, 0, 0, 5, 0, 0, 0],
        &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0],
        &[0x00, 0x10, 0, 0, 0, 0, 0, 0],
        &[0xff; 8],
        &[1, 0, 1, 0],
        b"abcd",
        &[0x99, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 8, 4, 2],
        &[3, 0, 0, 0, 4, 0, 0, 0],
    ]
    .concat();
    assert_eq!(bytes, [header, record(1, &nodes), record(2, &window)].concat());
}

fn empty_window(lines: Vec<SharedLine>) -> Window {
    let (counted_accesses, logged_accesses) = (vec![0; 2], vec![0; 2]);
    Window {
        sequence: 0,
        lost_accesses: 0,
        counted_accesses,
        logged_accesses,
        ignored_lines: Default::default(),
        lines,
    }
}

#[test]
fn lines_without_accesses_and_as_many_cores_as_there_may_be_are_read_back() {
    let line = |address| SharedLine { address, physical: None, captures: vec![], accesses: vec![], moments: vec![] };
    let cores = (vec![7; MAX_CORES], vec![5; MAX_CORES]);
    let window =
        Window { counted_accesses: cores.0, logged_accesses: cores.1, ..empty_window(vec![line(64), line(128)]) };
    let events = read_all(&bytes_of(&[Written::Window(window.clone())])[..]).expect("a correct trace");
    assert!(matches!(&events[0], Event::Window(read) if *read == window), "{events:?}");
}

/// More nodes than a record takes.
#[test]
fn nodes_of_several_records_are_numbered_on() {
    let nodes: Vec<StackNode> =
        (0..70_000).map(|number| StackNode { parent: number / 2, site: u64::from(number) }).collect();
    let bytes = bytes_of(&[Written::Nodes(nodes[..3].to_vec()), Written::Nodes(nodes)]);
    let mut decoder = TraceDecoder::new(&bytes[..]).expect("a header");
    while decoder.next_event().expect("a correct trace").is_some() {}
    assert_eq!(decoder.stack(69_999 + 4).next(), Some(69_999), "the innermost call of the last node");
}

#[test]
fn room_is_what_a_record_takes_whatever_lies_before_it() {
    let most = |before: usize| {
        let mut buffer = vec![0; before];
        let summary = WindowSummary {
            sequence: 0,
            lost_accesses: 0,
            counted_accesses: &[],
            logged_accesses: &[],
            ignored_lines: &[0; RULE_COUNT],
        };
        let writer = WindowWriter::begin(&mut buffer, &summary);
        let most = (0..1_000_000).rev().find(|&count| writer.has_room(0, count)).expect("room for one");
        assert!(writer.has_room(10, most - 1) && !writer.has_room(ACCESS_BYTES, most));
        most
    };
    let all = (MAX_BODY_BYTES / ACCESS_BYTES - 4..MAX_BODY_BYTES / ACCESS_BYTES).contains(&most(0));
    assert!(all, "nearly the whole record is for accesses: {}", most(0));
    assert_eq!([most(1), most(10_000), most(1 << 20)], [most(0); 3]);
}
