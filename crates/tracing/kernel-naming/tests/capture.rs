//! Captures in memory made by hand: one test for each kind of address.

mod support;

use kernel_naming::layout::{Root, RootKind};
use kernel_naming::{CaptureKind, ObjectCapture, PageKind, WindowView};
use support::guest::*;

/// A slab page (its frame) and a cache for the tests.
const FRAME: u64 = FREE >> 12;
const CACHE: u64 = FREE + 0x8000;

fn kind(capture: &ObjectCapture) -> CaptureKind {
    capture.capture_kind()
}

#[test]
fn finds_the_slab_object() {
    let mut guest = Guest::new();
    guest.cache(direct(CACHE), "dentry", 192, 184, 0);
    guest.slab(FRAME, direct(CACHE));
    let address = direct(FREE + 2 * 192 + 100);
    let capture = guest.capture(address);
    assert_eq!((kind(&capture), capture.page()), (CaptureKind::Slab, PageKind::Slab));
    assert_eq!((capture.address, capture.object, capture.object_size), (address, direct(FREE + 2 * 192), 184));
    assert_eq!((capture.owner, capture.cache_name(), capture.type_name()), (direct(CACHE), "dentry", ""));
}

/// An inode of tmpfs of this mode, and a dentry of it of this name; where they lie.
fn guest_with_file(mode: u32, name: &str) -> (Guest, u64, u64) {
    let mut guest = Guest::new();
    guest.cache(direct(CACHE), "dentry", 192, 192, 0);
    guest.slab(FRAME, direct(CACHE));
    guest.cache(direct(CACHE + 0x200), "shmem_inode_cache", 512, 512, 0);
    guest.slab(FRAME + 1, direct(CACHE + 0x200));
    let (dentry, inode) = (direct(FREE + 192), direct(FREE + 4096 + 512 + 64));
    guest.set_u32(inode, mode);
    guest.set(inode + 96, dentry + 176);
    guest.set(dentry + 40, dentry + 56);
    guest.set_text(dentry + 56, name);
    guest.set(dentry + 48, inode);
    (guest, dentry, inode)
}

#[test]
fn tells_which_file_an_object_is_about() {
    let (mut guest, dentry, inode) = guest_with_file(0o100_644, "n0");
    assert_eq!((guest.capture(dentry + 3).of_whom(), guest.capture(inode + 8).of_whom()), ("f n0", "f n0"));
    guest.set(inode + 96, inode + 8);
    assert_eq!(guest.capture(inode).of_whom(), "f", "what frees an inode lies where its names were");
    guest.set(dentry + 48, 0);
    assert_eq!(guest.capture(dentry).of_whom(), "- n0");
    let (guest, _, inode) = guest_with_file(0o100_755, "a_file_with_a_name_of_forty_characters__");
    assert_eq!(guest.capture(inode).of_whom(), "f a_file_with_a_name_of_forty_ch");
    let (guest, _, nameless) = guest_with_file(0o100_600, "#58");
    assert_eq!(guest.capture(nameless).of_whom(), "f", "it has no name but its number");
    let (guest, _, root) = guest_with_file(0o040_755, "/");
    assert_eq!(guest.capture(root).of_whom(), "d /");
    let (mut guest, dentry, inode) = guest_with_file(0o040_755, "/x");
    assert_eq!(guest.capture(inode).of_whom(), "d", "its name says nothing");
    guest.set_u32(inode, 0);
    assert_eq!(guest.capture(dentry).of_whom(), "", "of no kind: no inode is there");
}

#[test]
fn tells_which_file_a_page_belongs_to() {
    let (mut guest, _, inode) = guest_with_file(0o100_644, "n0");
    let mapping = inode + 0x100;
    guest.set(mapping + 24, inode);
    guest.set_page(FRAME + 2, 0, mapping, u32::MAX);
    assert_eq!(guest.capture(direct(FREE + 2 * 4096 + 8)).of_whom(), "f n0");
    assert_eq!(guest.capture(VMEMMAP + (FRAME + 2) * 80 + 52).of_whom(), "f n0");
}

