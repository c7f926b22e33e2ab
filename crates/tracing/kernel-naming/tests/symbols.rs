//! The kallsyms reader: lookups, aliases, modules, and damaged input.

use kernel_naming::symbols::{SymbolKind, without_compiler_suffix, without_number};
use kernel_naming::{KernelSymbols, SymbolError};
use proptest::prelude::*;

const CODE: u64 = 0xffff_ffff_8100_0000;

const TABLE: &str = "\
0000000000000000 A fixed_percpu_data
0000000000000000 A __per_cpu_start
000000000001fb80 A current_task
0000000000035000 A __per_cpu_end
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000000 T _text
ffffffff81000100 t __pfx_helper
ffffffff81000110 t helper.isra.0
ffffffff81000200 t twice
ffffffff81000300 T __x64_sys_open
ffffffff81000300 t __do_sys_open
ffffffff81000400 T _etext
ffffffff82000000 D __start_rodata
ffffffff82000000 R linux_banner
ffffffff82a00000 d twice
ffffffff82a00040 d __key.12
ffffffff82a00080 D init_task
ffffffffc0000000 t ext4_open\t[ext4]
ffffffffc0000100 t ext4_release\t[ext4]
ffffffffc0010000 d ext4_data\t[ext4]
";

fn table() -> KernelSymbols {
    KernelSymbols::parse(TABLE.as_bytes()).expect("the table is whole")
}

/// `__nosave_begin` of a kernel without hibernation.
#[test]
fn takes_symbols_whose_section_nm_knows_no_letter_for() {
    let symbols = b"ffffffff81000000 T vfs_open\nffffffff82c00000 ? marked\nffffffff82c00040 d init_task\n";
    let symbols = KernelSymbols::parse(symbols).expect("a table");
    assert_eq!(symbols.data_at(0xffff_ffff_82c0_0008).map(|symbol| symbol.name), Some("marked"));
    assert!(KernelSymbols::parse(b"ffffffff82c00000 ! marked\n").is_err());
}

#[test]
fn finds_functions() {
    let symbols = table();
    let at = |address: u64| symbols.function_at(address).map(|symbol| (symbol.name, address - symbol.address));
    assert_eq!(at(0xffff_ffff_8100_0000), Some(("startup_64", 0)));
    assert_eq!(at(0xffff_ffff_8100_00ff), Some(("startup_64", 0xff)));
    assert_eq!(at(0xffff_ffff_8100_0111), Some(("helper.isra.0", 1)));
    assert_eq!(at(0xffff_ffff_8100_0250), Some(("twice", 0x50)));
    assert_eq!(at(0xffff_ffff_8100_0300), Some(("__x64_sys_open", 0)), "the global name before the local one");
    assert_eq!(at(0xffff_ffff_8100_0104), None, "padding before a function has only a mark");
    assert_eq!(at(0xffff_ffff_8100_0400), None, "behind the end of the code");
    assert_eq!(at(0xffff_ffff_80ff_ffff), None);
    assert_eq!(at(0), None);
}

#[test]
fn finds_functions_of_modules() {
    let symbols = table();
    let symbol = symbols.function_at(0xffff_ffff_c000_0010).expect("in ext4_open");
    assert_eq!((symbol.name, symbol.module, symbol.kind), ("ext4_open", Some("ext4"), SymbolKind::Function));
    assert_eq!(symbols.data_at(0xffff_ffff_c001_0004).and_then(|symbol| symbol.module), Some("ext4"));
}

#[test]
fn finds_variables() {
    let symbols = table();
    let at = |address: u64| symbols.data_at(address).map(|symbol| (symbol.name, address - symbol.address));
    assert_eq!(at(0xffff_ffff_8200_0010), Some(("linux_banner", 0x10)), "not the section's mark");
    assert_eq!(at(0xffff_ffff_82a0_0085), Some(("init_task", 5)));
    assert_eq!(at(0xffff_ffff_8100_0010), None, "code");
    assert_eq!(at(0xffff_ffff_c000_0010), None, "a module's code lies between");
    assert_eq!(symbols.per_cpu_at(0x1_fb84).map(|symbol| symbol.name), Some("current_task"));
    assert_eq!(symbols.per_cpu_at(0).map(|symbol| symbol.name), Some("fixed_percpu_data"));
}

#[test]
fn finds_addresses() {
    let symbols = table();
    assert_eq!(symbols.address("init_task"), Some(0xffff_ffff_82a0_0080));
    assert_eq!(symbols.address("current_task"), Some(0x1_fb80));
    assert_eq!(symbols.address("twice"), Some(0xffff_ffff_8100_0200), "the first of two");
    assert_eq!(symbols.address("absent"), None);
}

#[test]
fn does_not_depend_on_the_order_of_lines() {
    let mut lines: Vec<&str> = TABLE.lines().collect();
    lines.reverse();
    let (reversed, straight) = (KernelSymbols::parse(lines.join("\n").as_bytes()).expect("whole"), table());
    for address in (0xffff_ffff_8100_0000u64..0xffff_ffff_8100_0500).step_by(16) {
        assert_eq!(reversed.function_at(address), straight.function_at(address), "{address:#x}");
    }
    assert_eq!(reversed.counts(), straight.counts());
}

