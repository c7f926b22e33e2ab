//! The tracer on programs: `qemu-x86_64` runs `examples/planted.rs`, whose sharing is known.

mod emulator;

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mtrace::decode::TraceDecoder;
use mtrace::record::{Event, SharedLine, Window};

/// The folder that cargo builds into: that of the test's own executable, without `deps`.
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.ancestors().nth(2).expect("an executable in a folder's `deps`").to_owned()
}

fn plugin() -> PathBuf {
    build_folder().join("deps/libmtrace_plugin.so")
}

/// A file that is removed in the end.
struct Trace(PathBuf);

impl Trace {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("commutant-{}-{name}.trace", std::process::id())))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run(arguments: &str, program: &[&str]) -> Output {
    let plugin = format!("{}{arguments}", plugin().display());
    Command::new("timeout")
        .arg("60")
        .args(emulator::emulator())
        .args(["-plugin", &plugin])
        .arg(build_folder().join("examples/planted"))
        .args(program)
        .output()
        .expect("`timeout` starts")
}

/// What one run showed.
struct Run {
    windows: Vec<Window>,
    /// The stack of each access, call sites from the innermost outward, by window, line and access.
    stacks: Vec<Vec<Vec<Vec<u64>>>>,
    /// Addresses by name.
    names: HashMap<String, u64>,
}

impl Run {
    /// The lines of each window that hold the planted data.
    fn planted(&self) -> Vec<Vec<&SharedLine>> {
        let shared = self.names["shared"];
        let is_planted = |line: &&SharedLine| line.address == shared || line.address + 64 == shared;
        self.windows.iter().map(|window| window.lines.iter().filter(is_planted).collect()).collect()
    }

    /// The name of the function that an address lies in: the nearest one below it.
    fn function(&self, address: u64) -> &str {
        let below = self.names.iter().filter(|(name, start)| *name != "shared" && **start <= address);
        below.max_by_key(|(_, start)| **start).map_or("?", |(name, _)| name)
    }
}

fn trace(name: &str, extra: &str, scenario: &str, workers: usize) -> Run {
    let trace = Trace::new(name);
    let windows = 5;
    let output = run(
        &format!(",out={},mode=user{extra}", trace.0.display()),
        &[scenario, &workers.to_string(), &windows.to_string()],
    );
    let error_text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error_text}");
    let names = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| line.split_once(' ').expect("NAME ADDRESS"))
        .map(|(name, address)| (name.to_owned(), u64::from_str_radix(address, 16).expect("an address")))
        .collect();
    let run = read(&trace.0, names);
    assert_eq!(run.windows.len(), windows);
    run
}

fn read(path: &Path, names: HashMap<String, u64>) -> Run {
    let mut decoder = TraceDecoder::new(BufReader::new(File::open(path).expect("a trace"))).expect("a header");
    let mut run = Run { windows: Vec::new(), stacks: Vec::new(), names };
    let mut flushed = None;
    while let Some(event) = decoder.next_event().expect("a correct trace") {
        match event {
            Event::Window(window) => {
                assert_eq!(window.lost_accesses, 0);
                let stack_of = |access: &mtrace::record::Access| decoder.stack(access.stack).collect();
                let of_line = |line: &SharedLine| line.accesses.iter().map(stack_of).collect();
                run.stacks.push(window.lines.iter().map(of_line).collect());
                run.windows.push(window);
            }
            Event::Flush(count) => flushed = Some(count),
            Event::End(count) => assert_eq!(flushed, Some(count)),
            other => panic!("{other:?}"),
        }
    }
    run
}

#[test]
fn true_sharing_is_found_with_bytes_cores_and_stacks() {
    let run = trace("true", "", "true", 2);
    for (index, lines) in run.planted().into_iter().enumerate() {
        let [line] = lines[..] else { panic!("expected one planted line, got {lines:x?}") };
        assert_eq!(line.address, run.names["shared"]);
        let cores: std::collections::BTreeSet<u8> = line.accesses.iter().map(|access| access.core).collect();
        assert_eq!(cores.len(), 2);
        for access in &line.accesses {
            assert_eq!((access.offset, access.size_bytes), (16, 8));
            assert_eq!(run.function(access.instruction), "add_to");
        }
        assert!(line.accesses.iter().any(|access| access.kind.takes_line()));
        let position = run.windows[index].lines.iter().position(|other| other == line).expect("a line of the window");
        for stack in &run.stacks[index][position] {
            let functions: Vec<&str> = stack.iter().map(|&site| run.function(site)).collect();
            assert_eq!(functions[..2], ["middle", "outer"], "{functions:?}");
        }
    }
}

