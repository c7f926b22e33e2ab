//! What an instance takes of the system's memory when it is made: what it needs for its tables, and not the room that it may
//! come to need.
#![cfg(all(feature = "std", target_os = "linux", not(any(loom, shuttle, miri))))]

use scalefs::{FileSystem, OwnedConfig};

const MOST_BYTES: usize = 4 << 20;

/// Bytes of this process that lie in memory.
fn resident_bytes() -> usize {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap();
    told.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn an_instance_of_a_gibibyte_takes_little_when_it_is_made() {
    let before = resident_bytes();
    let config = OwnedConfig { page_count: 1 << 18, metadata_bytes: 64 << 20, core_count: 4, ..OwnedConfig::default() };
    let files = FileSystem::create(config).unwrap();
    let taken = resident_bytes() - before;
    println!("{taken} bytes");
    assert!(taken <= MOST_BYTES, "{taken} bytes are resident");
    drop(files.root().unwrap().create("f").unwrap());
}
