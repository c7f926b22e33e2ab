//! Faults that are planted in transactions of programs, each of which a case must show:
//! `cargo test -p scalefs-program --features planted-faults --test transactions planted`.

use std::fs;

use crate::support::{Mounted, can_mount};
use crate::{Halfway, REFUSED, in_transaction, outcome};

/// What a case shows that went wrong; nothing if all is right.
type Case = fn(&Mounted) -> Option<&'static str>;

fn conflict(mounted: &Mounted) -> Option<&'static str> {
    fs::write(mounted.point.join("counter"), "1\n").expect("there is room");
    let halfway = Halfway::new(mounted, &[], "n=$(cat counter); echo $((n + 1)) > counter", "");
    fs::write(mounted.point.join("counter"), "7\n").expect("there is room");
    (halfway.go_on().0 != REFUSED).then_some("a count is lost")
}

fn isolation(mounted: &Mounted) -> Option<&'static str> {
    let halfway = Halfway::new(mounted, &[], "echo > new", "");
    let is_seen = mounted.point.join("new").exists();
    halfway.go_on();
    is_seen.then_some("others see what is not committed")
}

fn trace(mounted: &Mounted) -> Option<&'static str> {
    let (code, _) = outcome(in_transaction(mounted, &[], "echo > new; false"));
    (code != 1 || mounted.point.join("new").exists()).then_some("what has failed has left something")
}

const FAULTS: [(&str, Case); 3] = [
    ("transaction: what it has seen is not asked again", conflict),
    ("transaction: calls happen at once", isolation),
    ("transaction: what has failed happens", trace),
];

#[test]
fn each_planted_fault_is_found() {
    if !can_mount() {
        return;
    }
    for (fault, case) in FAULTS {
        let without = case(&Mounted::with_environment(&["--no-cache"], &[]));
        assert_eq!(without, None, "{fault}");
        let found = case(&Mounted::with_environment(&["--no-cache"], &[("COMMUTANT_PLANTED_FAULT", fault)]));
        assert!(found.is_some(), "missed: {fault}");
        println!("found: {fault}: {}", found.unwrap_or_default());
    }
}