#[test]
fn finds_the_slab_object_in_a_tail_page() {
    let mut guest = Guest::new();
    guest.cache(direct(CACHE), "task_struct", 3000, 2900, 0);
    guest.slab(FRAME, direct(CACHE));
    guest.set_tail(FRAME + 1, FRAME);
    let capture = guest.capture(direct(FREE + 4096 + 10));
    assert_eq!((kind(&capture), capture.object), (CaptureKind::Slab, direct(FREE + 3000)));
}

#[test]
fn steps_over_the_red_zone() {
    let mut guest = Guest::new();
    guest.cache(direct(CACHE), "kmalloc-64", 128, 64, 32);
    guest.slab(FRAME, direct(CACHE));
    let capture = guest.capture(direct(FREE + 128 + 40));
    assert_eq!((capture.object, capture.object_size), (direct(FREE + 128 + 32), 64));
}

#[test]
fn keeps_32_bytes_of_a_long_cache_name() {
    let mut guest = Guest::new();
    guest.cache(direct(CACHE), "a_cache_with_a_name_of_forty_characters_", 64, 64, 0);
    guest.slab(FRAME, direct(CACHE));
    assert_eq!(guest.capture(direct(FREE)).cache_name(), "a_cache_with_a_name_of_forty_cha");
}

#[test]
fn does_not_believe_a_damaged_cache() {
    for (distance, object_size, padding) in [(0, 0, 0), (64, 128, 0), (64, 64, 64), (u32::MAX, 8, 0)] {
        let mut guest = Guest::new();
        guest.cache(direct(CACHE), "dentry", distance, object_size, padding);
        guest.slab(FRAME, direct(CACHE));
        let capture = guest.capture(direct(FREE + 100));
        assert_eq!((kind(&capture), capture.page()), (CaptureKind::Page, PageKind::Slab));
    }
}

#[test]
fn tells_pages_by_their_use() {
    let mut guest = Guest::new();
    let mapping = direct(CACHE);
    let inode = direct(CACHE + 0x100);
    guest.set(mapping + 24, inode);
    for (frame, flags, mapping, page_type, expected) in [
        (FRAME, 0, 0, 0xf200_0000, PageKind::PageTable),
        (FRAME + 1, 0, mapping, u32::MAX, PageKind::PageCache),
        (FRAME + 2, 0, mapping | 1, u32::MAX, PageKind::Anonymous),
        (FRAME + 3, 1 << RESERVED_BIT, 0, u32::MAX, PageKind::Reserved),
        (FRAME + 4, 0, 0, u32::MAX, PageKind::Other),
        (FRAME + 5, 0, 0x1234_5678, u32::MAX, PageKind::Other),
    ] {
        guest.set_page(frame, flags, mapping, page_type);
        let address = direct(frame * 4096 + 72);
        let capture = guest.capture(address);
        assert_eq!((kind(&capture), capture.page()), (CaptureKind::Page, expected));
        assert_eq!((capture.object, capture.object_size), (direct(frame * 4096), 4096));
        assert_eq!(capture.owner, if expected == PageKind::PageCache { inode } else { 0 });
    }
}

#[test]
fn finds_the_page_structure() {
    let mut guest = Guest::new();
    guest.set_page(FRAME, 0, 0, 0xf200_0000);
    let capture = guest.capture(VMEMMAP + FRAME * 80 + 52);
    assert_eq!((kind(&capture), capture.page()), (CaptureKind::StructPage, PageKind::PageTable));
    assert_eq!((capture.object, capture.object_size, capture.owner), (VMEMMAP + FRAME * 80, 80, FRAME));
    let behind = guest.capture(VMEMMAP + (RAM_BYTES >> 12) * 80);
    assert_eq!(kind(&behind), CaptureKind::Unknown);
}

