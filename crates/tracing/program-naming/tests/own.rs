//! This test's own executable is the file that is named.

use std::collections::HashMap;
use std::io::Write;

use program_naming::{ProgramFile, ProgramNamingError, RelocatableFile};
use proptest::prelude::*;

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn a_function_to_be_found(value: u64) -> u64 {
    std::hint::black_box(value) + 1
}

#[unsafe(no_mangle)]
static A_VARIABLE_TO_BE_FOUND: [u64; 4] = [1, 2, 3, 4];

/// Where this executable is loaded: from its first mapping.
fn bias(file: &ProgramFile) -> u64 {
    let path = std::env::current_exe().expect("a path").display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("mappings");
    let line = maps.lines().find(|line| line.ends_with(&path)).expect("a mapping of this executable");
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
    let start = hexadecimal(line.split('-').next().expect("a start"));
    let offset = hexadecimal(line.split_ascii_whitespace().nth(2).expect("an offset"));
    start - file.address_at(offset).expect("a mapped offset")
}

#[test]
fn functions_lines_and_variables_are_found() {
    let file = ProgramFile::open(&std::env::current_exe().expect("a path"), true).expect("this executable is readable");
    let bias = bias(&file);
    assert_eq!(a_function_to_be_found(1), 2);
    let names = file.code(a_function_to_be_found as *const () as u64 - bias);
    assert_eq!(names.last().map(|name| name.function.as_str()), Some("a_function_to_be_found"), "{names:?}");
    let (source, line) = names.last().and_then(|name| name.line.clone()).expect("debug information");
    assert!(source.ends_with("own.rs") && line > 1, "{source}:{line}");
    let third = std::ptr::from_ref(std::hint::black_box(&A_VARIABLE_TO_BE_FOUND[2])) as u64 - bias;
    assert_eq!(file.variable(third), Some(("A_VARIABLE_TO_BE_FOUND", 16)));
    assert_eq!(file.variable(u64::MAX), None);
    assert!(file.code(u64::MAX).is_empty());
}

#[test]
fn what_is_no_program_is_refused_in_one_line() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"#!/bin/sh\n").expect("written");
    let Err(ProgramNamingError::NotElf { .. }) = ProgramFile::open(file.path(), true) else {
        panic!("a script was taken")
    };
    let missing = file.path().with_extension("missing");
    let Err(error) = ProgramFile::open(&missing, true) else { panic!("a missing file was taken") };
    assert!(error.to_string().starts_with("cannot read ") && !error.to_string().contains('\n'), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Files come from anyone: a damaged one is named as far as it can be, or refused.
    #[test]
    fn a_damaged_file_is_survived(place in 0_usize..4096, byte: u8, length in 0_usize..20_000) {
        let mut bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        bytes.truncate(20_000.max(bytes.len() / 50) + length);
        let place = place % bytes.len();
        bytes[place] = byte;
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&bytes).expect("written");
        if let Ok(program) = ProgramFile::open(file.path(), true) {
            let _ = (program.code(0x1000), program.variable(0x1000), program.address_at(0x1000));
        }
        let loaded = HashMap::from([("a_function_to_be_found".to_owned(), 0x1000)]);
        if let Ok(module) = RelocatableFile::open(file.path(), &loaded) {
            let _ = module.code(0x1000);
        }
    }
}
