//! The BTF reader: layouts, names of fields, modules, and damaged or hostile input.

mod support;

use kernel_naming::{BtfError, KernelTypes};
use proptest::prelude::*;
use support::btf::{BtfBuilder, small_kernel};

fn types() -> KernelTypes {
    KernelTypes::parse(&small_kernel()).expect("the hand-made BTF is whole")
}

/// The path to a range of a structure, steps joined by dots.
fn path(types: &KernelTypes, structure: &str, offset: u64, size_bytes: u64) -> String {
    let id = types.structure(structure).expect("the structure is there");
    let steps = types.path(id, offset, size_bytes);
    steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>().join(".")
}

#[test]
fn finds_members_through_unnamed_parts() {
    let types = types();
    let at = |structure: &str, member: &str| types.member(structure, member).map(|found| found.offset_bytes);
    assert_eq!(at("inode", "i_rwsem.owner"), Some(16));
    assert_eq!(at("inode", "i_dentry.prev"), Some(56));
    assert_eq!(at("shmem_inode_info", "vfs_inode.i_nlink"), Some(48));
    assert_eq!(at("dentry", "d_lockref.count"), Some(4));
    assert_eq!(at("dentry", "d_lockref.missing"), None);
    assert_eq!(at("missing", "x"), None);
    assert_eq!(types.structure_size("shmem_inode_info"), Some(144));
    assert_eq!(types.enumerator("pageflags", "PG_slab"), Some(9));
    assert_eq!(types.enumerator("pageflags", "PG_missing"), None);
}

#[test]
fn writes_a_structure_out() {
    let types = types();
    let rows = |name: &str| -> Vec<(String, u64, u64, bool, bool)> {
        let members = types.placed_members(name).expect("the structure is there").into_iter();
        members.map(|one| (one.path, one.offset_bits, one.size_bits, one.bit_field, one.in_union)).collect()
    };
    let row = |path: &str, offset, size, bit_field, in_union| (path.to_owned(), offset, size, bit_field, in_union);
    assert_eq!(
        rows("dentry"),
        [
            row("d_lockref.lock_count", 0, 64, false, true),
            row("d_lockref.lock.raw", 0, 32, false, true),
            row("d_lockref.count", 32, 32, false, true),
            row("d_iname", 64, 64, false, false),
            row("d_flags", 128, 32, false, false),
        ]
    );
    assert_eq!(
        rows("task_struct"),
        [
            row("first", 0, 3, true, false),
            row("second", 3, 5, true, false),
            row("third", 8, 1, true, false),
            row("plain", 32, 32, false, false),
        ]
    );
    assert!(rows("shmem_inode_info").contains(&row("vfs_inode.i_nlink", 384, 32, false, true)));
    assert!(types.placed_members("missing").is_none());
    assert_eq!(types.embedders("inode"), ["shmem_inode_info"]);
    assert_eq!(types.embedders("rw_semaphore"), ["inode"]);
    assert!(types.embedders("missing").is_empty());
}

#[test]
fn follows_a_range_to_its_field() {
    let types = types();
    for (structure, offset, size, expected) in [
        ("inode", 0, 8, "i_state"),
        ("inode", 4, 4, "i_state"),
        ("inode", 8, 4, "i_rwsem.count.counter"),
        ("inode", 24, 8, "i_rwsem.wait_list.next"),
        ("inode", 24, 16, "i_rwsem.wait_list"),
        ("inode", 8, 32, "i_rwsem"),
        ("inode", 44, 4, "i_lock.raw"),
        ("shmem_inode_info", 52, 4, "vfs_inode.i_lock.raw"),
        ("shmem_inode_info", 8, 96, "vfs_inode"),
        ("shmem_inode_info", 112, 8, "slots[]"),
        ("shmem_inode_info", 108, 8, "slots[]"),
        ("shmem_inode_info", 136, 8, "rest[]"),
        ("shmem_inode_info", 1000, 8, "rest[]"),
        ("dentry", 8, 1, "d_iname[]"),
        ("dentry", 9, 4, "d_iname[]"),
    ] {
        assert_eq!(path(&types, structure, offset, size), expected, "{structure}+{offset}, {size} bytes");
    }
}

