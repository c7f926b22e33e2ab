"""Which object a shared line belongs to, by its part in the test: "the directory", "the file named n0", "of process 1".

A finding names a type. Of most types two calls can reach one object in common alone, and the test says which: its
arguments, its processes and its set-up. Inodes and their names in memory are of two parts, the directory and the file;
where the test leaves both open, the functions that touched the line decide, since Linux reaches a parent and a child by
different ones (fs/namei.c). Where nothing decides, nothing is said.
"""

from __future__ import annotations

import re

from commutant.corpus import TestCase, Value
from commutant.mtrace import Finding

_NAMES = ("name", "old", "new", "src", "dst", "path")
_OF_FILES = re.compile(
    r"struct (?:inode|dentry|address_space|(?:shmem|ext4|xfs|btrfs)_inode(?:_info)?|jbd2_inode|xa_node|simple_xattrs?"
    r"|file_lock_context)\b"
)
_ALWAYS_DIRECTORY = re.compile(r"\.(?:d_subdirs|i_dir_seq)\b")
_LIST_LINK = re.compile(r"\.(?:d_child|d_sib|d_hash|d_lru|d_u|i_sb_list|i_lru|i_hash|i_io_list|i_dentry|i_wb_list)\b")
"""Links that a neighbour in a list writes, which may be any other object."""
_OF_PROCESS = re.compile(
    r"struct (?:mm_struct|vm_area_struct|maple_\w+|anon_vma(?:_chain)?|files_struct|fdtable|fs_struct|signal_struct"
    r"|sighand_struct|cred|task_struct)\b|page table"
)
_OF_FILE_SYSTEM = re.compile(
    r"struct (?:super_block|\w+_sb_info|journal_s|transaction_s|ext4_group_info|flex_groups|xlog|xfs_mount|xfs_perag"
    r"|btrfs_fs_info|btrfs_root|mount|vfsmount)\b"
)
_OF_PROCESSOR = re.compile(r"per-CPU ")
_OF_MEMORY = re.compile(r"struct (?:zone|pglist_data|lruvec|mem_cgroup\w*|slab|per_cpu_pages)\b")

_FRAMES = 8
"""Functions that are looked at, the accessing one first."""
_DIRECTORY = re.compile(
    r"^\S+ __legitimize_path try_to_unlazy (?:complete_walk path_parentat|link_path_walk|walk_component)"
    r"|^_raw_spin_lock d_alloc\b|\bdget_parent\b|^inode_permission link_path_walk"
    r"|^down_\w+ (?:path_openat|filename_create|do_unlinkat|do_rmdir|lock_rename|do_renameat2|(?:__)?lookup_slow)"
    r"|^(?:add_dirent_to_buf|ext4_(?:add_entry|find_entry|__find_entry|delete_entry|search_dir|append|dx_\w+))\b"
)
_FILE = re.compile(
    r"^\S+ __legitimize_path try_to_unlazy complete_walk path_lookupat|^__d_(?:alloc|lookup|lookup_rcu|move)\b"
    r"|^(?:d_same_name|dentry_cmp) __d_lookup|^d_(?:delete|flags_for_inode)\b|^\S+ path_put (?:vfs_statx|do_faccessat)"
    r"|^(?:dentry_unlink_inode|__dentry_kill|lookup_fast|step_into|lockref_get do_dentry_open)\b|\b__fput\b"
    r"|^(?:\S+ )?(?:do_truncate|notify_change|vfs_unlink|vfs_getattr_nosec|generic_fillattr|shmem_getattr|ext4_getattr"
    r"|do_dentry_open|iput|evict|drop_nlink|inc_nlink|ihold|may_open|inode_init_always|inode_init_owner)\b"
    r"|^down_\w+ (?:vfs_link|vfs_unlink|vfs_rename|do_truncate|\w+write_iter)"
)
_DISK = (
    (
        re.compile(
            r"ext4_(?:handle_dirty_dirblock|insert_dentry|match|search_dir|delete_entry|generic_delete_entry|setent"
            r"|append|add_entry)|__ext4_(?:find_entry|check_dir_entry|read_dirblock)|add_dirent_to_buf"
        ),
        "a block of the directory",
    ),
    (re.compile(r"ext4_fill_raw_inode|__?ext4_iget|ext4_do_update_inode|ext4_inode_csum"), "a block of inodes"),
    (
        re.compile(
            r"ext4_(?:free_inodes|itable_unused|used_dirs|free_group_clusters|inode_(?:table|bitmap)|block_bitmap)"
            r"|ext4_group_desc_csum"
        ),
        "the group descriptors",
    ),
    (
        re.compile(r"^(?:find_next\w*bit|__ext4_new_inode|ext4_free_inode|recently_deleted|mb_\w+)"),
        "a bitmap of the disk",
    ),
)
"""Blocks of ext4 in memory, by who reaches them (fs/ext4/{namei,inode,ialloc,super}.c)."""
_BLOCK_DEVICE = re.compile(r"\b(?:__find_get_block|__getblk_gfp|__bread_gfp|find_get_block|bdev_\w+|sb_getblk)\b")


