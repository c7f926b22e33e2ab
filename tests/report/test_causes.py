"""Causes before symptoms, and the parts of objects in a test."""

from __future__ import annotations

import pytest

from commutant.campaign import Outcome as Judgement
from commutant.corpus import ExpectedOutcome, Order, PlacedCall, SetupStep, TestCase
from commutant.documents import builtins, encode, read
from commutant.mtrace import Access, Finding
from commutant.report.causes import CauseKind, cause_json, causes, rank_causes
from commutant.report.data import JudgedTest
from commutant.report.parallel import parallel_calls
from commutant.report.roles import role

ENTRY = ("do_syscall_64+0x58", "entry_SYSCALL_64_after_hwframe+0x69")


def case(*calls: tuple[str, dict[str, object]], setup: tuple[SetupStep, ...] = (), processes: tuple[int, ...] = (0, 1)):
    placed = tuple(
        PlacedCall(call, args, process, 0, core)
        for core, ((call, args), process) in enumerate(zip(calls, processes, strict=True))
    )
    results = ExpectedOutcome((0,) * len(placed), ())
    orders = tuple(Order(order, (results,)) for order in ((0, 1), (1, 0)))
    return TestCase("invented-0", "conflict", 0, "invented", placed, setup, (), orders)


def finding(
    name: str,
    *stacks: str,
    under: str = "",
    under_owner: str = "",
    lock_number: int = 0,
    owner: str = "",
    sharing: str = "true",
    second: tuple[str, ...] | None = None,
) -> Finding:
    """Both sides have the stack, of functions from the innermost outward, or the second one has another."""
    sides = (stacks, second or stacks)
    accesses = [
        Access(core, True, 8 * core * (sharing == "false"), 8, side[0], (*(f"{one}+0x1" for one in side), *ENTRY))
        for core, side in enumerate(sides)
    ]
    object_, _, field = name.partition(".")
    locks = {"under": under, "under_owner": under_owner, "lock_number": lock_number}
    return Finding(0x1000, object_, field, sharing, *accesses, **locks, owner=owner)  # type: ignore[arg-type]


LOCK = "struct inode.i_rwsem"
CREATE = case(("open", {"name": "n0", "creat": True}), ("open", {"name": "n1", "creat": True}))
LINES = (
    finding("struct cred.usage", "__alloc_file", "path_openat"),
    finding("struct inode.i_ctime", "add_dirent_to_buf", "ext4_add_entry", under=LOCK),
    finding(LOCK, "down_write", "path_openat", owner="d"),
    finding("struct super_block.s_inodes", "inode_sb_list_add", "new_inode", under=LOCK),
    finding("struct inode.i_rdev | i_size", "shmem_mknod", "path_openat", sharing="false"),
    finding("struct inode.i_op", "inode_init_always", "alloc_inode", second=("notify_change", "do_truncate")),
    finding("struct inode.i_uid", "inode_init_always", "alloc_inode", second=("may_open", "path_openat")),
)


def judged(test: TestCase, *findings: Finding) -> JudgedTest:
    return JudgedTest(test, Judgement.CONFLICTING, findings)


def test_the_lock_that_others_follow_from_comes_first() -> None:
    first, made, *rest = causes(judged(CREATE, *LINES))
    assert (first.kind, first.name, first.role, len(first.lines), first.remaining) == (
        CauseKind.LOCK,
        LOCK,
        "the directory",
        3,
        4,
    )
    assert first.lines[0].name == LOCK, "the lock's own line stands first"
    assert first.sentence == (
        "3 of 7 shared lines are touched only while it is held, or are the lock's own; 4 would remain without it"
    )
    assert (made.kind, made.name, len(made.lines)) == (CauseKind.MADE, "a file's inode and names", 2)
    assert {one.kind for one in rest} == {CauseKind.VARIABLE, CauseKind.PLACE}
    assert sum(len(one.lines) for one in (first, made, *rest)) == len(LINES)
    assert cause_json(first)["role"] == "the directory"


def test_without_the_first_cause_the_fewest_lines_remain() -> None:
    found = causes(judged(CREATE, *LINES))
    assert [one.remaining for one in found] == sorted(one.remaining for one in found)


def test_a_test_whose_cause_cannot_be_told_counts_for_none() -> None:
    names = ("struct file.f_count", "init_ucounts", "init_user_ns", "root_user", "struct group_info.usage")
    apart = (LINES[0], *(finding(name, "fget") for name in names))
    assert not causes(judged(CREATE, *apart))[0].is_known
    ranking = rank_causes([judged(CREATE, *apart), judged(CREATE, *LINES), judged(CREATE, LINES[2])])
    assert (ranking[0].title, ranking[0].first, ranking[0].lines) == (f"the lock {LOCK} (the directory)", 2, 4)
    assert not any(one.first for one in ranking[1:])


def test_locks_of_two_inodes_are_two_causes() -> None:
    own = [
        finding(LOCK, "down_write", "path_openat", owner="d"),
        finding(LOCK, "up_write", "vfs_truncate", owner="f n0"),
    ]
    under_file = [
        finding(f"struct inode.{field}", "do_truncate", under=LOCK, under_owner="f n0")
        for field in ("i_size", "i_blocks")
    ]
    under_directory = finding("struct inode.i_ctime", "ext4_add_entry", under=LOCK, under_owner="d")
    of_file, of_directory = causes(judged(CREATE, *own, under_directory, *under_file))
    assert (of_file.role, of_file.lines) == ("the file named n0", (own[1], *under_file))
    assert (of_directory.role, of_directory.lines) == ("the directory", (own[0], under_directory))
    # Of findings that are the same one but for the object, one is kept: here the file's lock.
    (first, second) = causes(judged(CREATE, own[1], under_directory, *under_file))
    assert (first.role, len(first.lines), second.role, second.lines) == (
        "the file named n0",
        3,
        "the directory",
        (under_directory,),
    )
    # A run of the version before does not say whose lock covers a line: of one whose own line is shared it is that one.
    (old,) = causes(judged(CREATE, own[0], finding("struct inode.i_ctime", "ext4_add_entry", under=LOCK)))
    assert (old.role, len(old.lines)) == ("the directory", 2)
    # A lock of which no line is kept is named by what it is about.
    (alone,) = causes(judged(CREATE, under_directory))
    assert alone.title == f"the lock {LOCK} (the directory)"


