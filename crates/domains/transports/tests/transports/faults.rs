//! What transports must give is left out once. Built with `RUSTFLAGS="--cfg fuzzing"`, or `--cfg shuttle`.

use sync::mutant::must_be_caught;

use crate::{file_system, rings, tcp};

#[test]
fn replies_find_no_place_in_rings_without_spare_lines() {
    must_be_caught("transports: a ring has only the lines that it is said to have", || rings::converse(20));
}

#[test]
fn a_message_overtakes_what_its_sender_knew_of() {
    must_be_caught(
        "transports: a message waits for none that was sent before",
        tcp::a_message_waits_for_those_that_its_sender_knew_of,
    );
}

#[test]
fn a_decision_that_does_not_arrive_is_reported() {
    for fault in [
        "domains: a decision is not written back",
        "domains: a decision is not drained",
        "domains: a line is read from an old copy",
    ] {
        must_be_caught(fault, || file_system::play(0..10, 5, file_system::WIDE));
    }
}