#[test]
fn finds_per_cpu_memory_of_each_cpu() {
    let guest = Guest::new();
    for cpu in 0..CPUS {
        let area = direct(PER_CPU_AREAS + cpu * PER_CPU_UNIT);
        for offset in [0, 0x123, PER_CPU_STATIC - 1, PER_CPU_STATIC, PER_CPU_UNIT - 1] {
            let capture = guest.capture(area + offset);
            assert_eq!((kind(&capture), capture.cpu, capture.object), (CaptureKind::PerCpu, cpu as u32, offset));
        }
    }
    let behind = guest.capture(direct(PER_CPU_AREAS + CPUS * PER_CPU_UNIT));
    assert_eq!(kind(&behind), CaptureKind::Page);
}

#[test]
fn per_cpu_memory_ends_where_the_first_chunk_ends() {
    let mut guest = Guest::new();
    let chunk = direct(FREE);
    guest.set(image(PER_CPU_BASE), direct(PER_CPU_AREAS));
    guest.set(image(PER_CPU_CHUNK), chunk);
    // Static variables are 2 pages; one of the two after them is served, the other went back to the page allocator.
    guest.set(chunk + 48, direct(PER_CPU_AREAS + PER_CPU_STATIC));
    guest.set_u32(chunk + 20, 1);
    for cpu in 0..CPUS {
        let area = direct(PER_CPU_AREAS + cpu * PER_CPU_UNIT);
        assert_eq!(kind(&guest.capture(area + PER_CPU_STATIC + 0xfff)), CaptureKind::PerCpu);
        assert_eq!(kind(&guest.capture(area + PER_CPU_STATIC + 0x1000)), CaptureKind::Page);
    }
    // A chunk that cannot be: the whole unit is taken.
    guest.set_u32(chunk + 20, u32::MAX);
    assert_eq!(kind(&guest.capture(direct(PER_CPU_AREAS + PER_CPU_UNIT - 1))), CaptureKind::PerCpu);
}

#[test]
fn tells_the_image_by_both_of_its_addresses() {
    let mut guest = Guest::new();
    let address = image(0x5_0040);
    assert_eq!((kind(&guest.capture(address)), guest.capture(address).object), (CaptureKind::KernelImage, address));
    let physical = address - IMAGE;
    guest.set_page(physical >> 12, 1 << RESERVED_BIT, 0, u32::MAX);
    let alias = guest.capture(direct(physical));
    assert_eq!((kind(&alias), alias.object), (CaptureKind::KernelImage, address));
    // Freed after boot, the page belongs to the page allocator.
    guest.set_page(physical >> 12, 0, 0, u32::MAX);
    assert_eq!(kind(&guest.capture(direct(physical))), CaptureKind::Page);
}

#[test]
fn finds_the_stack_of_a_running_task() {
    let mut guest = Guest::new();
    let task = direct(FREE);
    guest.task(task, "worker", 77, VMALLOC + 0x8000);
    guest.set(direct(PER_CPU_AREAS + PER_CPU_UNIT + CURRENT_TASK), task);
    let capture = guest.capture(VMALLOC + 0x8000 + 0x1fff);
    assert_eq!((kind(&capture), capture.object, capture.object_size), (CaptureKind::Stack, VMALLOC + 0x8000, 0x2000));
    assert_eq!((capture.owner, capture.process_id, capture.cache_name()), (task, 77, "worker"));
    assert_eq!(kind(&guest.capture(VMALLOC + 0xa000)), CaptureKind::Vmalloc);
}

