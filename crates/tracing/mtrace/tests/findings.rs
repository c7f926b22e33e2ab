//! From bytes of a trace to numbered findings, with a program's symbols as names.

use mtrace::conflict::Sharing;
use mtrace::encode;
use mtrace::findings::{AnalysisError, BatchEnd, Finding, LineExample, NamedWindow, TraceAnalyzer};
use mtrace::names::{NameSource, Names, Symbol};
use mtrace::pictures::Touched;
use mtrace::record::{Access, Header, Mode, Moments, SharedLine, StackNode, Window};

fn names() -> Names {
    let symbol = |start, end, name: &str| Symbol { start, end, name: name.to_owned() };
    Names::new(NameSource::Program(vec![
        symbol(0x9000, 0x9040, "counters"),
        symbol(0x1000, 0x1100, "increment"),
        symbol(0x1100, 0x1200, "main"),
    ]))
}

fn access(core: u8, instruction: u64, stack: u32, offset: u8, write: bool) -> Access {
    Access { instruction, stack, core, offset, size_bytes: 8, kind: write.into() }
}

fn window(sequence: u64, lines: Vec<SharedLine>) -> Window {
    Window {
        sequence,
        lost_accesses: 0,
        counted_accesses: vec![5, 6],
        logged_accesses: vec![64, 64],
        ignored_lines: [0, 1, 0, 0, 0, 0],
        lines,
    }
}

fn line(address: u64, accesses: Vec<Access>) -> SharedLine {
    let moments = (0..accesses.len() as u32).map(|at| Moments { first: at, last: at }).collect();
    SharedLine { address, physical: None, captures: Vec::new(), accesses, moments }
}

fn header() -> Vec<u8> {
    encode::header(&Header { mode: Mode::User, capture_bytes: 0 }).to_vec()
}

type Batches = Vec<Vec<NamedWindow>>;

/// All batches of a trace, and the findings by number.
fn analyze(bytes: &[u8]) -> Result<(Batches, Vec<(Finding, LineExample)>), AnalysisError> {
    let mut analyzer = TraceAnalyzer::new(bytes, names())?;
    let mut batches = Vec::new();
    loop {
        let mut batch = Vec::new();
        match analyzer.read_batch(&mut batch)? {
            Some(BatchEnd::Flush) => batches.push(batch),
            Some(BatchEnd::End) if !batch.is_empty() => batches.push(batch),
            Some(BatchEnd::End) => {}
            None => break,
        }
    }
    let store = analyzer.findings();
    let count = store.len();
    assert_eq!(store.is_empty(), count == 0);
    let findings = (0..store.len() as u32).map(|number| store.get(number).expect("a known number").clone());
    Ok((batches, findings.collect()))
}

#[test]
fn repeated_findings_have_one_number_even_over_a_reset_of_stacks() {
    let mut bytes = header();
    let node = StackNode { parent: 0, site: 0x1104 };
    let lines = || {
        let both = vec![access(0, 0x1010, 1, 8, true), access(1, 0x1010, 1, 8, true)];
        let apart = vec![access(0, 0x1010, 1, 0, true), access(1, 0x1020, 0, 32, false)];
        vec![line(0x9000, both), line(0xa000, apart)]
    };
    for sequence in 0..2 {
        if sequence == 1 {
            encode::stack_reset(&mut bytes);
        }
        encode::stack_nodes(&mut bytes, 1, &[node]);
        encode::window(&mut bytes, &window(sequence, lines()));
        encode::flush(&mut bytes, sequence + 1);
    }
    encode::window(&mut bytes, &window(2, Vec::new()));
    encode::end(&mut bytes, 3);

    let (batches, findings) = analyze(&bytes).expect("a correct trace");
    let numbers: Vec<Vec<&[(u32, u32)]>> =
        batches.iter().map(|batch| batch.iter().map(|window| &window.findings[..]).collect()).collect();
    assert_eq!(numbers, [vec![&[(0, 0), (1, 1)][..]], vec![&[(0, 0), (1, 1)]], vec![&[]]]);
    assert_eq!(batches[0][0].counted_accesses, [5, 6]);
    assert_eq!(batches[0][0].ignored_lines, [0, 1, 0, 0, 0, 0]);

    let (shared, example) = &findings[0];
    assert_eq!((shared.object.as_str(), shared.field.as_str(), example.address), ("counters", "+0x8", 0x9000));
    assert_eq!(example.fields, [((0, 64), "counters".to_owned())]);
    assert_eq!(example.touched[1], Touched { core: 1, read: vec![], written: vec![(8, 8)] });
    assert_eq!(shared.sharing, Sharing::True);
    assert_eq!(shared.first.function, "increment");
    assert_eq!(shared.first.stack, ["increment+0x10", "main+0x4"]);
    let (apart, _) = &findings[1];
    assert_eq!((apart.object.as_str(), apart.sharing), ("memory without symbol", Sharing::False));
    assert_eq!(apart.second.stack, ["increment+0x20"]);
    assert_eq!((apart.first.core, apart.second.core), (0, 1));
}

#[test]
fn a_trace_that_ends_too_early_keeps_the_windows_before() {
    let mut bytes = header();
    encode::window(&mut bytes, &window(0, Vec::new()));
    let mut analyzer = TraceAnalyzer::new(&bytes[..], names()).expect("a header");
    let mut windows = Vec::new();
    let error = analyzer.read_batch(&mut windows).expect_err("no end");
    assert!(error.to_string().starts_with(&format!("trace cut off at byte {}", bytes.len())), "{error}");
    assert_eq!(windows.len(), 1);
}

#[test]
fn what_the_tracer_says_is_an_error() {
    let mut bytes = header();
    encode::message(&mut bytes, "no more room");
    let error = analyze(&bytes).expect_err("a message");
    assert_eq!(error.to_string(), "the tracer says: no more room");
}
