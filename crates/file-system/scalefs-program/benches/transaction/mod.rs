//! What calls take in `scalefs run --transaction`, from the 10th of one transaction to the 100,000th, as a part of the same calls without:
//! this program starts itself in the directory of a mount, with and without, by turns, and the child says what its calls took.

use std::fs::{self, File};
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::process::Command;
use std::time::Instant;

use crate::support::Mounted;
use crate::table;

/// Which call a child is to make.
const CALL: &str = "SCALEFS_BENCH_CALL";
/// How many of them.
const COUNT: &str = "SCALEFS_BENCH_COUNT";
const ROUNDS: usize = 9;
const POSITIONS: [u32; 3] = [10, 1_000, 100_000];
/// As far as a small run goes.
const FEW: u32 = 1_000;

/// A call by its number.
type Make = fn(u32);

/// Each is about a name of its own, so that the transaction has to keep more with each.
const CALLS: [(&str, Make); 2] = [
    ("create and close", |index| drop(File::create_new(format!("new-{index}")).expect("there is room"))),
    ("stat of what is not there", |index| drop(black_box(fs::metadata(format!("none-{index}"))))),
];

/// The calls around a position whose mean is taken: a tenth of all before it.
fn around(position: u32) -> RangeInclusive<u32> {
    position - position / 10..=position
}

/// In a child: makes the calls in the present directory, and prints what those around each position took; `false` in the parent.
pub fn is_child() -> bool {
    let Ok(title) = std::env::var(CALL) else { return false };
    let (_, make) = CALLS.iter().find(|(own, _)| *own == title).expect("one of these");
    let count: u32 = std::env::var(COUNT).expect("both are set").parse().expect("a number");
    let mut begun = Instant::now();
    for index in 1..=count {
        if POSITIONS.iter().any(|position| *around(*position).start() == index) {
            begun = Instant::now();
        }
        make(index);
        if POSITIONS.contains(&index) {
            let range = around(index);
            println!("{}", begun.elapsed().as_nanos() / u128::from(range.end() - range.start() + 1));
        }
    }
    true
}

/// Nanoseconds of a call around each position, made by a child.
fn taken(title: &str, count: u32, mounted: &Mounted, is_in_transaction: bool) -> Vec<f64> {
    let own = std::env::current_exe().expect("it has a path");
    let mut command = if is_in_transaction {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scalefs"));
        command.args(["run", "--transaction", "--at", mounted.place(), "--"]).arg(own);
        command
    } else {
        Command::new(own)
    };
    command.current_dir(&mounted.point).env(CALL, title).env(COUNT, count.to_string());
    if is_in_transaction {
        command.current_dir("/");
    }
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().expect("a number")).collect()
}

/// Prints a row for each call and position.
pub fn compare() {
    let count = table::size(POSITIONS[2], FEW);
    for (call, _) in CALLS {
        let title = format!("{call}, in a transaction");
        if !table::is_wanted(&title) {
            continue;
        }
        let measured = table::rounds(&title, table::size(ROUNDS, 1), |_| {
            // New ones, so that all names are.
            [true, false].map(|is_in_transaction| {
                let mounted = Mounted::new(&["--no-cache", "--size", "1G"]);
                taken(call, count, &mounted, is_in_transaction)
            })
        });
        for (index, position) in POSITIONS.into_iter().enumerate().filter(|(_, position)| *position <= count) {
            let rounds: Vec<_> = measured.iter().map(|[within, alone]| [within[index], alone[index]]).collect();
            table::row(&format!("{call}, call {position} of a transaction, against the same without"), &rounds);
        }
    }
}