#[test]
fn finds_the_stack_of_a_waiting_thread() {
    let mut guest = Guest::new();
    let (leader, thread) = (direct(FREE), direct(FREE + 0x800));
    guest.task(leader, "leader", 10, VMALLOC);
    guest.task(thread, "thread", 11, VMALLOC + 0x4000);
    guest.link_task(leader);
    // The thread hangs on its leader's signal_struct.
    let head = leader + 0x200 + 8;
    guest.set(leader + 40, thread + 40);
    guest.set(thread + 40, head);
    let capture = guest.capture(VMALLOC + 0x4100);
    assert_eq!((kind(&capture), capture.process_id, capture.cache_name()), (CaptureKind::Stack, 11, "thread"));
}

#[test]
fn survives_a_list_of_tasks_without_end() {
    let mut guest = Guest::new();
    let task = direct(FREE);
    guest.task(task, "loop", 10, VMALLOC);
    guest.link_task(task);
    guest.set(task + 16, task + 16);
    assert_eq!(kind(&guest.capture(VMALLOC + 0x10_0000)), CaptureKind::Vmalloc);
    guest.set(task + 40, task + 40);
    assert_eq!(kind(&guest.capture(VMALLOC + 0x10_0000)), CaptureKind::Vmalloc);
}

#[test]
fn finds_the_area_of_vmalloc_space() {
    let mut guest = Guest::new();
    let (root, left, area) = (direct(FREE), direct(FREE + 0x100), direct(FREE + 0x200));
    for (node, start, end) in
        [(root, VMALLOC + 0x10_0000, VMALLOC + 0x11_0000), (left, VMALLOC + 0x1000, VMALLOC + 0x4000)]
    {
        guest.set(node + 8, start);
        guest.set(node + 16, end);
    }
    guest.set(image(TREE_ROOT), root + 24);
    guest.set(root + 24 + 8, left + 24);
    guest.set(left + 64, area);
    guest.set(area, VMALLOC + 0x1000);
    guest.set(area + 16, 0x2000);
    guest.set(area + 8, image(0x10));
    let capture = guest.capture(VMALLOC + 0x2abc);
    assert_eq!((kind(&capture), capture.object, capture.object_size), (CaptureKind::Vmalloc, VMALLOC + 0x1000, 0x2000));
    assert_eq!(capture.owner, image(0x10));
    // The guard page belongs to the area's address range, not to what was allocated.
    assert_eq!(guest.capture(VMALLOC + 0x3000).object_size, 0);
    // A node that is its own child.
    guest.set(left + 24, left + 24);
    assert_eq!(guest.capture(VMALLOC + 0x8000).object_size, 0);
}

#[test]
fn tells_user_module_and_entry_addresses() {
    let guest = Guest::new();
    for (address, expected) in [
        (0, CaptureKind::User),
        (0x6000_0000_0000, CaptureKind::User),
        (0x7fff_ffff_ffff_ffff, CaptureKind::User),
        (0xffff_ffff_c010_0000, CaptureKind::Module),
        (0xffff_fe00_0000_1000, CaptureKind::CpuEntryArea),
        (u64::MAX, CaptureKind::Unknown),
        (DIRECT_MAP - 1, CaptureKind::Unknown),
        (DIRECT_MAP + RAM_BYTES, CaptureKind::Unknown),
    ] {
        let capture = guest.capture(address);
        assert_eq!((kind(&capture), capture.address), (expected, address), "{address:#x}");
    }
}

#[test]
fn names_a_table_by_its_variable() {
    let mut guest = Guest::new();
    guest.set(image(TABLE_POINTER), direct(FREE + 0x1000));
    guest.set_u32(image(TABLE_MASK), 511);
    guest.set_page(FRAME + 1, 1 << RESERVED_BIT, 0, u32::MAX);
    let capture = guest.capture(direct(FREE + 0x1000 + 0x328));
    assert_eq!((kind(&capture), capture.cache_name()), (CaptureKind::Table, "mount_hashtable"));
    assert_eq!((capture.object, capture.object_size), (direct(FREE + 0x1000), 4096));
    assert_eq!(kind(&guest.capture(direct(FREE + 0x2000))), CaptureKind::Page);
}