def role(test: TestCase, finding: Finding) -> str:
    """The part of the shared object in the test, as `the directory`; empty where it cannot be told."""
    name = finding.name
    if _OF_PROCESSOR.match(name):
        return "of a processor"
    if _OF_FILE_SYSTEM.match(name):
        return "of the file system"
    if _OF_MEMORY.match(name):
        return "of the memory that all use"
    if _OF_PROCESS.match(name):
        return _process(test)
    if name.startswith("struct file."):
        return _descriptor(test)
    if name.startswith("struct pipe_"):
        return "the pipe"
    if name.startswith(("page cache page", "anonymous page", "user page", "struct page")):
        return _page(test, finding)
    if _OF_FILES.match(name):
        return _file_or_directory(test, finding)
    return ""


def _process(test: TestCase) -> str:
    processes = sorted({call.process for call in test.calls})
    return f"of process {processes[0]}" if len(processes) == 1 else "that both processes have"


def _descriptor(test: TestCase) -> str:
    known = {(call.process, _text(call.args["fd"])) for call in test.calls if "fd" in call.args}
    if len(known) == 1 and all("fd" in call.args for call in test.calls):
        process, descriptor = known.pop()
        return f"descriptor {descriptor} of process {process}"
    return "an open file that both calls use"


def _page(test: TestCase, finding: Finding) -> str:
    for access in (finding.first, finding.second):
        functions = _functions(access.stack)
        for block, part in _DISK:
            if block.search(functions):
                return part
        if _BLOCK_DEVICE.search(functions):
            return "of the block device"
    addresses = {_text(call.args["address"]) for call in test.calls if "address" in call.args}
    if len(addresses) == 1 and all("address" in call.args for call in test.calls):
        return f"the page at address {addresses.pop()}"
    pages = {_text(call.args["page"]) for call in test.calls if "page" in call.args}
    if len(pages) == 1 and all("page" in call.args for call in test.calls):
        return f"the file's page {pages.pop()}"
    return ""


def _file_or_directory(test: TestCase, finding: Finding) -> str:
    name, texts = finding.name, [_functions(access.stack) for access in (finding.first, finding.second)]
    if _ALWAYS_DIRECTORY.search(name):
        return "the directory"
    if _LIST_LINK.search(name):
        return ""
    if any(map(_BLOCK_DEVICE.search, texts)) or ".private_lock" in name:
        return "of the block device"
    file = _file(test)
    if name.startswith(("struct address_space", "struct xa_node")):
        return file  # a directory has no pages here; of a block device's only the above are told
    if not any(_names(call.args) for call in test.calls):
        return file
    if not file:
        return "the directory"  # the calls reach no file in common
    votes = {"the directory" if _DIRECTORY.search(text) else file for text in texts if _is_told(text)}
    return votes.pop() if len(votes) == 1 else ""


def _functions(stack: tuple[str, ...]) -> str:
    return " ".join(frame.partition("+")[0].partition(".")[0] for frame in stack[:_FRAMES])


def _is_told(text: str) -> bool:
    return bool(_DIRECTORY.search(text)) != bool(_FILE.search(text))


def _file(test: TestCase) -> str:
    """The file that both calls can reach, as the test names it; empty if there is none."""
    first, *others = ({*_names(call.args)} for call in test.calls)
    common = first.intersection(*others)
    if len(common) == 1:
        return f"the file named {common.pop()}"
    if common:
        return "the file"
    linked = any(step.call == "link" for step in test.setup)
    by_descriptor = any("fd" in call.args for call in test.calls)
    makes_no_file = all(call.call in ("open", "stat", "unlink", "link", "rename") for call in test.calls)
    return "" if makes_no_file and not linked and not by_descriptor else "the file"


def _names(args: object) -> list[str]:
    assert hasattr(args, "get")
    return [name for key in _NAMES if isinstance(name := args.get(key), str)]


def _text(value: Value) -> str:
    return str(value)