#[test]
fn strips_what_the_compiler_adds() {
    for (name, stripped) in [
        ("vfs_open", "vfs_open"),
        ("d_walk.part.0", "d_walk"),
        ("helper.isra.0.cold", "helper"),
        ("f.constprop.3", "f"),
        ("f.cold", "f"),
        ("f.llvm.1234567890", "f"),
        ("f.parted", "f.parted"),
        (".cold", ".cold"),
        ("", ""),
    ] {
        assert_eq!(without_compiler_suffix(name), stripped);
    }
    for (name, stripped) in [("__key.12", "__key"), ("__key", "__key"), ("a.b", "a.b"), (".5", ".5")] {
        assert_eq!(without_number(name), stripped);
    }
}

#[test]
fn says_which_line_is_wrong() {
    let message = |text: &str| KernelSymbols::parse(text.as_bytes()).err().expect("refused").to_string();
    for (line, problem) in [
        ("ffffffff81000000 T", "found \"ffffffff81000000 T\""),
        ("ffffffff81000000 T a b", "found \"ffffffff81000000 T a b\""),
        ("xyz T name", "found the address \"xyz\""),
        ("+fffffff81000000 T name", "found the address"),
        ("ffffffff810000000 T name", "found the address"),
        ("ffffffff81000000 TT name", "found the type \"TT\""),
        ("ffffffff81000000 7 name", "found the type \"7\""),
        ("ffffffff81000000 T ", "found the name \"\""),
        ("ffffffff81000000 T name\text4", "found \"ext4\" for the module"),
        ("", "found \"\""),
    ] {
        let text = format!("ffffffff81000000 T first\n{line}\n");
        let text = message(&text);
        assert!(text.starts_with("line 2 of the symbol table: expected") && text.contains(problem), "{text}");
    }
    assert!(message(&format!("ffffffff81000000 T {}", "n".repeat(513))).contains("found the name"));
}

#[test]
fn tells_hidden_and_empty_tables() {
    let parse = |text: &str| KernelSymbols::parse(text.as_bytes()).err();
    assert_eq!(parse("0000000000000000 T _text\n0000000000000000 D init_task\n"), Some(SymbolError::Hidden));
    assert_eq!(parse(""), Some(SymbolError::Empty));
    assert_eq!(parse("ffffffff82000000 D only_data\n"), Some(SymbolError::Empty));
}

proptest! {
    #[test]
    fn any_bytes_give_a_table_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = KernelSymbols::parse(&bytes);
    }

    #[test]
    fn damaged_tables_give_a_table_or_an_error(
        damage in prop::collection::vec((0..TABLE.len(), any::<u8>()), 1..6),
        addresses in prop::collection::vec(any::<u64>(), 8),
    ) {
        let mut bytes = TABLE.as_bytes().to_vec();
        for (at, value) in damage {
            bytes[at] = value;
        }
        if let Ok(symbols) = KernelSymbols::parse(&bytes) {
            for address in addresses {
                for symbol in [symbols.function_at(address), symbols.data_at(address), symbols.per_cpu_at(address)] {
                    prop_assert!(symbol.is_none_or(|symbol| symbol.address <= address));
                }
            }
        }
    }

    #[test]
    fn every_listed_function_is_found_at_its_address(
        offsets in prop::collection::btree_set(0u64..1 << 20, 1..60),
        within in 0u64..16,
    ) {
        let starts: Vec<u64> = offsets.iter().map(|offset| 0xffff_ffff_8100_0000 + 16 * offset).collect();
        let text: String = starts.iter().map(|start| format!("{start:016x} t f_{start:x}\n")).collect();
        let symbols = KernelSymbols::parse(text.as_bytes()).expect("whole");
        for start in &starts[..starts.len() - 1] {
            let symbol = symbols.function_at(start + within).expect("in a function");
            prop_assert_eq!(symbol.address, *start);
            prop_assert_eq!(symbol.name, format!("f_{start:x}"));
        }
    }
}

/// Regression: functions named so were taken for the marks of sections, and all that tmpfs or ext4 write had no name.
#[test]
fn functions_that_begin_and_end_something_keep_their_names() {
    let names = ["shmem_write_begin", "__block_write_begin", "__ptep_modify_prot_start", "__delayacct_blkio_end"];
    let text: String = (0..).zip(names).map(|(index, name)| format!("{:x} t {name}\n", CODE + 0x100 * index)).collect();
    let symbols = KernelSymbols::parse(format!("{text}{:x} T __entry_text_end\n", CODE + 0x400).as_bytes());
    let symbols = symbols.expect("a correct table");
    for (index, name) in (0..).zip(names) {
        assert_eq!(symbols.function_at(CODE + 0x100 * index + 0x44).map(|symbol| symbol.name), Some(name));
    }
    assert_eq!(symbols.function_at(CODE + 0x404), None);
}