/// A slab of `kmalloc-128` objects at `FREE + 0x1000`, and a running task.
fn guest_with_kmalloc() -> Guest {
    let mut guest = Guest::new();
    guest.cache(direct(CACHE), "kmalloc-128", 128, 128, 0);
    guest.slab(FRAME + 1, direct(CACHE));
    guest.task(direct(FREE), "worker", 5, 0);
    guest.set(direct(PER_CPU_AREAS + CURRENT_TASK), direct(FREE));
    guest
}

#[test]
fn types_kmalloc_objects_by_what_points_to_them() {
    let mut guest = guest_with_kmalloc();
    let (files, table) = (direct(FREE + 0x400), direct(FREE + 0x1000 + 3 * 128));
    guest.set(direct(FREE) + 96, files);
    guest.set(files + 8, table);
    let capture = guest.capture(table + 8);
    assert_eq!((kind(&capture), capture.type_name(), capture.typed_start), (CaptureKind::Slab, "fdtable", table));
    assert_eq!(guest.capture(table + 128).type_name(), "");
    assert_eq!(guest.capture(table + 60).type_name(), "", "behind the structure, in the object's unused rest");
}

#[test]
fn follows_lists_and_guarded_pointers() {
    let mut guest = guest_with_kmalloc();
    let (first, second) = (direct(FREE + 0x1000), direct(FREE + 0x1000 + 128));
    let information = direct(FREE + 0x1000 + 5 * 128);
    guest.set(image(SUPER_BLOCKS), first + 8);
    guest.set(first + 8, second + 8);
    guest.set(second + 8, image(SUPER_BLOCKS));
    guest.set(second + 32, information);
    assert_eq!(guest.capture(second + 100).type_name(), "super_block");
    assert_eq!(guest.capture(information).type_name(), "", "another file system's");
    guest.set(second + 16, image(0x700));
    assert_eq!(guest.capture(information).type_name(), "shmem_sb_info");
}

#[test]
fn follows_pointers_to_embedded_and_per_cpu_memory() {
    let mut guest = guest_with_kmalloc();
    let mount = direct(FREE + 0x1000 + 2 * 128);
    guest.set(direct(FREE) + 104, mount + 24);
    guest.set(mount + 48, PER_CPU_STATIC + 0x40);
    let capture = guest.capture(mount + 90);
    assert_eq!((capture.type_name(), capture.typed_start), ("mount", mount));
    let counter = guest.capture(direct(PER_CPU_AREAS + PER_CPU_UNIT + PER_CPU_STATIC + 0x44));
    assert_eq!((kind(&counter), counter.cpu, counter.type_name()), (CaptureKind::PerCpu, 1, "mnt_pcp"));
    assert_eq!(counter.typed_start, PER_CPU_STATIC + 0x40);
}

#[test]
fn follows_pointers_to_the_structures_of_pages() {
    let mut guest = guest_with_kmalloc();
    let mount = direct(FREE + 0x1000 + 2 * 128);
    guest.set(direct(FREE) + 104, mount + 24);
    guest.set(mount + 56, VMEMMAP + (FRAME + 2) * 80);
    let capture = guest.capture(direct(FREE + 2 * 4096 + 300));
    let start = direct(FREE + 2 * 4096);
    assert_eq!(
        (kind(&capture), capture.type_name(), capture.typed_start),
        (CaptureKind::Page, "pipe_buffer.page", start)
    );
    assert_eq!(guest.capture(direct(FREE + 3 * 4096)).type_name(), "", "the next page");
    for stray in [0, 8, VMEMMAP - 80, VMEMMAP + (RAM_BYTES >> 12) * 80, u64::MAX] {
        guest.set(mount + 56, stray);
        assert_eq!(guest.capture(start).type_name(), "", "{stray:#x}");
    }
}