#[test]
fn chooses_from_a_union_by_size_then_by_name() {
    let types = types();
    for (structure, offset, size, expected) in [
        ("dentry", 0, 8, "d_lockref.lock_count"),
        ("dentry", 0, 4, "d_lockref.lock.raw"),
        ("dentry", 4, 4, "d_lockref.count"),
        ("inode", 40, 4, "i_nlink"),
        ("inode", 48, 8, "i_dentry.next"),
        ("inode", 48, 16, "i_dentry"),
        ("inode", 64, 8, "i_pipe"),
        ("inode", 64, 4, "i_dir_seq"),
        ("inode", 64, 2, "i_pipe"),
        ("page", 8, 8, "mapping"),
        ("page", 16, 4, "ptl.raw"),
        ("page", 16, 8, "index"),
    ] {
        assert_eq!(path(&types, structure, offset, size), expected, "{structure}+{offset}, {size} bytes");
    }
}

#[test]
fn names_a_range_over_several_fields_by_the_first_and_the_last() {
    let types = types();
    assert_eq!(path(&types, "inode", 0, 16), "i_state..i_rwsem");
    assert_eq!(path(&types, "inode", 8, 16), "i_rwsem.count..owner");
    assert_eq!(path(&types, "inode", 36, 8), "i_rwsem..__i_nlink");
    assert_eq!(path(&types, "inode", 0, u64::MAX), "i_state..i_count");
}

#[test]
fn names_bit_fields() {
    let types = types();
    assert_eq!(path(&types, "task_struct", 0, 1), "first..second");
    assert_eq!(path(&types, "task_struct", 1, 1), "third");
    assert_eq!(path(&types, "task_struct", 4, 4), "plain");
}

#[test]
fn has_no_path_in_padding() {
    let types = types();
    assert_eq!(path(&types, "task_struct", 12, 4), "");
    assert_eq!(path(&types, "inode", 88, 4), "");
    assert_eq!(path(&types, "inode", u64::MAX, 8), "");
    assert_eq!(path(&types, "dentry", 20, 4), "");
}

#[test]
fn lists_pointers_to_structures() {
    let mut btf = BtfBuilder::new();
    let leaf = btf.structure("leaf", 8, &[]);
    let pointer = btf.pointer(leaf);
    let constant = btf.constant(pointer);
    let several = btf.array(pointer, 3);
    let none = btf.array(pointer, 0);
    let inner = btf.structure("inner", 16, &[("a", constant, 64)]);
    let choice = btf.union("", 8, &[("x", pointer, 0)]);
    btf.structure("outer", 64, &[("b", inner, 64), ("c", several, 192), ("d", choice, 384), ("e", none, 512)]);
    let types = KernelTypes::parse(&btf.finish()).expect("whole");
    let found: Vec<_> = types.pointer_members("outer").iter().map(|p| (p.offset_bytes, p.target, p.count)).collect();
    assert_eq!(found, [(16, "leaf", 1), (24, "leaf", 3)]);
}

#[test]
fn adds_modules_side_by_side() {
    let mut kernel = BtfBuilder::new();
    let int = kernel.integer("int", 4);
    kernel.structure("shared", 4, &[("a", int, 0)]);
    let mut types = KernelTypes::parse(&kernel.finish()).expect("whole");
    for (name, field) in [("ext4_inode_info", "i_data"), ("xfs_inode", "i_lock")] {
        let mut module = BtfBuilder::module(kernel.type_count(), kernel.string_bytes());
        let long = module.integer("long", 8);
        module.structure(name, 16, &[("base", int, 0), (field, long, 64)]);
        module.structure("shared", 400, &[]);
        types.add_module(&module.finish()).expect("whole");
    }
    assert_eq!(types.member("ext4_inode_info", "i_data").map(|found| found.size_bytes), Some(8));
    assert_eq!(types.member("xfs_inode", "i_lock").map(|found| found.size_bytes), Some(8));
    assert_eq!(types.member("xfs_inode", "base").map(|found| found.size_bytes), Some(4));
    assert_eq!(types.structure_size("shared"), Some(4), "the kernel's, not a module's");
    let before = types.type_count();
    assert!(types.add_module(&kernel.finish()[..40]).is_err());
    assert_eq!(types.type_count(), before);
}

