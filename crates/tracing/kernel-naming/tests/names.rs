//! Names from hand-made captures, types and symbols: each rule of naming, without a kernel.

mod support;

use kernel_naming::capture::NAME_BYTES;
use kernel_naming::{
    CaptureKind, KernelSymbols, KernelTypes, Namer, ObjectCapture, ObjectName, PageKind, PairName, Sharing, Side,
};
use proptest::prelude::*;
use support::btf::small_kernel;

const SYMBOLS: &str = "\
0000000000000000 A __per_cpu_start
0000000000001000 A irq_stack_backing_store
0000000000002000 A runqueues
0000000000002040 A counter
0000000000002080 A bases
0000000000003000 A __per_cpu_end
ffffffff81000000 T vfs_open
ffffffff81000100 t d_walk.part.0
ffffffff81000200 t pcpu_get_vm_areas
ffffffff81000300 T last
ffffffff82000000 d super_blocks
ffffffff82000010 D init_task
ffffffff82000100 d __key.7
ffffffff82000200 D init_stack
";

const OBJECT: u64 = 0xffff_8880_0012_3400;

fn namer() -> Namer {
    let types = KernelTypes::parse(&small_kernel()).expect("whole");
    Namer::new(types, KernelSymbols::parse(SYMBOLS.as_bytes()).expect("whole"))
}

fn text(name: &str) -> [u8; NAME_BYTES] {
    std::array::from_fn(|index| name.as_bytes().get(index).copied().unwrap_or(0))
}

fn of_kind(kind: CaptureKind) -> ObjectCapture {
    let mut capture = ObjectCapture::unknown(OBJECT);
    capture.kind = kind as u32;
    capture
}

/// An object of 256 bytes in a slab cache, of the type that pointers led to, if any.
fn slab(cache: &str, found_type: &str) -> ObjectCapture {
    let mut capture = of_kind(CaptureKind::Slab);
    capture.object_size = 256;
    (capture.cache_name, capture.type_name) = (text(cache), text(found_type));
    capture
}

/// Object, field, full field.
fn parts(name: &ObjectName) -> (&str, &str, &str) {
    (&name.object, &name.field, &name.full_field)
}

#[test]
fn names_a_cache_by_its_structure() {
    let namer = namer();
    for (cache, offset, size, expected) in [
        ("dentry", 0, 8, ("struct dentry", "d_lockref", "d_lockref.lock_count")),
        ("dentry", 4, 4, ("struct dentry", "d_lockref", "d_lockref.count")),
        ("dentry", 16, 4, ("struct dentry", "d_flags", "d_flags")),
        ("dentry(12:group)", 16, 4, ("struct dentry", "d_flags", "d_flags")),
        ("inode_cache", 72, 4, ("struct inode", "i_count", "i_count")),
        ("shmem_inode_cache", 16, 4, ("struct inode", "i_rwsem", "i_rwsem.count")),
        ("shmem_inode_cache", 52, 4, ("struct inode", "i_lock", "i_lock")),
        ("shmem_inode_cache", 0, 4, ("struct shmem_inode_info", "seals", "seals")),
        ("shmem_inode_cache", 8, 96, ("struct shmem_inode_info", "vfs_inode", "vfs_inode")),
        ("shmem_inode_cache", 112, 8, ("struct shmem_inode_info", "slots[]", "slots[]")),
        ("task_struct", 12, 4, ("struct task_struct", "", "+0xc")),
    ] {
        let name = namer.name(&slab(cache, ""), OBJECT + offset, size);
        assert_eq!((parts(&name), name.known), (expected, true), "{cache}+{offset}");
    }
}

#[test]
fn says_when_it_knows_no_type() {
    let namer = namer();
    for (cache, found_type, expected, known) in [
        ("kmalloc-192", "", ("kmalloc-192", "", "+0x10"), false),
        ("dma-kmalloc-8", "", ("dma-kmalloc-8", "", "+0x10"), false),
        ("lsm_inode_cache", "", ("lsm_inode_cache", "", "+0x10"), true),
        ("", "", ("slab object", "", "+0x10"), false),
        ("kmalloc-192", "dentry", ("struct dentry", "d_flags", "d_flags"), true),
        ("kmalloc-512", "fdtable.fd[]", ("fdtable.fd[]", "", "+0x10"), true),
    ] {
        let name = namer.name(&slab(cache, found_type), OBJECT + 16, 4);
        assert_eq!((parts(&name), name.known), (expected, known), "{cache}");
    }
}

