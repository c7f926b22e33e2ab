//! Derives a layout from a kernel's own description of itself.
//!
//! Offsets come from BTF and addresses from kallsyms. The pointer graph is generated: for every pair of structures in
//! `NODES`, each pointer field from one to the other is an edge. Only what BTF cannot tell (`void *`, pointers to embedded
//! structures, per-CPU pointers, array pointers) is listed by hand, in `known`. A structure, field or symbol that this kernel does not
//! have is left out of the graph; the numbers themselves must all be there, or the kernel is refused.

use super::known::{
    ARRAYS, CONTAINERS, CONTROLLERS, FDTABLE_LEAST_FILES, FILE_POINTERS, FILE_SYSTEMS, FLEX_GROUP_POINTERS, NODES,
    OPEN_FILES, PER_CPU_OBJECTS, PER_CPU_POINTERS, PIPE_BUFFERS, PIPE_PAGE, POINTER_ARRAY_LIMIT, REGIONS,
    ZONE_PER_CPU_POINTERS,
};
use super::pointers::{Edge, EdgeKind, Guard, Region, Root, RootKind, TYPE_NAME_LIMIT_BYTES, TypeEntry};
use super::text::LAYOUT_VERSION;
use super::{GuestLayout, LayoutError, Numbers};
use crate::btf::KernelTypes;
use crate::symbols::KernelSymbols;

impl GuestLayout {
    /// Derives the layout of the kernel that `types` and `symbols` describe.
    ///
    /// # Errors
    /// [`LayoutError`] names the type, field or symbol that this kernel lacks.
    pub fn derive(types: &KernelTypes, symbols: &KernelSymbols) -> Result<Self, LayoutError> {
        let source = Source { types, symbols };
        let numbers = source.numbers()?;
        let mut graph = Graph { source, types: Vec::new(), roots: Vec::new(), edges: Vec::new() };
        graph.add_nodes();
        graph.add_listed_edges();
        graph.add_roots(&numbers);
        graph.edges.sort_by_key(|edge| (edge.source, edge.offset_bytes));
        let regions = graph.source.regions();
        Ok(Self { numbers, types: graph.types, roots: graph.roots, edges: graph.edges, regions })
    }
}

/// A 32-bit word of `struct page`: where it is, which bits count, their value.
struct Mark {
    offset: u64,
    mask: u64,
    value: u64,
}

struct Source<'a> {
    types: &'a KernelTypes,
    symbols: &'a KernelSymbols,
}

