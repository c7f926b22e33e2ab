//! What BTF does not tell: which structure a slab cache holds, which structures have a name of their own wherever they are
//! embedded, where a field path should end, and which types well-known variables have.

use super::usage::Use;

/// Slab caches whose name is not that of their structure. A cache that is missing here is tried as `struct NAME`, and
/// without `_cache`. Sources: the `kmem_cache_create` calls and `KMEM_CACHE` uses of Linux 6.1 to 6.12.
const CACHES: &[(&str, &str)] = &[
    ("TCP", "tcp_sock"),
    ("TCPv6", "tcp6_sock"),
    ("UDP", "udp_sock"),
    ("UDPv6", "udp6_sock"),
    ("UDP-Lite", "udp_sock"),
    ("RAW", "raw_sock"),
    ("RAWv6", "raw6_sock"),
    ("PING", "inet_sock"),
    ("UNIX", "unix_sock"),
    ("UNIX-STREAM", "unix_sock"),
    ("Acpi-Namespace", "acpi_namespace_node"),
    ("Acpi-Operand", "acpi_operand_object"),
    ("Acpi-Parse", "acpi_parse_object"),
    ("anon_vma_chain", "anon_vma_chain"),
    ("bdev_cache", "bdev_inode"),
    ("biovec-16", "bio_vec"),
    ("biovec-64", "bio_vec"),
    ("biovec-128", "bio_vec"),
    ("biovec-max", "bio_vec"),
    ("blkdev_ioc", "io_context"),
    ("blkdev_queue", "request_queue"),
    ("blkdev_requests", "request"),
    ("btrfs_extent_buffer", "extent_buffer"),
    ("btrfs_extent_map", "extent_map"),
    ("btrfs_extent_state", "extent_state"),
    ("btrfs_free_space", "btrfs_free_space"),
    ("btrfs_inode", "btrfs_inode"),
    ("btrfs_ordered_extent", "btrfs_ordered_extent"),
    ("configfs_dir_cache", "configfs_dirent"),
    ("cred_jar", "cred"),
    ("dax_cache", "dax_device"),
    ("dnotify_mark", "dnotify_mark"),
    ("ep_head", "epitems_head"),
    ("eventpoll_epi", "epitem"),
    ("eventpoll_pwq", "eppoll_entry"),
    ("ext4_extent_status", "extent_status"),
    ("ext4_groupinfo_1k", "ext4_group_info"),
    ("ext4_groupinfo_2k", "ext4_group_info"),
    ("ext4_groupinfo_4k", "ext4_group_info"),
    ("ext4_inode_cache", "ext4_inode_info"),
    ("ext4_pending_reservation", "pending_reservation"),
    ("fasync_cache", "fasync_struct"),
    ("fat_inode_cache", "msdos_inode_info"),
    ("file_lock_ctx", "file_lock_context"),
    ("files_cache", "files_struct"),
    ("filp", "file"),
    ("fs_cache", "fs_struct"),
    ("fuse_request", "fuse_req"),
    ("hugetlbfs_inode_cache", "hugetlbfs_inode_info"),
    ("inode_cache", "inode"),
    ("ip_dst_cache", "rtable"),
    ("isofs_inode_cache", "iso_inode_info"),
    ("jbd2_inode", "jbd2_inode"),
    ("jbd2_journal_handle", "jbd2_journal_handle"),
    ("jbd2_journal_head", "journal_head"),
    ("jbd2_revoke_record_s", "jbd2_revoke_record_s"),
    ("jbd2_transaction_s", "transaction_s"),
    ("kernfs_iattrs_cache", "kernfs_iattrs"),
    ("kernfs_node_cache", "kernfs_node"),
    ("key_jar", "key"),
    ("khugepaged_mm_slot", "khugepaged_mm_slot"),
    ("mb_cache", "mb_cache_entry"),
    ("mbcache", "mb_cache_entry"),
    ("mnt_cache", "mount"),
    ("mqueue_inode_cache", "mqueue_inode_info"),
    ("names_cache", "filename"),
    ("net_namespace", "net"),
    ("numa_policy", "mempolicy"),
    ("ovl_aio_req", "ovl_aio_req"),
    ("ovl_inode", "ovl_inode"),
    ("posix_timers_cache", "k_itimer"),
    ("proc_inode_cache", "proc_inode"),
    ("radix_tree_node", "xa_node"),
    ("request_sock_TCP", "tcp_request_sock"),
    ("request_sock_TCPv6", "tcp_request_sock"),
    ("sgpool-8", "scatterlist"),
    ("shared_policy_node", "sp_node"),
    ("shmem_inode_cache", "shmem_inode_info"),
    ("sighand_cache", "sighand_struct"),
    ("signal_cache", "signal_struct"),
    ("skbuff_ext_cache", "skb_ext"),
    ("skbuff_fclone_cache", "sk_buff_fclones"),
    ("skbuff_head_cache", "sk_buff"),
    ("skbuff_small_head", "sk_buff"),
    ("sock_inode_cache", "socket_alloc"),
    ("squashfs_inode_cache", "squashfs_inode_info"),
    ("task_delay_info", "task_delay_info"),
    ("tw_sock_TCP", "tcp_timewait_sock"),
    ("tw_sock_TCPv6", "tcp_timewait_sock"),
    ("uid_cache", "user_struct"),
    ("userfaultfd_ctx_cache", "userfaultfd_ctx"),
    ("vm_area", "vm_area_struct"),
    ("xfs_buf_item", "xfs_buf_log_item"),
    ("xfs_ili", "xfs_inode_log_item"),
    ("xfs_log_ticket", "xlog_ticket"),
];

