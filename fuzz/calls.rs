//! The calls that bytes stand for, made on ScaleFS and on the reference `plain`: every outcome, the trees in the end and
//! what is left when all is removed must be the same. libFuzzer keeps the bytes that reach new code of the two.
//!
//! The comparison is that of the test `tmpfs` of crate `scalefs`. With `COMMUTANT_PLANTED_FAULT` a fault is planted
//! that must then be found.
#![no_main]

#[path = "../crates/file-system/scalefs/tests/tmpfs/systems/mod.rs"]
mod systems;

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use systems::comparison::{calls_of_bytes, difference_from_plain, report};
use systems::ours::Memory;

/// Of longer inputs only this many bytes count. A call that takes up to 18 pages is at least five bytes, so that no
/// sequence takes more pages than the instance of ScaleFS has: it would be refused what `plain` has room for.
const LIMIT_BYTES: usize = 1024;

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::new(Memory::new());
}

fuzz_target!(
    init: if let Ok(fault) = std::env::var("COMMUTANT_PLANTED_FAULT") {
        sync::mutant::plant(fault.leak());
    },
    |bytes: &[u8]| {
        let calls = calls_of_bytes(&bytes[..bytes.len().min(LIMIT_BYTES)]);
        MEMORY.with_borrow_mut(|memory| {
            if difference_from_plain(memory, &calls).is_some() {
                panic!("{}", report(calls, |calls| difference_from_plain(memory, calls)));
            }
        });
    }
);
