"""Which object a shared line belongs to, by its part in the test: "the directory", "the file named n0", "of process 1".

A finding names a type. Which file or directory an inode, a name in memory, an open file or a page is about, the kernel
itself says: the tracer looks that up when the window closes (`Finding.owner`). Of processes, descriptors and mapped
pages the test says which it can be: its arguments and its processes. Where neither says anything, nothing is said.
"""

from __future__ import annotations

import re

from commutant.corpus import TestCase, Value
from commutant.mtrace import Finding

_DIRECTORY, _BLOCK_DEVICE, _NO_FILE = "d", "b", "-"
_KINDS = {
    "f": "the file",
    _DIRECTORY: "the directory",
    "p": "the pipe",
    "c": "a device",
    _BLOCK_DEVICE: "of the block device",
}
"""What an object is about, by the letter of `Finding.owner`."""

_LIST_LINK = re.compile(r"\.(?:d_child|d_sib|d_hash|d_lru|i_sb_list|i_lru|i_hash|i_io_list|i_wb_list|i_orphan)\b")
"""Links that are written when a neighbour in a list comes or goes: of a directory, which has no name here, it may be
another test's."""

_OF_PROCESS = re.compile(
    r"struct (?:mm_struct|vm_area_struct|maple_\w+|anon_vma(?:_chain)?|files_struct|fdtable|fs_struct|signal_struct"
    r"|sighand_struct|cred|task_struct)\b|page table"
)
_OF_FILE_SYSTEM = re.compile(
    r"struct (?:super_block|\w+_sb_info|journal_s|transaction_s|ext4_group_info|flex_groups|xlog|xfs_mount|xfs_perag"
    r"|btrfs_fs_info|btrfs_root|mount|vfsmount)\b"
)
_OF_PROCESSOR = re.compile(r"per-CPU ")
_PAGES = ("page cache page", "anonymous page", "user page", "struct page")
_PAGE_TABLE_LOCK = "struct page.ptl"
_OF_MEMORY = re.compile(r"struct (?:zone|pglist_data|lruvec|mem_cgroup\w*|slab|per_cpu_pages)\b")

_FRAMES = 8
"""Functions that are looked at, the accessing one first."""
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


def role(test: TestCase, finding: Finding) -> str:
    """The part of the shared object in the test, as `the directory`; empty where it is not known."""
    if finding.name.startswith(_PAGES) and finding.name != _PAGE_TABLE_LOCK:
        return _page(test, finding)
    return role_by_name(test, finding.name, finding.owner)


def role_by_name(test: TestCase, name: str, owner: str) -> str:
    """The same of any object but a page, by the name of what is shared and by what the kernel says it is about."""
    if _OF_PROCESSOR.match(name):
        return "of a processor"
    if _OF_FILE_SYSTEM.match(name):
        return "of the file system"
    if _OF_MEMORY.match(name):
        return "of the memory that all use"
    if _OF_PROCESS.match(name):
        return _process(test)
    if name == _PAGE_TABLE_LOCK:
        return f"a page table {_process(test)}"
    if name.startswith("struct file."):
        return _descriptor(test) or _owner(test, owner)
    if name.startswith("struct pipe_"):
        return "the pipe"
    if owner == _DIRECTORY and _LIST_LINK.search(name):
        return "a directory"
    return _owner(test, owner)


def _owner(test: TestCase, owner: str) -> str:
    """What the kernel says of the object; a name that the test does not use is of something that lies near by."""
    kind, _, name = owner.partition(" ")
    if name and kind != _DIRECTORY and name not in _names(test):
        return "" if name.startswith("#") else f"{name}, which is none of the test's files"
    if kind == _NO_FILE:
        return f"the name {name}"
    if kind == _DIRECTORY and name:
        return "the root of the file system"
    known = _KINDS.get(kind, "")
    return f"{known} named {name}" if known and name else known


def _names(test: TestCase) -> set[str]:
    """All texts among the arguments: the names that the test uses."""
    arguments = [step.args for part in (test.calls, test.setup, test.observe) for step in part]
    return {value for given in arguments for value in given.values() if isinstance(value, str)}


def _process(test: TestCase) -> str:
    processes = sorted({call.process for call in test.calls})
    return f"of process {processes[0]}" if len(processes) == 1 else "that both processes have"


def _descriptor(test: TestCase) -> str:
    known = {(call.process, _text(call.args["fd"])) for call in test.calls if "fd" in call.args}
    if len(known) == 1 and all("fd" in call.args for call in test.calls):
        process, descriptor = known.pop()
        return f"descriptor {descriptor} of process {process}"
    return ""


def _page(test: TestCase, finding: Finding) -> str:
    if finding.owner.startswith(_BLOCK_DEVICE):
        for access in (finding.first, finding.second):
            functions = _functions(access.stack)
            for block, part in _DISK:
                if block.search(functions):
                    return part
    if finding.owner:
        known = _owner(test, finding.owner)
        return known if finding.owner.startswith(_BLOCK_DEVICE) else f"a page of {known}"
    addresses = {_text(call.args["address"]) for call in test.calls if "address" in call.args}
    if len(addresses) == 1 and all("address" in call.args for call in test.calls):
        return f"the page at address {addresses.pop()}"
    return ""


def _functions(stack: tuple[str, ...]) -> str:
    return " ".join(frame.partition("+")[0].partition(".")[0] for frame in stack[:_FRAMES])


def _text(value: Value) -> str:
    return str(value)