impl Source<'_> {
    fn offset(&self, structure: &str, path: &str) -> Result<u64, LayoutError> {
        let member = self.types.member(structure, path);
        Ok(member.ok_or_else(|| LayoutError::MissingType(format!("struct {structure}.{path}")))?.offset_bytes)
    }

    fn size(&self, structure: &str) -> Result<u64, LayoutError> {
        let size_bytes = self.types.structure_size(structure);
        size_bytes.ok_or_else(|| LayoutError::MissingType(format!("struct {structure}")))
    }

    fn symbol(&self, name: &str) -> Result<u64, LayoutError> {
        self.symbols.address(name).ok_or_else(|| LayoutError::MissingSymbol(name.to_owned()))
    }

    /// A symbol that newer or smaller kernels do without.
    fn optional(&self, name: &str) -> u64 {
        self.symbols.address(name).unwrap_or(0)
    }

    fn numbers(&self) -> Result<Numbers, LayoutError> {
        let slab = self.mark("slab")?;
        let table = self.mark("table")?;
        Ok(Numbers {
            layout_version: LAYOUT_VERSION,
            image_start: self.symbol("_text")?,
            code_end: self.symbol("_etext")?,
            image_end: self.symbol("_end")?,
            init_start: self.optional("__init_begin"),
            init_end: self.optional("__init_end"),
            page_offset_variable: self.optional("page_offset_base"),
            vmemmap_variable: self.optional("vmemmap_base"),
            vmalloc_variable: self.optional("vmalloc_base"),
            top_page_table: self.symbol("init_top_pgt")?,
            banner: self.symbol("linux_banner")?,
            page_size: self.size("page")?,
            page_flags: self.offset("page", "flags")?,
            page_reserved_bit: self.page_flag("PG_reserved")?,
            page_compound_head: self.offset("page", "compound_head")?,
            page_mapping: self.offset("page", "mapping")?,
            slab_mark_offset: slab.offset,
            slab_mark_mask: slab.mask,
            slab_mark_value: slab.value,
            table_mark_offset: table.offset,
            table_mark_mask: table.mask,
            table_mark_value: table.value,
            mapping_host: self.offset("address_space", "host")?,
            slab_cache: self.offset("slab", "slab_cache")?,
            cache_size: self.offset("kmem_cache", "size")?,
            cache_object_size: self.offset("kmem_cache", "object_size")?,
            cache_name: self.offset("kmem_cache", "name")?,
            cache_red_left_pad: self.offset("kmem_cache", "red_left_pad")?,
            per_cpu_offsets: self.symbol("__per_cpu_offset")?,
            per_cpu_start: self.symbol("__per_cpu_start")?,
            per_cpu_end: self.symbol("__per_cpu_end")?,
            cpu_count_variable: self.optional("nr_cpu_ids"),
            per_cpu_unit_variable: self.optional("pcpu_unit_size"),
            per_cpu_base_variable: self.optional("pcpu_base_addr"),
            per_cpu_chunk_variable: if self.types.structure("pcpu_chunk").is_some() {
                self.optional("pcpu_first_chunk")
            } else {
                0
            },
            chunk_base_address: self.offset("pcpu_chunk", "base_addr").unwrap_or(0),
            chunk_page_count: self.offset("pcpu_chunk", "nr_pages").unwrap_or(0),
            current_task: self.current_task()?,
            init_task: self.symbol("init_task")?,
            task_tasks: self.offset("task_struct", "tasks")?,
            task_signal: self.offset("task_struct", "signal")?,
            task_thread_node: self.offset("task_struct", "thread_node")?,
            signal_thread_head: self.offset("signal_struct", "thread_head")?,
            task_stack: self.offset("task_struct", "stack")?,
            task_comm: self.offset("task_struct", "comm")?,
            task_pid: self.offset("task_struct", "pid")?,
            stack_size: self.types.structure_size("thread_union").unwrap_or(16 << 10),
            vmap_area_root: self.optional("vmap_area_root"),
            vmap_area_start: self.offset("vmap_area", "va_start")?,
            vmap_area_end: self.offset("vmap_area", "va_end")?,
            vmap_area_node: self.offset("vmap_area", "rb_node")?,
            vmap_area_vm: self.offset("vmap_area", "vm")?,
            node_left: self.offset("rb_node", "rb_left")?,
            node_right: self.offset("rb_node", "rb_right")?,
            vm_address: self.offset("vm_struct", "addr")?,
            vm_size: self.offset("vm_struct", "size")?,
            vm_caller: self.offset("vm_struct", "caller")?,
            dentry_name: self.offset("dentry", "d_name.name")?,
            dentry_inode: self.offset("dentry", "d_inode")?,
            dentry_alias: self.offset("dentry", "d_u.d_alias")?,
            file_dentry: self.offset("file", "f_path.dentry")?,
            inode_mode: self.offset("inode", "i_mode")?,
            inode_dentries: self.offset("inode", "i_dentry")?,
            mapping_pages: self.offset("address_space", "i_pages")?,
            tree_node_array: self.offset("xa_node", "array")?,
            inode_in_shmem: self.offset("shmem_inode_info", "vfs_inode").unwrap_or(0),
            inode_in_ext4: self.offset("ext4_inode_info", "vfs_inode").unwrap_or(0),
            inode_in_xfs: self.offset("xfs_inode", "i_vnode").unwrap_or(0),
            inode_in_btrfs: self.offset("btrfs_inode", "vfs_inode").unwrap_or(0),
            inode_in_block_device: self.offset("bdev_inode", "vfs_inode").unwrap_or(0),
            maple_tree_root: self.offset("maple_tree", "ma_root").unwrap_or(0),
            maple_range_slots: self.offset("maple_range_64", "slot").unwrap_or(0),
            maple_gap_range_slots: self.offset("maple_arange_64", "slot").unwrap_or(0),
        })
    }

    fn page_flag(&self, name: &str) -> Result<u64, LayoutError> {
        let bit = self.types.enumerator("pageflags", name);
        let bit = bit.and_then(|bit| u64::try_from(bit).ok()).filter(|bit| *bit < 32);
        bit.ok_or_else(|| LayoutError::MissingType(format!("enum pageflags.{name}")))
    }

    /// How `struct page` tells a slab page or page table; `include/linux/page-flags.h` changed three times.
    fn mark(&self, what: &str) -> Result<Mark, LayoutError> {
        let type_word = self.offset("page", "page_type")?;
        // 6.12 and newer: the top byte of page_type is a number.
        if let Some(value) = self.types.enumerator("pagetype", &format!("PGTY_{what}")) {
            return Ok(Mark { offset: type_word, mask: 0xff00_0000, value: value.cast_unsigned() << 24 });
        }
        // 6.11: the top bit is set, and the type's bit is cleared.
        if let Some(bit) = self.types.enumerator("pagetype", &format!("PG_{what}")) {
            return Ok(Mark { offset: type_word, mask: 0x8000_0000 | bit.cast_unsigned(), value: 0x8000_0000 });
        }
        if what == "slab" {
            // Up to 6.9: a page flag.
            let bit = 1 << self.page_flag("PG_slab")?;
            return Ok(Mark { offset: self.offset("page", "flags")?, mask: bit, value: bit });
        }
        // Up to 6.10: PAGE_TYPE_BASE is set, and PG_table (a macro, not in BTF) is cleared.
        Ok(Mark { offset: type_word, mask: 0xf000_0200, value: 0xf000_0000 })
    }

    /// The per-CPU pointer to the running task: a variable of its own, or (6.2 to 6.14) part of `pcpu_hot`.
    fn current_task(&self) -> Result<u64, LayoutError> {
        if let Some(offset) = self.symbols.address("current_task") {
            return Ok(offset);
        }
        let hot = self.symbol("pcpu_hot").map_err(|_| LayoutError::MissingSymbol("current_task".to_owned()))?;
        Ok(hot + self.offset("pcpu_hot", "current_task")?)
    }

    fn regions(&self) -> Vec<Region> {
        let found = REGIONS.iter().filter_map(|(name, size, entries, entry_bytes)| {
            let (pointer, entries_variable) = (self.symbols.address(name)?, self.symbols.address(size)?);
            let (name, entries) = ((*name).to_owned(), *entries);
            Some(Region { name, pointer, entries_variable, entries, entry_bytes: *entry_bytes })
        });
        found.collect()
    }
}