#[test]
fn counts_from_where_the_typed_part_begins() {
    let mut capture = slab("kmalloc-256", "dentry");
    capture.typed_start = OBJECT + 64;
    let name = namer().name(&capture, OBJECT + 64 + 16, 4);
    assert_eq!(parts(&name), ("struct dentry", "d_flags", "d_flags"));
}

#[test]
fn names_variables() {
    let namer = namer();
    let named = |address: u64| {
        let mut capture = ObjectCapture::unknown(address);
        capture.kind = CaptureKind::KernelImage as u32;
        namer.name(&capture, address, 4)
    };
    assert_eq!(parts(&named(0xffff_ffff_8200_0000)), ("super_blocks", "", ""));
    assert_eq!(parts(&named(0xffff_ffff_8200_0008)), ("super_blocks", "", "+0x8"));
    assert_eq!(parts(&named(0xffff_ffff_8200_0014)), ("init_task", "plain", "plain"));
    assert_eq!(parts(&named(0xffff_ffff_8200_0050)), ("init_task", "", "+0x40"));
    assert_eq!(parts(&named(0xffff_ffff_8200_0104)), ("__key", "", "+0x4"));
    assert_eq!(named(0xffff_ffff_8200_0210).object, "kernel stack");
    assert_eq!(named(0xffff_ffff_8100_0110).object, "code of d_walk");
    assert_eq!(
        (named(0xffff_ffff_8080_0000).object.as_str(), named(0xffff_ffff_8080_0000).known),
        ("kernel image", false)
    );
}

#[test]
fn names_the_image_behind_an_alias() {
    let mut capture = of_kind(CaptureKind::KernelImage);
    capture.object = 0xffff_ffff_8200_0010;
    assert_eq!(parts(&namer().name(&capture, OBJECT + 4, 4)), ("init_task", "plain", "plain"));
}

#[test]
fn names_per_cpu_memory() {
    let namer = namer();
    let named = |template: u64, found_type: &str, typed_start: u64, size_bytes: u64| {
        let mut capture = of_kind(CaptureKind::PerCpu);
        (capture.object, capture.cpu) = (template, 1);
        (capture.type_name, capture.typed_start) = (text(found_type), typed_start);
        namer.name(&capture, OBJECT, size_bytes)
    };
    assert_eq!(parts(&named(0x2008, "", 0x2008, 4)), ("per-CPU runqueues", "nr_running", "nr_running"));
    assert_eq!(parts(&named(0x2048, "", 0x2048, 4)), ("per-CPU counter", "", "+0x8"));
    assert_eq!(parts(&named(0x1800, "", 0x1800, 8)), ("kernel stack", "", ""));
    assert_eq!(parts(&named(0x8010, "dentry", 0x8000, 4)), ("per-CPU struct dentry", "d_flags", "d_flags"));
    let dynamic = named(0x8010, "", 0x8010, 4);
    assert_eq!((dynamic.object.as_str(), dynamic.known), ("per-CPU (dynamic)", false));
}

#[test]
fn names_page_structures_by_the_use_of_the_page() {
    let namer = namer();
    for (page, offset, size, expected) in [
        (PageKind::Slab, 8, 8, ("struct slab", "slab_cache", "slab_cache")),
        (PageKind::PageTable, 16, 4, ("struct page", "ptl", "ptl")),
        (PageKind::PageCache, 16, 8, ("struct page", "index", "index")),
        (PageKind::Other, 24, 4, ("struct page", "_refcount", "_refcount")),
    ] {
        let mut capture = of_kind(CaptureKind::StructPage);
        capture.page_kind = page as u32;
        assert_eq!(parts(&namer.name(&capture, OBJECT + offset, size)), expected);
    }
}

