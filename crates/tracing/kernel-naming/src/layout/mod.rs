//! What capturing must know about one kernel build: offsets, addresses of its variables, and which pointers lead where.
//!
//! [`GuestLayout`] is derived on the host from BTF and kallsyms ([`derive`](GuestLayout::derive)), written as text, and
//! read back inside the emulator. Addresses are virtual, as in kallsyms; where memory is mapped (the bases of the direct
//! map, of `vmemmap` and of `vmalloc`) is read from the guest's variables at capture time, so 4- and 5-level page tables and
//! `CONFIG_RANDOMIZE_MEMORY` need nothing here. The kernel image itself must not be moved (`nokaslr`).

mod derive;
mod known;
mod pointers;
mod text;

pub use pointers::{Edge, EdgeKind, Guard, Region, RegionEntries, Root, RootKind, TYPE_NAME_LIMIT_BYTES, TypeEntry};

/// Why a layout cannot be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// BTF lacks a type or field.
    #[error(
        "the kernel's BTF has no `{0}`; this kernel is not one whose objects can be named (expected 5.17 or newer)"
    )]
    MissingType(String),
    /// kallsyms lacks a symbol.
    #[error("the kernel's symbol table has no `{0}`; expected /proc/kallsyms of a kernel with CONFIG_KALLSYMS_ALL")]
    MissingSymbol(String),
    /// The layout's text is damaged.
    #[error("line {line} of the layout: {problem}")]
    Text {
        /// Counted from 1.
        line: usize,
        /// What was expected and what was found.
        problem: String,
    },
}