#[test]
fn follows_pointers_of_per_cpu_objects_into_later_chunks() {
    let mut guest = guest_with_kmalloc();
    // A per-CPU variable that is a mount, whose counters lie in a chunk in vmalloc space.
    let (variable, offset) = (0x400, 0x1234_5000);
    guest.layout.roots.push(Root { kind: RootKind::PerCpuObject, target: 6, address: variable });
    guest.set(direct(PER_CPU_AREAS + variable + 48), offset);
    guest.layout.numbers.vmap_area_root = 0;
    for cpu in 0..CPUS {
        let base = direct(PER_CPU_AREAS + cpu * PER_CPU_UNIT);
        let capture = guest.capture(base + (VMALLOC - DIRECT_MAP) + 4);
        assert_eq!((kind(&capture), capture.type_name()), (CaptureKind::Vmalloc, ""));
        guest.set(direct(PER_CPU_AREAS + variable + 48), VMALLOC - DIRECT_MAP);
        let capture = guest.capture(base + (VMALLOC - DIRECT_MAP) + 4);
        assert_eq!((kind(&capture), capture.cpu, capture.type_name()), (CaptureKind::PerCpu, cpu as u32, "mnt_pcp"));
        assert_eq!((capture.object, capture.typed_start), (VMALLOC - DIRECT_MAP + 4, VMALLOC - DIRECT_MAP));
        guest.set(direct(PER_CPU_AREAS + variable + 48), offset);
    }
}

#[test]
fn an_array_reaches_to_the_end_of_its_allocation() {
    let mut guest = guest_with_kmalloc();
    guest.layout.types[2].name = "fdtable[]".to_owned();
    let (files, table) = (direct(FREE + 0x400), direct(FREE + 0x1000 + 3 * 128));
    guest.set(direct(FREE) + 96, files);
    guest.set(files + 8, table);
    for offset in [0, 60, 127] {
        assert_eq!(guest.capture(table + offset).type_name(), "fdtable[]");
    }
    assert_eq!(guest.capture(table + 128).type_name(), "");
}

#[test]
fn tells_a_tree_nodes_layout_by_the_pointer_to_it() {
    let mut guest = Guest::new();
    guest.cache(direct(CACHE), "maple_node", 256, 256, 0);
    guest.slab(FRAME + 1, direct(CACHE));
    let (tree, root) = (direct(FREE), direct(FREE + 0x1000));
    let (leaf, stray) = (root + 256, root + 512);
    let name = |guest: &Guest, node: u64| guest.capture(node + 100).type_name().to_owned();
    // The tree points to its root, a node of ranges with gaps; that one's third slot points to a leaf.
    guest.set(tree + 16, root | 3 << 3 | 2);
    guest.set(root, tree | 1);
    guest.set(root + 88 + 3 * 8, leaf | 1 << 3 | 4);
    guest.set(leaf, root | 3 << 3 | 6);
    assert_eq!((name(&guest, root), name(&guest, leaf)), ("maple_arange_64".to_owned(), "maple_range_64".to_owned()));
    // A parent without gaps has its slots elsewhere.
    guest.set(root + 88 + 3 * 8, 0);
    guest.set(root + 120 + 3 * 8, leaf | 2 << 3 | 4);
    assert_eq!(name(&guest, leaf), "maple_range_64");
    // A dead node is its own parent; others lead nowhere, or to a tree that has another root.
    for parent in [stray, 0, u64::MAX, tree | 1, root | 0xf8] {
        guest.set(stray, parent);
        assert_eq!(name(&guest, stray), "", "{parent:#x}");
    }
}

#[test]
fn does_not_type_by_a_stale_pointer() {
    let mut guest = guest_with_kmalloc();
    let files = direct(FREE + 0x400);
    guest.set(direct(FREE) + 96, files);
    // Points into the middle of an object, so that a descriptor table would reach into the next.
    guest.set(files + 8, direct(FREE + 0x1000 + 3 * 128 + 100));
    assert_eq!(guest.capture(direct(FREE + 0x1000 + 3 * 128 + 104)).type_name(), "");
}