#[test]
fn false_sharing_is_found_with_disjoint_bytes() {
    let run = trace("false", "", "false", 2);
    for lines in run.planted() {
        let [line] = lines[..] else { panic!("expected one planted line, got {lines:x?}") };
        let mut by_core: HashMap<u8, u64> = HashMap::new();
        for access in &line.accesses {
            *by_core.entry(access.core).or_default() |= access.byte_mask();
        }
        let mut masks: Vec<u64> = by_core.into_values().collect();
        masks.sort_unstable();
        assert_eq!(masks, [0xff, 0xff00]);
    }
}

#[test]
fn separate_lines_and_common_reads_are_no_sharing() {
    for scenario in ["none", "read"] {
        let run = trace(scenario, "", scenario, 2);
        for (window, lines) in run.windows.iter().zip(run.planted()) {
            assert!(lines.is_empty(), "{scenario}: {lines:x?}");
            assert!(window.counted_accesses.iter().filter(|&&count| count > 0).count() >= 2, "{window:?}");
        }
    }
}

#[test]
fn one_writer_and_readers_are_sharing_for_any_number_of_threads() {
    let run = trace("read-write", "", "read-write", 7);
    for lines in run.planted() {
        let [line] = lines[..] else { panic!("expected one planted line, got {lines:x?}") };
        let mut writers: Vec<u8> =
            line.accesses.iter().filter(|access| access.kind.takes_line()).map(|access| access.core).collect();
        writers.dedup();
        assert_eq!(writers.len(), 1);
        let readers: std::collections::BTreeSet<u8> =
            line.accesses.iter().filter(|access| !access.kind.takes_line()).map(|access| access.core).collect();
        assert!(readers.len() >= 6, "{readers:?}");
    }
}

#[test]
fn an_access_across_a_border_touches_both_lines() {
    let run = trace("straddle", "", "straddle", 2);
    for lines in run.planted() {
        let [line] = lines[..] else { panic!("expected one planted line, got {lines:x?}") };
        assert_eq!(line.address, run.names["shared"]);
        assert!(
            line.accesses
                .iter()
                .any(|access| !access.kind.takes_line() && access.offset == 0 && access.size_bytes == 4)
        );
    }
}

#[test]
fn without_recording_windows_are_counted_only() {
    let run = trace("record-off", ",record=off", "true", 2);
    assert!(run.windows.iter().all(|window| window.lines.is_empty() && window.counted_accesses.is_empty()));
}

#[test]
fn data_of_the_runner_is_ignored_unless_the_rule_is_off() {
    let found = trace("layout", "", "true", 2);
    let layout = Trace::new("layout-file");
    let start = found.names["shared"];
    let text = format!("commutant-layout 1\nrunner_data {start:x} {:x} SHARED\n", start + 64);
    std::fs::write(&layout.0, text).expect("a writable temporary folder");
    // A program without address randomisation lies at the same place in every run of the emulator.
    let ignored = trace("rule-on", &format!(",layout={}", layout.0.display()), "true", 2);
    assert_eq!(ignored.names, found.names);
    let counted = trace("rule-off", &format!(",layout={},ignore_runner=off", layout.0.display()), "true", 2);
    for (ignored, counted) in ignored.windows.iter().zip(&counted.windows) {
        assert!(ignored.ignored_by(mtrace::rules::Rule::Runner) >= 1);
        assert_eq!(counted.ignored_by(mtrace::rules::Rule::Runner), 0);
    }
    assert!(ignored.planted().iter().all(Vec::is_empty));
    assert!(counted.planted().iter().all(|lines| lines.len() == 1));
}

#[test]
fn mistakes_refuse_the_installation_with_one_line() {
    let layout = Trace::new("damaged-layout");
    std::fs::write(&layout.0, "commutant-layout 9\n").expect("a writable temporary folder");
    let damaged = format!(",out=/dev/null,layout={}", layout.0.display());
    for (arguments, part) in [
        ("", "expected out=PATH, got no such argument"),
        (",out=/nonexistent/trace", "cannot open the trace '/nonexistent/trace' for writing"),
        (",out=/dev/null,mode=system", "expected a qemu for mode system, got one for mode user"),
        (",out=/dev/null,speed=high", "got 'speed'"),
        (",out=/dev/null,layout=/nonexistent/layout", "expected a layout file at '/nonexistent/layout'"),
        (&damaged, "line 1: expected 'commutant-layout 1', got 'commutant-layout 9'"),
    ] {
        let output = run(arguments, &["true", "1", "1"]);
        assert!(!output.status.success(), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}: the program must not start");
        let text = String::from_utf8_lossy(&output.stderr);
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with("commutant tracer: ")).collect();
        assert_eq!(own.len(), 1, "{text}");
        assert!(own[0].contains(part), "{}", own[0]);
    }
}