/// Structures that kernel developers name by themselves wherever they are embedded: `shmem_inode_info.vfs_inode.i_rwsem` is
/// `struct inode.i_rwsem`, whichever file system the inode belongs to.
const WELL_KNOWN: &[&str] = &[
    "address_space",
    "anon_vma",
    "backing_dev_info",
    "bdi_writeback",
    "block_device",
    "cfs_rq",
    "cgroup",
    "cgroup_subsys_state",
    "cred",
    "dentry",
    "dl_rq",
    "file",
    "fdtable",
    "fs_struct",
    "inode",
    "inet_sock",
    "kernfs_node",
    "kobject",
    "lruvec",
    "mm_struct",
    "mount",
    "net",
    "page",
    "page_counter",
    "per_cpu_pages",
    "pid",
    "request_queue",
    "rq",
    "rt_rq",
    "sk_buff",
    "sock",
    "socket",
    "socket_wq",
    "super_block",
    "task_struct",
    "unix_sock",
    "vfsmount",
    "vm_area_struct",
    "xa_node",
    "zone",
];

/// Types that are one word or thing to a developer: both paths end at a field of such a type.
const WORDS: &[&str] = &[
    "atomic64_t",
    "atomic_long_t",
    "atomic_t",
    "kgid_t",
    "kref",
    "kuid_t",
    "local64_t",
    "local_t",
    "nodemask_t",
    "pgd_t",
    "pmd_t",
    "pte_t",
    "pud_t",
    "qspinlock",
    "raw_spinlock",
    "raw_spinlock_t",
    "refcount_struct",
    "refcount_t",
    "rwlock_t",
    "seqcount_raw_spinlock_t",
    "seqcount_spinlock_t",
    "seqcount_t",
    "spinlock",
    "spinlock_t",
];

/// Types with inner fields that matter only to those who work on the type itself: the short path ends at a field of such a
/// type, the full one goes on.
const BUILDING_BLOCKS: &[&str] = &[
    "callback_head",
    "completion",
    "delayed_work",
    "hlist_bl_head",
    "hlist_bl_node",
    "hlist_head",
    "hlist_node",
    "hrtimer",
    "ida",
    "idr",
    "irq_work",
    "kernel_siginfo",
    "list_head",
    "list_lru",
    "llist_head",
    "llist_node",
    "local_lock_t",
    "lockref",
    "maple_tree",
    "mutex",
    "optimistic_spin_queue",
    "osq_lock",
    "percpu_counter",
    "percpu_ref",
    "percpu_rw_semaphore",
    "plist_head",
    "plist_node",
    "qstr",
    "ratelimit_state",
    "rb_node",
    "rb_root",
    "rb_root_cached",
    "rcu_head",
    "rcu_sync",
    "rcu_work",
    "rcuwait",
    "rt_mutex",
    "rt_mutex_base",
    "rw_semaphore",
    "semaphore",
    "seqlock_t",
    "sigset_t",
    "srcu_struct",
    "swait_queue_head",
    "timer_list",
    "timespec64",
    "uuid_t",
    "wait_queue_entry",
    "wait_queue_head",
    "wait_queue_head_t",
    "work_struct",
    "xarray",
];