#[test]
fn survives_pointers_in_circles() {
    let mut guest = guest_with_kmalloc();
    guest.set(image(SUPER_BLOCKS), direct(FREE + 0x1008));
    guest.set(direct(FREE + 0x1008), direct(FREE + 0x1008));
    assert_eq!(guest.capture(direct(FREE + 0x1000 + 9 * 128)).type_name(), "");
}

#[test]
fn one_view_answers_many_questions_alike() {
    let mut guest = guest_with_kmalloc();
    guest.set(image(SUPER_BLOCKS), direct(FREE + 0x1008));
    guest.set(direct(FREE + 0x1008), image(SUPER_BLOCKS));
    let mut view = WindowView::new(guest.memory(), &guest.layout);
    assert!(view.holds_kernel());
    for address in [direct(FREE + 0x1000), direct(FREE + 0x1100), direct(FREE + 0x1040), VMALLOC, image(0), 0] {
        assert_eq!(view.capture(address), guest.capture(address), "{address:#x}");
    }
}

#[test]
fn reads_five_level_page_tables() {
    let mut guest = Guest::new();
    let (direct_map, vmemmap) = (0xff11_0000_0000_0000, 0xffd4_0000_0000_0000);
    guest.five_levels(direct_map, vmemmap, 0xffa0_0000_0000_0000);
    guest.cache(direct(CACHE), "filp", 256, 232, 0);
    guest.slab(FRAME, direct(CACHE));
    // Guest addresses in the cache, moved to where this guest has its direct map.
    guest.set(guest.page(FRAME) + 40, direct_map + CACHE);
    guest.set(direct(CACHE) + 40, direct_map + CACHE + 48);
    let capture = guest.capture(direct_map + FREE + 300);
    assert_eq!(
        (kind(&capture), capture.object, capture.cache_name()),
        (CaptureKind::Slab, direct_map + FREE + 256, "filp")
    );
    assert_eq!(kind(&guest.capture(vmemmap + FRAME * 80)), CaptureKind::StructPage);
    assert_eq!(kind(&guest.capture(0xffa0_0000_0000_1000)), CaptureKind::Vmalloc);
}

#[test]
fn reads_memory_above_the_hole() {
    let mut guest = Guest::new();
    // The upper 64 KiB of RAM lie at 4 GiB; map their `struct page`s.
    guest.below_4g_bytes = RAM_BYTES - 0x1_0000;
    let frame = (1u64 << 32) >> 12;
    let page = VMEMMAP + frame * 80;
    guest.map(page & !0xfff, FREE + 0xf000, 4, false);
    let page_at = direct(FREE + 0xf000 + page % 4096);
    guest.cache(direct(CACHE), "filp", 256, 232, 0);
    guest.set(page_at + 8, SLAB_BIT);
    guest.set(page_at + 40, direct(CACHE));
    let capture = guest.capture(DIRECT_MAP + (1 << 32) + 0x110);
    assert_eq!((kind(&capture), capture.object), (CaptureKind::Slab, DIRECT_MAP + (1 << 32) + 0x100));
    assert_eq!(kind(&guest.capture(DIRECT_MAP + RAM_BYTES)), CaptureKind::Page, "in the hole, without a struct page");
}

#[test]
fn knows_nothing_before_the_kernel_starts() {
    let empty: Vec<_> = (0..RAM_BYTES / 8).map(|_| std::sync::atomic::AtomicU64::new(0)).collect();
    let layout = layout();
    let mut view = WindowView::new(kernel_naming::GuestMemory::new(&empty, u64::MAX), &layout);
    assert!(!view.holds_kernel());
    assert_eq!(kind(&view.capture(direct(FREE))), CaptureKind::Unknown);
    assert_eq!(kind(&view.capture(image(0))), CaptureKind::KernelImage);
}
