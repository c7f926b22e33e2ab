//! The tracer on domains: `qemu-x86_64` runs `examples/two_domains.rs`, whose threads share a pool and must share nothing else.

mod emulator;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mtrace::decode::TraceDecoder;
use mtrace::record::{Event, Window};

/// What one run showed: its windows, and addresses by name.
fn trace(arguments: &[&str]) -> (Vec<Window>, HashMap<String, u64>) {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.ancestors().nth(2).expect("an executable in a folder's `deps`");
    let name = format!("commutant-domains-{}-{}.trace", std::process::id(), arguments.len());
    let trace = std::env::temp_dir().join(name);
    let library = folder.join("deps/libmtrace_plugin.so");
    // Two calls run at once, while the tracer takes the last that began for the test's: what other threads do counts as well.
    let plugin = format!("{},out={},mode=user,ignore_other_task=off", library.display(), trace.display());
    let ran = Command::new("timeout")
        .arg("900")
        .args(emulator::emulator())
        .args(["-plugin", &plugin])
        .arg(folder.join("examples/two_domains"))
        .args(arguments)
        .output()
        .expect("`timeout` starts");
    let windows = read(&trace);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let names = String::from_utf8(ran.stdout).expect("text");
    let names = names.lines().map(|line| line.split_once(' ').expect("NAME ADDRESS"));
    let names = names.map(|(name, address)| (name.to_owned(), u64::from_str_radix(address, 16).expect("a number")));
    (windows, names.collect())
}

fn read(trace: &PathBuf) -> Vec<Window> {
    let file = File::open(trace).expect("a trace");
    std::fs::remove_file(trace).expect("the trace is ours");
    let mut decoder = TraceDecoder::new(BufReader::new(file)).expect("a header");
    let mut windows = Vec::new();
    while let Some(event) = decoder.next_event().expect("a correct trace") {
        if let Event::Window(window) = event {
            windows.push(window);
        }
    }
    windows
}

/// Lines that both domains have touched, one of them to write, but for the stage; by window.
fn shared(windows: &[Window], names: &HashMap<String, u64>) -> Vec<BTreeSet<u64>> {
    assert_eq!(windows.len() as u64, names["windows"]);
    let of_window = |window: &Window| {
        let (number, counts) = (window.sequence, &window.counted_accesses);
        assert_eq!(window.lost_accesses, 0, "window {number}: {counts:?}");
        assert!(counts.len() == 3 && counts[1..].iter().all(|&count| count > 100), "both are traced: {counts:?}");
        let lines: BTreeSet<_> = window.lines.iter().map(|line| line.address).collect();
        assert!(lines.contains(&names["stage"]), "what both touch is seen in window {number}");
        lines.into_iter().filter(|address| *address != names["stage"]).collect()
    };
    windows.iter().map(of_window).collect()
}

/// It runs here as on any machine: the marks are instructions that do nothing.
#[test]
fn the_pool_has_no_name_once_both_have_joined() {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.ancestors().nth(2).expect("an executable in a folder's `deps`");
    let mut domains =
        Command::new(folder.join("examples/two_domains")).stdout(Stdio::piped()).spawn().expect("the example starts");
    let mut lines = BufReader::new(domains.stdout.take().expect("a pipe")).lines();
    let have_joined = lines.any(|line| line.expect("text") == "joined 2");
    let has_name = Path::new("/dev/shm").join(format!("two-domains-{}", domains.id())).exists();
    domains.kill().expect("it runs, or has just ended");
    domains.wait().expect("it is our child");
    assert!(have_joined && !has_name, "joined: {have_joined}, a name: {has_name}");
}

#[test]
fn domains_share_no_line_outside_of_the_pool() {
    let (windows, names) = trace(&[]);
    let found = shared(&windows, &names);
    assert!(found.iter().all(BTreeSet::is_empty), "{found:x?}");
}

#[test]
fn a_line_that_leaks_out_of_the_pool_is_found_in_every_window() {
    let (windows, names) = trace(&["leak"]);
    let expected = vec![BTreeSet::from([names["leaked"]]); windows.len()];
    assert_eq!(shared(&windows, &names), expected);
}