/// Variables of the kernel image that have structure type; BTF describes no globals but per-CPU ones.
const VARIABLES: &[(&str, &str)] = &[
    ("cgrp_dfl_root", "cgroup_root"),
    ("cpuhp_tasks", "task_struct"),
    ("def_root_domain", "root_domain"),
    ("init_cred", "cred"),
    ("init_css_set", "css_set"),
    ("init_files", "files_struct"),
    ("init_fs", "fs_struct"),
    ("init_ipc_ns", "ipc_namespace"),
    ("init_mm", "mm_struct"),
    ("init_net", "net"),
    ("init_nsproxy", "nsproxy"),
    ("init_pid_ns", "pid_namespace"),
    ("init_sighand", "sighand_struct"),
    ("init_signals", "signal_struct"),
    ("init_struct_pid", "pid"),
    ("init_task", "task_struct"),
    ("init_ucounts", "ucounts"),
    ("init_user_ns", "user_namespace"),
    ("init_uts_ns", "uts_namespace"),
    ("kmem_cache_boot", "kmem_cache"),
    ("noop_backing_dev_info", "backing_dev_info"),
    ("nr_files", "percpu_counter"),
    ("psi_system", "psi_group"),
    ("rcu_state", "rcu_state"),
    ("root_task_group", "task_group"),
    ("root_user", "user_struct"),
    ("top_cpuset", "cpuset"),
    ("vm_numa_event", "vm_event_state"),
];

/// Variables of the kernel image that are kernel stacks.
const STACK_VARIABLES: &[&str] = &["init_stack", "init_thread_union"];

/// Per-CPU variables that are stacks.
const PER_CPU_STACKS: &[&str] = &["irq_stack_backing_store", "exception_stacks", "entry_stack_storage"];

/// Per-CPU memory that was allocated at run time and has no type.
pub(super) const DYNAMIC_PER_CPU: &str = "per-CPU (dynamic)";

/// Code that allocates areas of vmalloc space, and what they are.
const VMALLOC_CALLERS: &[(&str, &str)] = &[
    ("copy_process", "kernel stack"),
    ("dup_task_struct", "kernel stack"),
    ("irq_init_percpu_irqstack", "interrupt stack"),
    ("pcpu_get_vm_areas", DYNAMIC_PER_CPU),
    ("pcpu_create_chunk", DYNAMIC_PER_CPU),
];

/// What the slab allocator keeps in a free object.
pub(super) const FREE_LIST_LINK: &str = "free list link";

/// Functions of the slab allocator that read or write links of free objects (`mm/slub.c`).
const SLAB_FUNCTIONS: &[&str] = &[
    "___slab_alloc",
    "__kmalloc",
    "__kmalloc_node",
    "__kmalloc_node_track_caller",
    "__kmem_cache_alloc_bulk",
    "__kmem_cache_alloc_node",
    "__kmem_cache_free",
    "__slab_alloc",
    "__slab_free",
    "__unfreeze_partials",
    "allocate_slab",
    "deactivate_slab",
    "get_partial_node",
    "kfree",
    "kmalloc_node_trace",
    "kmalloc_trace",
    "kmem_cache_alloc",
    "kmem_cache_alloc_bulk",
    "kmem_cache_alloc_lru",
    "kmem_cache_alloc_node",
    "kmem_cache_free",
    "kmem_cache_free_bulk",
];

/// Functions that queue an object for later by a link in it (`kernel/rcu`, `kernel/task_work.c`).
const DEFERRING_FUNCTIONS: &[&str] = &[
    "__call_rcu_common",
    "call_rcu",
    "kvfree_call_rcu",
    "rcu_cblist_dequeue",
    "rcu_do_batch",
    "rcu_segcblist_enqueue",
    "task_work_add",
    "task_work_run",
];

