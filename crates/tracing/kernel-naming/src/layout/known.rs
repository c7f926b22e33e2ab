//! What points where, as far as BTF cannot tell, and which structures are worth following. Read by `derive`, which leaves
//! out what a kernel does not have. Sources: the structures' definitions in Linux 6.1 to 6.12.

use super::pointers::RegionEntries;

/// Structures that the walk visits: those that live in `kmalloc` caches, and those on the way to them.
pub(super) const NODES: &[&str] = &[
    "task_struct",
    "files_struct",
    "fdtable",
    "fs_struct",
    "nsproxy",
    "mnt_namespace",
    "ipc_namespace",
    "cgroup_namespace",
    "time_namespace",
    "uts_namespace",
    "pid_namespace",
    "user_namespace",
    "net",
    "cred",
    "user_struct",
    "ucounts",
    "group_info",
    "key",
    "signal_struct",
    "sighand_struct",
    "tty_struct",
    "css_set",
    "cgroup",
    "cgroup_root",
    "mem_cgroup",
    "mem_cgroup_per_node",
    "memcg_vmstats",
    "obj_cgroup",
    "shrinker_info",
    "mm_struct",
    "file",
    "dentry",
    "inode",
    "super_block",
    "mount",
    "mountpoint",
    "backing_dev_info",
    "bdi_writeback",
    "pipe_inode_info",
    "pipe_buffer",
    "aa_ns",
    "aa_profile",
    "list_lru_node",
    "pglist_data",
    "block_device",
    "gendisk",
    "request_queue",
    "fsnotify_mark_connector",
    "mempolicy",
    "root_domain",
    "sched_domain",
    "sched_domain_shared",
    "task_group",
    "cpuset",
    "shmem_sb_info",
    "ramfs_fs_info",
    "proc_fs_info",
    "kernfs_super_info",
    "kernfs_root",
    "ext4_sb_info",
    "blockgroup_lock",
    "flex_groups",
    "journal_s",
    "xfs_mount",
    "xlog",
    "xfs_cil",
    "xfs_cil_ctx",
    "xfs_perag",
    "btrfs_fs_info",
    "btrfs_root",
    "ovl_fs",
    "eventfd_ctx",
    "eventpoll",
    "socket_wq",
    "unix_address",
    "percpu_counter",
    "workqueue_struct",
    "pool_workqueue",
    "worker_pool",
];

/// `super_block.s_fs_info` is a `void *`; the operations tell the file system.
pub(super) const FILE_SYSTEMS: &[(&str, &str)] = &[
    ("shmem_ops", "shmem_sb_info"),
    ("ramfs_ops", "ramfs_fs_info"),
    ("proc_sops", "proc_fs_info"),
    ("kernfs_sops", "kernfs_super_info"),
    ("ext4_sops", "ext4_sb_info"),
    ("xfs_super_operations", "xfs_mount"),
    ("btrfs_super_ops", "btrfs_fs_info"),
    ("ovl_super_operations", "ovl_fs"),
];

/// `file.private_data` is a `void *`; the operations tell what is open.
pub(super) const OPEN_FILES: &[(&str, &str)] =
    &[("pipefifo_fops", "pipe_inode_info"), ("eventfd_fops", "eventfd_ctx"), ("eventpoll_fops", "eventpoll")];

/// Per-CPU pointers; BTF does not tell them from others. The last is the target's type or description.
pub(super) const PER_CPU_POINTERS: &[(&str, &str, &str)] = &[
    ("mount", "mnt_pcp", "mnt_pcp"),
    ("mem_cgroup", "vmstats_percpu", "memcg_vmstats_percpu"),
    ("mem_cgroup_per_node", "lruvec_stats_percpu", "lruvec_stats_percpu"),
    ("cgroup", "rstat_cpu", "cgroup_rstat_cpu"),
    ("pglist_data", "per_cpu_nodestats", "per_cpu_nodestat"),
    ("shmem_sb_info", "used_blocks.counters", "percpu_counter.counters"),
    ("shmem_sb_info", "ino_batch", "shmem_sb_info.ino_batch"),
    ("call_function_data", "pcpu", "cfd_percpu"),
    ("workqueue_struct", "cpu_pwqs", "pool_workqueue"),
    ("mm_struct", "pcpu_cid", "mm_cid"),
];