/// The pointer graph while it is built.
struct Graph<'a> {
    source: Source<'a>,
    types: Vec<TypeEntry>,
    roots: Vec<Root>,
    edges: Vec<Edge>,
}

impl Graph<'_> {
    /// The index of a type, which is added if it is new. `None` if the name is too long to be captured.
    fn index(&mut self, name: &str, size_bytes: u64) -> Option<u16> {
        if let Some(position) = self.types.iter().position(|entry| entry.name == name) {
            return Some(position as u16);
        }
        if name.len() > TYPE_NAME_LIMIT_BYTES {
            return None;
        }
        self.types.push(TypeEntry { name: name.to_owned(), size_bytes });
        Some((self.types.len() - 1) as u16)
    }

    fn structure(&mut self, name: &str) -> Option<u16> {
        let size_bytes = self.source.types.structure_size(name)?;
        self.index(name, size_bytes)
    }

    /// All structures of `NODES`, and the pointers between them.
    fn add_nodes(&mut self) {
        for name in NODES {
            self.structure(name);
        }
        for name in NODES {
            let Some(source) = self.structure(name) else { continue };
            let types = self.source.types;
            for pointer in types.pointer_members(name) {
                let (target, embedded) = match CONTAINERS.iter().find(|entry| entry.0 == pointer.target) {
                    Some((_, container, member)) => {
                        (*container, types.member(container, member).map_or(0, |member| member.offset_bytes))
                    }
                    None => (pointer.target, 0),
                };
                if !NODES.contains(&target) || is_listed(name, pointer.target) {
                    continue;
                }
                let kind = match pointer.count {
                    1 => EdgeKind::Pointer,
                    count => EdgeKind::Pointers(count.min(POINTER_ARRAY_LIMIT)),
                };
                let Some(target) = self.structure(target) else { continue };
                self.edges.push(Edge {
                    source,
                    kind,
                    offset_bytes: pointer.offset_bytes as u32,
                    target,
                    target_offset_bytes: embedded as u32,
                    guard: None,
                });
            }
        }
    }

    fn add_edge(&mut self, structure: &str, field: &str, kind: EdgeKind, target: Option<u16>, guard: Option<Guard>) {
        let offset = self.source.offset(structure, field);
        if let (Ok(offset), Some(source), Some(target)) = (offset, self.structure(structure), target) {
            let offset_bytes = offset as u32;
            self.edges.push(Edge { source, kind, offset_bytes, target, target_offset_bytes: 0, guard });
        }
    }

    /// The edges that BTF cannot tell.
    fn add_listed_edges(&mut self) {
        for (structure, field, pointed, table) in
            [("super_block", "s_op", "s_fs_info", FILE_SYSTEMS), ("file", "f_op", "private_data", OPEN_FILES)]
        {
            for (operations, target) in table {
                let (Some(value), Ok(offset)) =
                    (self.source.symbols.address(operations), self.source.offset(structure, field))
                else {
                    continue;
                };
                let guard = Guard { offset_bytes: offset as u32, mask: u64::MAX, value };
                let target = self.structure(target);
                self.add_edge(structure, pointed, EdgeKind::Pointer, target, Some(guard));
            }
        }
        for (structure, field, target) in PER_CPU_POINTERS {
            let target = self.structure(target).or_else(|| self.index(target, 4));
            self.add_edge(structure, field, EdgeKind::PerCpu, target, None);
        }
        self.add_zone_edges();
        self.add_pipe_pages();
        for (structure, field, description, size_bytes) in ARRAYS {
            let target = self.structure(description).or_else(|| self.index(description, *size_bytes));
            self.add_edge(structure, field, EdgeKind::Pointer, target, None);
        }
        for list in ["s_inode_lru", "s_dentry_lru"] {
            let target = self.structure("list_lru_node");
            self.add_edge("super_block", &format!("{list}.node"), EdgeKind::Pointer, target, None);
        }
        // A fifo's inode; the field is in a union.
        let fifo = Guard { offset_bytes: 0, mask: 0xf000, value: 0x1000 };
        let pipe = self.structure("pipe_inode_info");
        self.add_edge("inode", "i_pipe", EdgeKind::Pointer, pipe, Some(fifo));
        let node = self.structure("mem_cgroup_per_node");
        self.add_edge("mem_cgroup", "nodeinfo", EdgeKind::Pointers(1), node, None);
        for (enumerator, controller) in CONTROLLERS {
            let index = self.source.types.enumerator("cgroup_subsys_id", enumerator);
            let (Some(index), Ok(base)) = (index, self.source.offset("css_set", "subsys")) else { continue };
            let (Some(source), Some(target)) = (self.structure("css_set"), self.structure(controller)) else {
                continue;
            };
            let offset_bytes = base as u32 + 8 * index as u32;
            self.edges.push(Edge {
                source,
                kind: EdgeKind::Pointer,
                offset_bytes,
                target,
                target_offset_bytes: 0,
                guard: None,
            });
        }
        for (pointers, count, pointed) in
            [(FILE_POINTERS, FDTABLE_LEAST_FILES, "file"), (FLEX_GROUP_POINTERS, 1, "flex_groups")]
        {
            let Some(target) = self.structure(pointed) else { continue };
            let Some(source) = self.index(pointers, 8 * u64::from(count)) else { continue };
            let kind = EdgeKind::Pointers(count);
            self.edges.push(Edge { source, kind, offset_bytes: 0, target, target_offset_bytes: 0, guard: None });
        }
    }

    /// The per-CPU pointers of a node's zones, which are embedded in it as an array.
    fn add_zone_edges(&mut self) {
        let types = self.source.types;
        let (Some(zones), Some(zone_bytes)) = (types.member("pglist_data", "node_zones"), types.structure_size("zone"))
        else {
            return;
        };
        let Some(source) = self.structure("pglist_data") else { return };
        for (field, target) in ZONE_PER_CPU_POINTERS {
            let (Ok(offset), Some(target)) = (self.source.offset("zone", field), self.structure(target)) else {
                continue;
            };
            let count = zones.size_bytes.checked_div(zone_bytes).unwrap_or(0);
            for index in 0..count.min(u64::from(POINTER_ARRAY_LIMIT) * 2) {
                let offset_bytes = (zones.offset_bytes + index * zone_bytes + offset) as u32;
                let kind = EdgeKind::PerCpu;
                self.edges.push(Edge { source, kind, offset_bytes, target, target_offset_bytes: 0, guard: None });
            }
        }
    }

    /// The pages that a pipe's buffers hold, and those that it keeps.
    fn add_pipe_pages(&mut self) {
        let types = self.source.types;
        let kept = types.member("pipe_inode_info", "tmp_page").map_or(0, |member| member.size_bytes / 8);
        let (Some(pipe), Some(kept_at)) =
            (self.structure("pipe_inode_info"), self.source.offset("pipe_inode_info", "tmp_page").ok())
        else {
            return;
        };
        let (Ok(page_at), Some(buffer_bytes)) =
            (self.source.offset("pipe_buffer", "page"), types.structure_size("pipe_buffer"))
        else {
            return;
        };
        let (Some(ring), Some(target)) = (self.index("pipe_buffer[]", buffer_bytes), self.index(PIPE_PAGE, 4096))
        else {
            return;
        };
        let of_ring = (0..u64::from(PIPE_BUFFERS)).map(|index| (ring, index * buffer_bytes + page_at));
        let of_pipe = (0..kept).map(|index| (pipe, kept_at + 8 * index));
        for (source, offset) in of_ring.chain(of_pipe) {
            let (kind, offset_bytes) = (EdgeKind::Page, offset as u32);
            self.edges.push(Edge { source, kind, offset_bytes, target, target_offset_bytes: 0, guard: None });
        }
    }

    fn add_root(&mut self, kind: RootKind, variable: &str, structure: &str) {
        if let (Some(address), Some(target)) = (self.source.symbols.address(variable), self.structure(structure)) {
            self.roots.push(Root { kind, target, address });
        }
    }

    fn add_roots(&mut self, numbers: &Numbers) {
        if let Some(target) = self.structure("task_struct") {
            self.roots.push(Root { kind: RootKind::PerCpuPointer, target, address: numbers.current_task });
        }
        for (variable, structure) in PER_CPU_OBJECTS {
            self.add_root(RootKind::PerCpuObject, variable, structure);
        }
        for (variable, structure) in [
            ("init_task", "task_struct"),
            ("init_nsproxy", "nsproxy"),
            ("init_css_set", "css_set"),
            ("cgrp_dfl_root", "cgroup_root"),
        ] {
            self.add_root(RootKind::Object, variable, structure);
        }
        self.add_root(RootKind::Pointer, "root_mem_cgroup", "mem_cgroup");
        self.add_root(RootKind::Pointer, "root_ns", "aa_ns");
        self.add_root(RootKind::Pointers(POINTER_ARRAY_LIMIT), "node_data", "pglist_data");
        if let Ok(offset) = self.source.offset("super_block", "s_list") {
            self.add_root(RootKind::List(offset as u32), "super_blocks", "super_block");
        }
        if let Ok(offset) = self.source.offset("workqueue_struct", "list") {
            self.add_root(RootKind::List(offset as u32), "workqueues", "workqueue_struct");
        }
        // All tasks, of which `init_task` is the head; last, since most of them have nothing to do with a window.
        if let Some(target) = self.structure("task_struct") {
            let kind = RootKind::List(numbers.task_tasks as u32);
            self.roots.push(Root { kind, target, address: numbers.init_task + numbers.task_tasks });
        }
    }
}

/// Whether pointers from `structure` to `target` are listed by hand, since they are no plain pointers.
fn is_listed(structure: &str, target: &str) -> bool {
    PER_CPU_POINTERS.iter().any(|entry| entry.0 == structure && entry.2 == target)
        || ARRAYS.iter().any(|entry| entry.0 == structure && entry.2.strip_suffix("[]") == Some(target))
        || (structure == "fdtable" && target == "file")
}