/// Functions of the page allocator that access pages which are free, or about to be or no more (`mm/page_alloc.c`).
const PAGE_ALLOCATOR_FUNCTIONS: &[&str] = &[
    "__free_one_page",
    "__free_pages_core",
    "__free_pages_ok",
    "__rmqueue_pcplist",
    "free_one_page",
    "free_pcppages_bulk",
    "free_unref_folios",
    "free_unref_page",
    "free_unref_page_commit",
    "get_page_from_freelist",
    "move_freepages",
    "move_freepages_block",
    "rmqueue",
    "rmqueue_bulk",
    "split_free_page",
    "steal_suitable_fallback",
];

/// Functions that keep pages in lists by a page's own link, those of recent use mostly (`mm/swap.c`, `mm/vmscan.c`).
const PAGE_LIST_FUNCTIONS: &[&str] = &[
    "__folio_batch_release",
    "__page_cache_release",
    "free_unref_page_list",
    "isolate_lru_folios",
    "move_folios_to_lru",
    "put_pages_list",
    "release_pages",
    "shrink_folio_list",
];

/// Functions that mark pages as page tables, or take the mark away (`pgtable_pte_page_ctor`, inlined).
const PAGE_TABLE_FUNCTIONS: &[&str] = &[
    "___pmd_free_tlb",
    "___pte_free_tlb",
    "__pmd_alloc",
    "__pte_alloc",
    "do_fault_around",
    "pmd_free",
    "pte_alloc_one",
    "pte_free",
];

/// Functions that keep nodes for the next change of a maple tree (`struct maple_alloc`, `lib/maple_tree.c`).
const SPARE_NODE_FUNCTIONS: &[&str] = &["mas_alloc_nodes", "mas_pop_node", "mas_push_node"];

/// The slab cache of the nodes of maple trees.
pub(super) const MAPLE_NODES: &str = "maple_node";

impl Use {
    /// What a function uses bytes for ([`FunctionName::identity`](super::FunctionName); empty where it is unknown).
    pub(super) fn of(function: &str) -> Self {
        if function.is_empty() { Self::Unknown } else { function_use(function).unwrap_or(Self::Plain) }
    }
}

/// What a function is known to use bytes for that have several meanings.
fn function_use(function: &str) -> Option<Use> {
    let listed = [
        (SLAB_FUNCTIONS, Use::FreeObject),
        (DEFERRING_FUNCTIONS, Use::Deferred),
        (PAGE_ALLOCATOR_FUNCTIONS, Use::FreePage),
        (PAGE_LIST_FUNCTIONS, Use::PageList),
        (PAGE_TABLE_FUNCTIONS, Use::PageTable),
        (SPARE_NODE_FUNCTIONS, Use::SpareNode),
    ];
    let listed = listed.iter().find(|(functions, _)| functions.contains(&function)).map(|(_, used)| *used);
    // `lru_add_fn`, `lru_deactivate_file_fn`, `folio_isolate_lru` and their kin.
    listed.or(function.split('_').any(|word| word == "lru").then_some(Use::PageList))
}

fn find<'a>(table: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    table.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

/// Names of structures that a cache may hold, best first.
pub(super) fn cache_structures(cache: &str) -> impl Iterator<Item = &str> {
    // Caches of memory cgroups (up to 5.8) carry the group after the name: `dentry(12:group)`.
    let cache = cache.split('(').next().unwrap_or(cache);
    let bio = cache.strip_prefix("bio-").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let listed = find(CACHES, cache).or(if bio { Some("bio") } else { None });
    listed.into_iter().chain([cache]).chain(cache.strip_suffix("_cache"))
}

pub(super) fn is_kmalloc(cache: &str) -> bool {
    cache.starts_with("kmalloc-") || cache.starts_with("dma-kmalloc-")
}

pub(super) fn is_well_known(structure: &str) -> bool {
    WELL_KNOWN.contains(&structure)
}

pub(super) fn is_word(name: &str) -> bool {
    WORDS.contains(&name)
}

pub(super) fn is_building_block(name: &str) -> bool {
    BUILDING_BLOCKS.contains(&name)
}

pub(super) fn variable_structure(variable: &str) -> Option<&'static str> {
    find(VARIABLES, variable)
}

pub(super) fn is_stack_variable(variable: &str) -> bool {
    STACK_VARIABLES.contains(&variable)
}

pub(super) fn is_per_cpu_stack(variable: &str) -> bool {
    PER_CPU_STACKS.contains(&variable)
}

pub(super) fn vmalloc_purpose(caller: &str) -> Option<&'static str> {
    find(VMALLOC_CALLERS, caller)
}