/// Per-CPU pointers in the zones of a node of memory (`pglist_data.node_zones`).
pub(super) const ZONE_PER_CPU_POINTERS: &[(&str, &str)] =
    &[("per_cpu_pageset", "per_cpu_pages"), ("per_cpu_zonestats", "per_cpu_zonestat")];

/// Per-CPU variables that hold pointers worth following.
pub(super) const PER_CPU_OBJECTS: &[(&str, &str)] = &[("cfd_data", "call_function_data")];

/// Pointers to arrays: structure, field, description of the array, size of an element or least size.
pub(super) const ARRAYS: &[(&str, &str, &str, u64)] = &[
    ("fdtable", "fd", FILE_POINTERS, 8 * FDTABLE_LEAST_FILES as u64),
    ("fdtable", "open_fds", "fdtable.open_fds", 8),
    // The upper levels of page tables have no mark of their own.
    ("mm_struct", "pgd", "pgd_t[]", 4096),
    ("pipe_inode_info", "bufs", "pipe_buffer[]", 40),
    ("list_lru", "node", "list_lru_node", 64),
    ("ext4_sb_info", "s_flex_groups", FLEX_GROUP_POINTERS, 8),
    // What security modules keep of an object: a part for each of them, one after another.
    ("cred", "security", "cred.security", 8),
    ("task_struct", "security", "task_struct.security", 8),
    ("super_block", "s_security", "super_block.s_security", 8),
];

/// A pipe's ring has this many buffers unless it was asked for others (`PIPE_DEF_BUFFERS`).
pub(super) const PIPE_BUFFERS: u32 = 16;
/// Pages of pipes: what waits in one, and what one has kept for the next write.
pub(super) const PIPE_PAGE: &str = "pipe_buffer.page";

/// The array of an ext4's groups of block groups; its elements are pointers to `struct flex_groups`.
pub(super) const FLEX_GROUP_POINTERS: &str = "flex_groups*[]";

/// The array of open files; its elements are pointers to `struct file`.
pub(super) const FILE_POINTERS: &str = "fdtable.fd[]";
/// Every descriptor table has room for at least this many files (`NR_OPEN_DEFAULT`).
pub(super) const FDTABLE_LEAST_FILES: u32 = 64;

/// Structures that are only pointed to as something embedded in them: pointed-to type, container, member.
pub(super) const CONTAINERS: &[(&str, &str, &str)] =
    &[("vfsmount", "mount", "mnt"), ("aa_label", "aa_profile", "label")];

/// Members of `css_set.subsys`: enumerator of the index, and structure that begins with the `cgroup_subsys_state`.
pub(super) const CONTROLLERS: &[(&str, &str)] =
    &[("memory_cgrp_id", "mem_cgroup"), ("cpu_cgrp_id", "task_group"), ("cpuset_cgrp_id", "cpuset")];

/// Longer arrays of pointers are followed so far; nodes of memory in a virtual machine are few.
pub(super) const POINTER_ARRAY_LIMIT: u32 = 4;

/// Big hash tables: pointer variable, variable with their size, how it holds it, bytes of an entry.
pub(super) const REGIONS: &[(&str, &str, RegionEntries, u64)] = &[
    ("dentry_hashtable", "d_hash_shift", RegionEntries::ShiftFrom32, 8),
    ("inode_hashtable", "i_hash_mask", RegionEntries::Mask, 8),
    ("mount_hashtable", "m_hash_mask", RegionEntries::Mask, 8),
    ("mountpoint_hashtable", "mp_hash_mask", RegionEntries::Mask, 8),
];
