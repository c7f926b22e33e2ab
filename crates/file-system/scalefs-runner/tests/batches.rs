//! The program as a whole, outside of an emulator: markers are no-operations there, everything else is the same.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

use wire::batch::{Batch, PlacedCall, Shape, Step, Test, Window};
use wire::results::{self, WindowResult};
use wire::value::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_commutant-scalefs-runner");

fn start(arguments: &str) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Sends bytes, closes the input, and waits for the end.
fn run(arguments: &str, input: &[u8]) -> Output {
    let mut child = start(arguments);
    // The program may end before it has read everything.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the program ends")
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn shape(call: &'static str, parameters: &[&'static str]) -> Shape<'static> {
    Shape { call: call.into(), parameters: parameters.iter().map(|&name| name.into()).collect() }
}

const OPEN: usize = 0;
const LINK: usize = 1;
const STAT: usize = 2;
const UNLINK: usize = 3;

fn shapes() -> Vec<Shape<'static>> {
    vec![
        shape("open", &["name", "creat", "excl"]),
        shape("link", &["old", "new"]),
        shape("stat", &["name"]),
        shape("unlink", &["name"]),
        shape("chmod", &["name"]),
    ]
}

fn texts(names: &[&'static str]) -> Vec<Value<'static>> {
    names.iter().map(|&name| Value::Text(name.into())).collect()
}

fn create(name: &'static str) -> Vec<Value<'static>> {
    vec![Value::Text(name.into()), Value::Bool(true), Value::Bool(true)]
}

fn placed(core: u8, shape: usize, arguments: Vec<Value<'static>>) -> PlacedCall {
    PlacedCall { shape, process: core, thread: 0, core, arguments }
}

fn status(number: u64, links: i64) -> Value<'static> {
    Value::Struct(vec![
        ("ino".into(), Value::Opaque { sort: "Inum".into(), id: number }),
        ("pipe".into(), Value::Bool(false)),
        ("nlink".into(), Value::Int(links)),
        ("size".into(), Value::Null),
        ("mtime".into(), Value::Null),
        ("ctime".into(), Value::Null),
    ])
}

fn errno(number: u16) -> Value<'static> {
    Value::Errno(number)
}

/// `link(a, b)` in process 0 and `unlink(a)` in process 1, where a exists.
fn link_and_unlink() -> Test {
    let step =
        |shape, arguments, expected| Step { shape, process: 0, core: None, arguments, expected, also: Vec::new() };
    Test {
        calls: vec![placed(0, LINK, texts(&["a", "b"])), placed(1, UNLINK, texts(&["a"]))],
        setup: vec![step(OPEN, create("a"), Value::Int(0))],
        observe: vec![step(STAT, texts(&["a"]), Value::Null), step(STAT, texts(&["b"]), Value::Null)],
    }
}

fn ran<'a>(result: &'a WindowResult<'a>) -> (&'a [Value<'a>], &'a [Value<'a>]) {
    match result {
        WindowResult::Ran { calls, observation, .. } => (calls, observation),
        WindowResult::Refused(why) | WindowResult::Unsupported(why) => panic!("not run: {why}"),
    }
}

#[test]
fn windows_have_the_results_of_their_order_however_many_there_are() {
    const WINDOWS: usize = 3000;
    let windows = (0..WINDOWS).map(|number| {
        let order = if number % 2 == 0 { vec![0, 1] } else { vec![1, 0] };
        Window { test: 0, order }
    });
    let batch = Batch { shapes: shapes(), tests: vec![link_and_unlink()], windows: windows.collect() };
    let mut child = start("--cores 16 --workers 2 --seed 3");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = child.stdout.take().expect("a pipe");
    for _ in 0..2 {
        input.write_all(&frame(&batch.encode().unwrap())).unwrap();
        let mut length = [0; 4];
        output.read_exact(&mut length).unwrap();
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        output.read_exact(&mut bytes).unwrap();
        let results = results::decode(&bytes).unwrap();
        assert_eq!(results.len(), WINDOWS);
        for (number, result) in results.iter().enumerate() {
            let (calls, observation) = ran(result);
            assert_eq!(observation[0], errno(2), "a is gone");
            if number % 2 == 0 {
                assert_eq!(calls, [Value::Int(0), Value::Int(0)]);
                let Value::Struct(fields) = &observation[1] else { panic!("{:?}", observation[1]) };
                let Value::Opaque { id, .. } = fields[0].1 else { panic!("{fields:?}") };
                assert_eq!(observation[1], status(id, 1));
            } else {
                assert_eq!(calls, [errno(2), Value::Int(0)]);
                assert_eq!(observation[1], errno(2));
            }
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_cannot_be_run_is_refused_by_name_and_costs_its_window_only() {
    let alone = |shape, arguments| Test { calls: vec![placed(0, shape, arguments)], ..Test::default() };
    let tests = vec![
        alone(4, texts(&["a"])),
        alone(STAT, texts(&["a/b"])),
        alone(STAT, vec![Value::Int(3)]),
        Test { calls: vec![placed(3, STAT, texts(&["a"]))], ..Test::default() },
        alone(STAT, texts(&["a"])),
    ];
    let windows = (0..tests.len()).map(|test| Window { test, order: vec![0] }).collect();
    let batch = Batch { shapes: shapes(), tests, windows };
    let output = run("--cores 2 --workers 2 --seed 1", &frame(&batch.encode().unwrap()));
    assert!(output.status.success(), "{output:?}");
    let results = results::decode(&output.stdout[4..]).unwrap();
    for (result, part) in results.iter().zip(["unknown call chmod", "not a name", "expected a text", "process 3"]) {
        let WindowResult::Refused(why) = result else { panic!("{result:?}") };
        assert!(why.contains(part), "{why}");
    }
    assert_eq!(ran(&results[4]).0, [errno(2)]);
}

#[test]
fn damaged_input_is_one_line_and_the_end() {
    let batch = Batch { shapes: shapes(), tests: vec![link_and_unlink()], windows: vec![] };
    let whole = frame(&batch.encode().unwrap());
    for input in [&whole[..whole.len() - 1], &whole[..2], &frame(b"no batch"), &[0xff; 64]] {
        let output = run("--cores 2 --workers 2 --seed 1", input);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{message}");
        assert!(message.starts_with("commutant-scalefs-runner: ") && message.lines().count() == 1, "{message}");
    }
    assert!(run("--cores 2 --workers 2 --seed 1", &[]).status.success());
    assert_eq!(run("--cores 0 --workers 2 --seed 1", &[]).status.code(), Some(2));
}

#[test]
fn calls_and_planted_data_have_names() {
    let output = Command::new(PROGRAM).arg("--symbols").output().expect("the program starts");
    let listing = String::from_utf8(output.stdout).expect("text");
    for name in [
        "commutant_scalefs_runner::calls::link",
        "commutant_scalefs_runner::calls::stat",
        "program_runner::planted::PLANTED_SHARED_COUNT",
    ] {
        assert!(listing.lines().any(|line| line.ends_with(&format!(" {name}"))), "{name}");
    }
    for line in listing.lines() {
        let mut parts = line.splitn(3, ' ');
        let mut address = || u64::from_str_radix(parts.next().expect("a field"), 16).expect("an address");
        assert!(address() < address(), "{line}");
    }
}

#[test]
fn the_arena_is_divided_without_gaps() {
    let arguments = "--cores 16 --workers 2 --seed 1 --regions".split(' ');
    let output = Command::new(PROGRAM).args(arguments).output().expect("the program starts");
    let listing = String::from_utf8(output.stdout).expect("text");
    let address = |text: &str| u64::from_str_radix(text, 16).expect("an address");
    let mut next = 0x6000_0000_0000;
    for line in listing.lines() {
        let parts: Vec<&str> = line.splitn(3, ' ').collect();
        assert_eq!(address(parts[0]), next, "{line}");
        next = address(parts[1]);
        assert!(next > address(parts[0]), "{line}");
    }
    assert_eq!((listing.lines().count(), next), (5, 0x6000_0c00_0000));
}
