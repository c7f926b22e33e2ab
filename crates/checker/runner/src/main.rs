//! The runner's program. As init of a guest it runs batches; elsewhere `--calls` lists the calls that it knows.

use std::process::ExitCode;

use runner::linux::{calls, console, guest};

fn main() -> ExitCode {
    if std::process::id() == 1 {
        console::complain(&guest::run());
        return ExitCode::FAILURE;
    }
    if std::env::args().skip(1).eq(["--calls".to_owned()]) {
        for call in calls::all() {
            println!("{}", call.signature);
        }
        return ExitCode::SUCCESS;
    }
    eprintln!("commutant-runner: expected to run as init of a virtual machine, or the argument --calls");
    ExitCode::from(2)
}