#[test]
fn names_other_memory_by_its_use() {
    let namer = namer();
    let named = |kind: CaptureKind, page: PageKind, owner: u64| {
        let mut capture = of_kind(kind);
        (capture.page_kind, capture.owner) = (page as u32, owner);
        let name = namer.name(&capture, OBJECT, 8);
        (name.object, name.known)
    };
    for (kind, page, owner, object, known) in [
        (CaptureKind::Page, PageKind::PageTable, 0, "page table", true),
        (CaptureKind::Page, PageKind::PageCache, 0, "page cache page", true),
        (CaptureKind::Page, PageKind::Anonymous, 0, "anonymous page", true),
        (CaptureKind::Page, PageKind::Other, 0, "page", false),
        (CaptureKind::Page, PageKind::Slab, 0, "slab page", false),
        (CaptureKind::Stack, PageKind::None, 0, "kernel stack", true),
        (CaptureKind::User, PageKind::None, 0, "user page", true),
        (CaptureKind::CpuEntryArea, PageKind::None, 0, "CPU entry area", true),
        (CaptureKind::Vmalloc, PageKind::None, 0xffff_ffff_8100_0210, "per-CPU (dynamic)", false),
        (CaptureKind::Vmalloc, PageKind::None, 0xffff_ffff_8100_0110, "vmalloc of d_walk", true),
        (CaptureKind::Vmalloc, PageKind::None, 0, "vmalloc area", false),
        (CaptureKind::Unknown, PageKind::None, 0, "unknown", false),
    ] {
        assert_eq!(named(kind, page, owner), (object.to_owned(), known));
    }
    let mut table = of_kind(CaptureKind::Table);
    table.cache_name = text("dentry_hashtable");
    assert_eq!(parts(&namer.name(&table, OBJECT + 64, 8)), ("dentry_hashtable", "", "+0x40"));
}

#[test]
fn names_functions() {
    let namer = namer();
    let function = namer.function(0xffff_ffff_8100_0123).expect("a function");
    assert_eq!((function.identity.as_str(), function.to_string().as_str()), ("d_walk", "d_walk.part.0+0x23"));
    assert_eq!(namer.function(0x5555_5555_0000), None);
    let caller = namer.caller(0xffff_ffff_8100_0200).expect("the call was its last instruction");
    assert_eq!(caller.to_string(), "d_walk.part.0+0x100");
    assert_eq!(namer.caller(0), None);
}

fn pair(namer: &Namer, first: (&ObjectCapture, u64, u64), second: (&ObjectCapture, u64, u64)) -> PairName {
    let make = |(capture, address, size_bytes)| Side { capture, address, size_bytes, function: "" };
    namer.name_pair(make(first), make(second))
}

#[test]
fn names_what_both_touched() {
    let namer = namer();
    let capture = slab("shmem_inode_cache", "");
    let at = |offset: u64| {
        let mut side = capture;
        side.address = OBJECT + offset;
        side
    };
    for (first, second, field, sharing) in [
        ((16, 8), (16, 8), "i_rwsem", Sharing::True),
        ((16, 4), (24, 8), "i_rwsem.count | i_rwsem.owner", Sharing::False),
        ((24, 8), (16, 4), "i_rwsem.count | i_rwsem.owner", Sharing::False),
        ((8, 8), (52, 4), "i_lock | i_state", Sharing::False),
        ((8, 16), (16, 4), "i_rwsem", Sharing::True),
        ((108, 8), (116, 8), "slots[]", Sharing::False),
    ] {
        let (left, right) = (at(first.0), at(second.0));
        let name = pair(&namer, (&left, left.address, first.1), (&right, right.address, second.1));
        assert_eq!((name.field.as_str(), name.sharing), (field, sharing), "{first:?} {second:?}");
        let mirrored = pair(&namer, (&right, right.address, second.1), (&left, left.address, first.1));
        assert_eq!(mirrored, name, "the order of the sides");
    }
}

