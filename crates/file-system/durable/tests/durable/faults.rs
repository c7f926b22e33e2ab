//! Faults that are planted: each must be found, by what looks for it.
//!
//! `RUSTFLAGS="--cfg fuzzing" cargo test -p durable --release --test durable faults`

use sync::mutant::must_be_caught;

use crate::damage::{flip_bits, put_an_older_copy_back};
use crate::lasting::{all_again, with_later_ones};
use crate::power_cuts::{cut_often, rest_on_what_lasts};

/// What cuts find, of the instances of some seeds.
fn cuts() -> u64 {
    cut_often(1..9, 60);
    480
}

#[test]
fn of_the_disk() {
    must_be_caught("durable: answers do not wait for the disk", cuts);
    must_be_caught("durable: pages are not synced before the records that lead to them", cuts);
    must_be_caught("durable: pages are used again before the records that led to them are gone", cuts);
    must_be_caught("durable: a commit is marked before it lasts", cuts);
    must_be_caught("transact: an error does not wait for what it rests on", rest_on_what_lasts);
}

#[test]
fn of_what_is_kept() {
    must_be_caught("durable: a rename is kept as its new name alone", || all_again("renamed"));
    must_be_caught("durable: what has lost its last name stays", || all_again("nameless"));
    must_be_caught("durable: what was cut away comes back", || all_again("cut"));
    must_be_caught("durable: who does not wait is not kept", || with_later_ones("kept"));
}

#[test]
fn of_what_is_looked_at() {
    must_be_caught("durable: pages are not compared with their checksums", || flip_bits(400));
    must_be_caught("durable: checksums of a closed file are not looked at", || flip_bits(400));
    must_be_caught("durable: commits that are gone are not noticed", put_an_older_copy_back);
}