/// Declares the single numbers of a layout once: as fields of `Numbers`, and as the keys of its text.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The single numbers of a layout. Offsets and sizes in bytes, addresses virtual. An address of 0 means that this
        /// kernel does not have the variable.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Numbers {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Numbers {
            /// Keys of the text, in order.
            pub(crate) const KEYS: &'static [&'static str] = &[$(stringify!($name)),*];

            pub(crate) fn values(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }

            /// Sets the number of that key; `false` if there is none.
            pub(crate) fn set(&mut self, key: &str, value: u64) -> bool {
                match key {
                    $(stringify!($name) => self.$name = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

numbers! {
    /// Version of the text; see `text.rs`.
    layout_version,
    /// Start of the kernel image (`_text`).
    image_start,
    /// End of the kernel's code (`_etext`).
    code_end,
    /// End of the kernel image (`_end`).
    image_end,
    /// `__init_begin`, start of what is freed after boot.
    init_start,
    /// `__init_end`.
    init_end,
    /// Variable `page_offset_base`: start of the direct map.
    page_offset_variable,
    /// Variable `vmemmap_base`: start of the array of `struct page`.
    vmemmap_variable,
    /// Variable `vmalloc_base`: start of vmalloc space.
    vmalloc_variable,
    /// Top page table `init_top_pgt` (`swapper_pg_dir`).
    top_page_table,
    /// The text `linux_banner`.
    banner,

    /// Size of `struct page`.
    page_size,
    /// `page.flags`.
    page_flags,
    /// Bit number of `PG_reserved`.
    page_reserved_bit,
    /// `page.compound_head`.
    page_compound_head,
    /// `page.mapping`.
    page_mapping,
    /// Offset of the 32-bit word that tells a slab page.
    slab_mark_offset,
    /// Its bits that count.
    slab_mark_mask,
    /// Their value on a slab page.
    slab_mark_value,
    /// Offset of the 32-bit word that tells a page table.
    table_mark_offset,
    /// Its bits that count.
    table_mark_mask,
    /// Their value on a page table.
    table_mark_value,
    /// `address_space.host`.
    mapping_host,

    /// `slab.slab_cache`.
    slab_cache,
    /// `kmem_cache.size`: distance of objects.
    cache_size,
    /// `kmem_cache.object_size`: what was asked for.
    cache_object_size,
    /// `kmem_cache.name`.
    cache_name,
    /// `kmem_cache.red_left_pad`.
    cache_red_left_pad,

    /// Array `__per_cpu_offset`.
    per_cpu_offsets,
    /// `__per_cpu_start`, where offsets of per-CPU variables begin.
    per_cpu_start,
    /// `__per_cpu_end`, where those of static variables end.
    per_cpu_end,
    /// Variable `nr_cpu_ids`; 0 where it is a constant.
    cpu_count_variable,
    /// Variable `pcpu_unit_size`: bytes from one CPU's part of the first chunk to the next one's.
    per_cpu_unit_variable,
    /// Variable `pcpu_base_addr`: where the first CPU's part begins.
    per_cpu_base_variable,
    /// Variable `pcpu_first_chunk`: the chunk that serves the end of each part; what lies after that was given back at
    /// boot.
    per_cpu_chunk_variable,
    /// `pcpu_chunk.base_addr`, in the first CPU's part.
    chunk_base_address,
    /// `pcpu_chunk.nr_pages`, of each part.
    chunk_page_count,
    /// Offset, in the per-CPU area, of the pointer to the running task.
    current_task,

    /// Variable `init_task`, from which all tasks are reached.
    init_task,
    /// `task_struct.tasks`.
    task_tasks,
    /// `task_struct.signal`.
    task_signal,
    /// `task_struct.thread_node`.
    task_thread_node,
    /// `signal_struct.thread_head`.
    signal_thread_head,
    /// `task_struct.stack`.
    task_stack,
    /// `task_struct.comm`.
    task_comm,
    /// `task_struct.pid`.
    task_pid,
    /// Size of a kernel stack.
    stack_size,

    /// Variable `vmap_area_root`; 0 where there are several trees (6.9 and newer).
    vmap_area_root,
    /// `vmap_area.va_start`.
    vmap_area_start,
    /// `vmap_area.va_end`.
    vmap_area_end,
    /// `vmap_area.rb_node`.
    vmap_area_node,
    /// `vmap_area.vm`.
    vmap_area_vm,
    /// `rb_node.rb_left`.
    node_left,
    /// `rb_node.rb_right`.
    node_right,
    /// `vm_struct.addr`.
    vm_address,
    /// `vm_struct.size`.
    vm_size,
    /// `vm_struct.caller`.
    vm_caller,

    /// `dentry.d_name.name`.
    dentry_name,
    /// `dentry.d_inode`.
    dentry_inode,
    /// `dentry.d_u.d_alias`, by which it is on its inode's list.
    dentry_alias,
    /// `file.f_path.dentry`.
    file_dentry,
    /// `inode.i_mode`.
    inode_mode,
    /// `inode.i_dentry`, the list of its dentries.
    inode_dentries,
    /// `address_space.i_pages`.
    mapping_pages,
    /// `xa_node.array`.
    tree_node_array,
    /// `shmem_inode_info.vfs_inode`; this one and the others like it are 0 where the kernel has no such file system.
    inode_in_shmem,
    /// `ext4_inode_info.vfs_inode`.
    inode_in_ext4,
    /// `xfs_inode.i_vnode`.
    inode_in_xfs,
    /// `btrfs_inode.vfs_inode`.
    inode_in_btrfs,
    /// `bdev_inode.vfs_inode`.
    inode_in_block_device,

    /// `maple_tree.ma_root`; 0 like the two below before 6.1, which has no such trees.
    maple_tree_root,
    /// `maple_range_64.slot`.
    maple_range_slots,
    /// `maple_arange_64.slot`.
    maple_gap_range_slots,
}

/// Offsets and addresses of one kernel build, and the pointers that type what has no cache of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestLayout {
    /// The single numbers.
    pub numbers: Numbers,
    /// Types that pointers lead to; edges and roots refer to them by index.
    pub types: Vec<TypeEntry>,
    /// Where the walk along pointers starts.
    pub roots: Vec<Root>,
    /// Pointers within typed objects, sorted by the type that holds them.
    pub edges: Vec<Edge>,
    /// Tables that a variable points to and another variable gives the size of.
    pub regions: Vec<Region>,
}

impl GuestLayout {
    /// The pointers that objects of type `index` hold.
    pub(crate) fn edges_of(&self, index: u16) -> &[Edge] {
        let start = self.edges.partition_point(|edge| edge.source < index);
        let end = self.edges.partition_point(|edge| edge.source <= index);
        self.edges.get(start..end).unwrap_or(&[])
    }
}