/// The inode of `shmem_inode_cache` lies 8 bytes into its object; its union of `i_rcu` and `i_dentry` at 48.
#[test]
fn the_accessing_function_tells_what_a_union_is_used_for() {
    let namer = namer();
    let capture = slab("shmem_inode_cache", "");
    let side =
        |offset: u64, function| Side { capture: &capture, address: OBJECT + 8 + offset, size_bytes: 8, function };
    for (first, second, object, field) in [
        (side(48, "call_rcu"), side(0, "iput"), "struct inode", "i_rcu | i_state"),
        (side(48, "__d_instantiate"), side(0, "call_rcu"), "struct inode", "i_dentry | i_state"),
        (side(48, "call_rcu"), side(48, "rcu_do_batch"), "struct inode", "i_rcu"),
        (side(48, "call_rcu"), side(48, "__d_instantiate"), "struct inode", "i_dentry / i_rcu"),
        (side(48, "kmem_cache_free"), side(48, "__slab_free"), "struct shmem_inode_info", "free list link"),
        (side(48, "kmem_cache_free"), side(48, "__d_instantiate"), "struct inode", "i_dentry / free list link"),
        (side(48, "kmem_cache_free"), side(48, "call_rcu"), "struct inode", "i_rcu / free list link"),
        (
            side(48, "kmem_cache_free"),
            side(0, "iput"),
            "struct inode.i_state | struct shmem_inode_info.free list link",
            "",
        ),
    ] {
        let name = namer.name_pair(first, second);
        let found = (name.object.as_str(), name.field.as_str(), name.known);
        assert_eq!(found, (object, field, true), "{} {}", first.function, second.function);
        assert_eq!(namer.name_pair(second, first), name, "the order of the sides");
    }
    let unknown = slab("kmalloc-64", "");
    let side = Side { capture: &unknown, address: OBJECT, size_bytes: 8, function: "kfree" };
    assert!(!namer.name_pair(side, side).known, "a free object of no type");
}

/// Each case was named wrongly, after the first alternative of its union, in the findings of a real kernel.
#[test]
fn a_page_structure_is_named_by_who_accesses_it() {
    let namer = namer();
    let mut capture = of_kind(CaptureKind::StructPage);
    for (page, offset, size, function, expected) in [
        (PageKind::Other, 32, 8, "set_page_dirty", "compound_head"),
        (PageKind::PageCache, 32, 8, "__mod_lruvec_page_state", "compound_head"),
        (PageKind::Other, 32, 8, "get_page_from_freelist", "pcp_list"),
        (PageKind::PageCache, 40, 8, "free_unref_page_commit", "pcp_list"),
        (PageKind::PageCache, 32, 8, "lru_add_fn", "lru"),
        (PageKind::Other, 28, 4, "page_add_file_rmap", "_mapcount"),
        (PageKind::Other, 28, 4, "rmqueue_bulk", "page_type"),
        (PageKind::PageTable, 28, 4, "__pte_alloc", "page_type"),
        (PageKind::PageCache, 28, 4, "", "_mapcount"),
        (PageKind::Other, 32, 8, "", "lru"),
    ] {
        capture.page_kind = page as u32;
        let name = namer.name_for(&capture, OBJECT + offset, size, function);
        let field = name.field.split('.').next().expect("a part");
        assert_eq!((name.object.as_str(), field), ("struct page", expected), "{function}");
    }
    capture.page_kind = PageKind::Other as u32;
    let side = |function| Side { capture: &capture, address: OBJECT + 32, size_bytes: 8, function };
    let name = namer.name_pair(side("get_page_from_freelist"), side("set_page_dirty"));
    assert_eq!((name.object.as_str(), name.field.as_str()), ("struct page", "compound_head / pcp_list"));
}

/// No tree of a kernel has dense nodes, which stand first among the layouts.
#[test]
fn a_node_of_a_maple_tree_is_named_by_who_accesses_it() {
    let namer = namer();
    let (loose, known) = (slab("maple_node", ""), slab("maple_node", "maple_range_64"));
    let range = "struct maple_range_64";
    for (capture, offset, function, object, field) in [
        (&loose, 8, "mtree_range_walk", range, "pivot[]"),
        (&loose, 128, "mas_store_prealloc", range, "slot[]"),
        (&loose, 8, "call_rcu", "struct maple_node", "rcu"),
        (&known, 8, "call_rcu", "struct maple_node", "rcu"),
        (&known, 8, "mtree_range_walk", range, "pivot[]"),
        (&known, 0, "mas_alloc_nodes", "struct maple_alloc", "total"),
        (&known, 8, "kmem_cache_free", "struct maple_node", "free list link"),
    ] {
        let name = namer.name_for(capture, OBJECT + offset, 8, function);
        assert_eq!((name.object.as_str(), name.field.as_str()), (object, field), "{function}");
    }
    let side = |function| Side { capture: &loose, address: OBJECT + 8, size_bytes: 8, function };
    let name = namer.name_pair(side("mtree_range_walk"), side("call_rcu"));
    assert_eq!(
        (name.object.as_str(), name.field.as_str()),
        ("struct maple_node.rcu / struct maple_range_64.pivot[]", "")
    );
    // The slots of both lie in one place and have one name: the reader's are none of the spare node's.
    let side = |function| Side { capture: &known, address: OBJECT + 128, size_bytes: 8, function };
    let name = namer.name_pair(side("mtree_range_walk"), side("mas_pop_node"));
    assert_eq!(
        (name.object.as_str(), name.field.as_str()),
        ("struct maple_alloc.slot[] / struct maple_range_64.slot[]", "")
    );
}