@pytest.mark.parametrize(
    ("owner", "roles"),
    [
        ("d", ["the directory, the first taken", "the directory, the second taken"]),
        ("", ["the first taken", "the second taken"]),
    ],
)
def test_locks_that_are_about_the_same_are_told_by_the_order_of_taking(owner: str, roles: list[str]) -> None:
    lines = [
        line
        for number in (0, 1)
        for line in (
            finding(LOCK, f"take_{number}", owner=owner, lock_number=number),
            finding(f"struct inode.field_{number}", "touch", under=LOCK, under_owner=owner, lock_number=number),
        )
    ]
    found = causes(judged(CREATE, *lines))
    assert [cause.role for cause in found] == roles
    assert [cause.lines for cause in found] == [tuple(lines[:2]), tuple(lines[2:])]
    titles = {cause.title for cause in rank_causes([judged(CREATE, *lines)])}
    assert titles == {f"the lock {LOCK} ({role})" for role in roles}


def test_a_run_of_the_version_before_has_no_locks_over_lines() -> None:
    raw = builtins(LINES[1])
    del raw["under"], raw["under_owner"], raw["lock_number"], raw["owner"]
    old = read(Finding, encode(raw))
    assert (old.under, old.owner) == ("", "")
    assert not any(role(CREATE, one) for one in (old, finding("struct dentry.d_flags", "dput")))
    assert read(Finding, encode(LINES[1])).under == LOCK
    assert read(Finding, encode(LINES[2])).owner == "d"


def test_a_call_beside_itself_has_a_first_cause_of_its_own() -> None:
    again = judged(STAT, finding("struct dentry.d_lockref", "dput", owner="f n0"))
    other = judged(case(("open", {"name": "n0"}), ("open", {"name": "n1", "creat": True})), LINES[0])
    create, stat = parallel_calls([judged(CREATE, *LINES), judged(CREATE, *LINES[:3]), again, other])
    assert (create.call, create.tests, create.conflicting, create.lines) == ("open(creat)", 2, 2, 10)
    assert create.first is not None and create.first.title == f"the lock {LOCK} (the directory)"
    assert (create.explained, len(create.first.lines)) == (5, 3)
    assert (stat.call, stat.explained, stat.first and stat.first.role) == ("stat", 1, "the file named n0")


STAT = case(("stat", {"name": "n0"}), ("stat", {"name": "n0"}))
ONE_PROCESS = case(("read", {"fd": 3}), ("fstat", {"fd": 3}), processes=(1, 1))
MAPPED = case(("memread", {"address": 4}), ("memwrite", {"address": 4, "data": 1}))


@pytest.mark.parametrize(
    ("test", "shared", "expected"),
    [
        (CREATE, finding("struct dentry.d_lockref", "lockref_get", owner="d"), "the directory"),
        (CREATE, finding("struct inode.i_sb_list", "inode_sb_list_add", owner="d /"), "the root of the file system"),
        (STAT, finding("struct inode.i_mode", "generic_fillattr", owner="f n0"), "the file named n0"),
        (
            STAT,
            finding("struct dentry.d_hash", "__d_lookup", owner="f hist"),
            "hist, which is none of the test's files",
        ),
        (STAT, finding("struct inode.i_orphan", "ext4_orphan_add", owner="d"), "a directory"),
        (STAT, finding("struct dentry.d_flags", "dput", owner="- n0"), "the name n0"),
        (STAT, finding("struct inode.i_state", "evict", owner="f"), "the file"),
        (STAT, finding("struct dentry.d_lockref", "dput"), ""),
        (CREATE, finding("struct super_block.s_inodes", "inode_sb_list_add"), "of the file system"),
        (CREATE, finding("struct address_space.private_lock", "_raw_spin_lock", owner="b"), "of the block device"),
        (CREATE, finding("page cache page", "ext4_insert_dentry", owner="b"), "a block of the directory"),
        (CREATE, finding("page cache page", "memset", owner="b"), "of the block device"),
        (CREATE, finding("struct page._refcount", "folio_put", owner="f n0"), "a page of the file named n0"),
        (ONE_PROCESS, finding("struct file.f_count", "__fget_light", owner="f n0"), "descriptor 3 of process 1"),
        (STAT, finding("struct file.f_count", "__fget_light", owner="p"), "the pipe"),
        (ONE_PROCESS, finding("struct files_struct.file_lock", "_raw_spin_lock"), "of process 1"),
        (MAPPED, finding("anonymous page", "user code"), "the page at address 4"),
        (ONE_PROCESS, finding("struct page.ptl", "_raw_spin_lock"), "a page table of process 1"),
        (CREATE, finding("per-CPU runqueues", "resched_curr"), "of a processor"),
        (CREATE, finding("rename_lock", "d_move"), ""),
    ],
)
def test_an_object_has_its_part_in_the_test(test: TestCase, shared: Finding, expected: str) -> None:
    assert role(test, shared) == expected