#[test]
fn survives_types_that_contain_themselves() {
    let mut btf = BtfBuilder::new();
    // Structure 1 holds itself and an array of itself; typedef 4 is its own target.
    btf.structure("endless", 8, &[("again", 1, 0), ("", 2, 0)]);
    btf.array(1, u32::MAX);
    btf.array(2, u32::MAX);
    btf.typedef("turning", 4);
    btf.structure("holder", 8, &[("turning", 4, 0), ("many", 3, 0)]);
    let types = KernelTypes::parse(&btf.finish()).expect("every reference has a target");
    for structure in ["endless", "holder"] {
        let id = types.structure(structure).expect("there");
        for size in [1, 4, 8, u64::MAX] {
            assert!(types.path(id, 0, size).len() <= 64);
        }
        assert!(types.pointer_members(structure).is_empty());
        assert_eq!(types.member(structure, "absent.also"), None);
    }
    let turning = types.member("holder", "turning");
    assert_eq!(turning, None, "a type without size");
}

#[test]
fn bounds_the_search_in_types_that_double_at_every_level() {
    let mut btf = BtfBuilder::new();
    let mut level = btf.structure("", 0, &[]);
    for _ in 0..31 {
        level = btf.structure("", 0, &[("", level, 0), ("", level, 0)]);
    }
    btf.structure("wide", 0, &[("", level, 0)]);
    let types = KernelTypes::parse(&btf.finish()).expect("whole");
    assert_eq!(types.member("wide", "absent"), None);
    assert!(types.pointer_members("wide").is_empty());
    let id = types.structure("wide").expect("there");
    assert!(types.path(id, 0, 4).is_empty());
}

#[test]
fn says_what_is_wrong() {
    let message = |btf: &[u8]| KernelTypes::parse(btf).err().expect("refused").to_string();
    let whole = small_kernel();
    assert!(message(b"").contains("expected a header of 24 bytes, got 0"));
    assert!(message(&[0; 64]).contains("expected magic 0xeb9f, version 1"));
    assert!(message(&whole[..whole.len() - 1]).contains("string section reaches beyond the end"));
    let mut unknown_kind = BtfBuilder::new();
    unknown_kind.raw("", 20, 0, false, 0);
    assert!(message(&unknown_kind.finish()).contains("type kind 20 is unknown"));
    let mut dangling = BtfBuilder::new();
    dangling.pointer(7);
    assert!(message(&dangling.finish()).contains("type 1 refers to type 7, but there are 2"));
    assert!(KernelTypes::from_elf(b"no ELF file").err().is_some_and(|error| matches!(error, BtfError::NoSection(_))));
}

proptest! {
    #[test]
    fn cut_off_btf_is_an_error(length in 0..small_kernel().len()) {
        prop_assert!(KernelTypes::parse(&small_kernel()[..length]).is_err());
    }

    #[test]
    fn damaged_btf_never_panics(
        damage in prop::collection::vec((24..small_kernel().len(), any::<u8>()), 1..8),
        offset in 0u64..200,
        size in 0u64..40,
    ) {
        let mut btf = small_kernel();
        for (at, value) in damage {
            btf[at] = value;
        }
        if let Ok(types) = KernelTypes::parse(&btf) {
            for structure in ["inode", "shmem_inode_info", "dentry", "task_struct", "page"] {
                if let Some(id) = types.structure(structure) {
                    prop_assert!(types.path(id, offset, size).len() <= 64);
                    prop_assert!(types.pointer_members(structure).iter().all(|pointer| pointer.count > 0));
                    let member = types.member(structure, "i_rwsem.count");
                    prop_assert!(member.is_none_or(|member| member.offset_bytes < 1 << 40));
                }
            }
        }
    }

    #[test]
    fn random_bytes_behind_a_header_never_panic(words in prop::collection::vec(any::<u32>(), 0..200)) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| (word & 0x1f00_0007).to_le_bytes()).collect();
        let mut btf = vec![0x9f, 0xeb, 1, 0];
        for value in [24, 0, bytes.len() as u32, bytes.len() as u32, 1] {
            btf.extend_from_slice(&u32::to_le_bytes(value));
        }
        btf.extend_from_slice(&bytes);
        btf.push(0);
        let _ = KernelTypes::parse(&btf);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(KernelTypes::parse(&bytes).is_err());
        prop_assert!(KernelTypes::from_elf(&bytes).is_err());
    }
}