#[test]
fn a_variable_without_fields_is_named_as_a_whole_beside_its_parts() {
    let namer = namer();
    let mut capture = of_kind(CaptureKind::KernelImage);
    capture.object = 0xffff_ffff_8200_0000;
    capture.address = capture.object;
    let side = |offset| Side { capture: &capture, address: capture.address + offset, size_bytes: 8, function: "" };
    for pair in [namer.name_pair(side(0), side(8)), namer.name_pair(side(8), side(0))] {
        assert_eq!((pair.object.as_str(), pair.field.as_str()), ("super_blocks | super_blocks+0x8", ""));
    }
}

#[test]
fn names_elements_of_a_per_cpu_array_alike() {
    let namer = namer();
    let mut capture = of_kind(CaptureKind::PerCpu);
    for (offset, expected) in [(0, "lock"), (8, "nr_running"), (16, "lock"), (24, "nr_running")] {
        capture.object = 0x2080 + offset;
        let name = namer.name(&capture, capture.address, 4);
        assert_eq!(parts(&name), ("per-CPU bases[]", expected, expected));
    }
}

#[test]
fn names_elements_of_an_array_alike() {
    let namer = namer();
    let mut capture = slab("kmalloc-cg-1k", "dentry[]");
    capture.typed_start = OBJECT;
    for index in 0..3 {
        let name = namer.name(&capture, OBJECT + 24 * index + 16, 4);
        assert_eq!(parts(&name), ("struct dentry", "d_flags", "d_flags"));
    }
}

#[test]
fn names_two_objects_on_one_line() {
    let namer = namer();
    let (dentry, other) = (slab("dentry", ""), slab("kmalloc-32", ""));
    let name = pair(&namer, (&other, OBJECT + 32, 4), (&dentry, OBJECT + 16, 4));
    assert_eq!((name.object.as_str(), name.field.as_str()), ("kmalloc-32 | struct dentry.d_flags", ""));
    assert_eq!((name.sharing, name.known), (Sharing::False, false));
}

proptest! {
    #[test]
    fn any_capture_has_a_name(
        bytes in prop::collection::vec(any::<u8>(), ObjectCapture::SIZE_BYTES),
        kind in 0u32..12,
        page in 0u32..7,
        cache in "[a-z_\\-0-9(\\[\n]{0,32}",
        address in any::<u64>(),
        size in prop_oneof![0u64..64, any::<u64>()],
    ) {
        let mut bytes: [u8; ObjectCapture::SIZE_BYTES] = bytes.try_into().expect("of that length");
        bytes[8..12].copy_from_slice(&kind.to_le_bytes());
        bytes[12..16].copy_from_slice(&page.to_le_bytes());
        let mut capture = ObjectCapture::from_bytes(&bytes).expect("both kinds are known");
        let namer = namer();
        for (name, found_type) in [(cache.as_str(), ""), ("shmem_inode_cache", ""), ("kmalloc-8", "inode")] {
            (capture.cache_name, capture.type_name) = (text(name), text(found_type));
            for at in [address, capture.object, capture.address] {
                let name = namer.name(&capture, at, size);
                prop_assert!(!name.object.is_empty());
                prop_assert!(!name.object.contains(char::is_control));
                let side = Side { capture: &capture, address: at, size_bytes: size, function: "" };
                let second = Side { capture: &capture, address, size_bytes: 8, function: "call_rcu" };
                prop_assert_eq!(namer.name_pair(side, second).sharing, namer.name_pair(second, side).sharing);
            }
        }
    }
}
