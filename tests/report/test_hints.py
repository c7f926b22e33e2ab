"""Hints: what a shared line is used for, and the technique to look at; the documentation has them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs

from commutant.campaign import Outcome
from commutant.corpus import ExpectedOutcome, Order, PlacedCall
from commutant.report.causes import causes
from commutant.report.data import JudgedTest
from commutant.report.groups import has_idle_call
from commutant.report.hints import HintKind, Technique, hint, kind_of
from tests.campaign.fakes import make_finding, make_test
from tests.report.invented import HOSTILE_NAMES

PATTERNS = (Path(__file__).parents[2] / "docs/guides/patterns.md").read_text()


def finding(name, functions=("f", "g"), sharing="true", writes=(True, True)):
    object_name, _, field = name.partition(".")
    one = make_finding(functions=functions)
    return structs.replace(
        one,
        object=object_name,
        field=field,
        sharing=sharing,
        first=structs.replace(one.first, write=writes[0]),
        second=structs.replace(one.second, write=writes[1]),
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("struct dentry.d_lockref", HintKind.REFERENCE_COUNT),
        ("struct dentry.d_lockref.count", HintKind.REFERENCE_COUNT),
        ("struct file.f_count", HintKind.REFERENCE_COUNT),
        ("struct cred.usage", HintKind.REFERENCE_COUNT),
        ("struct inode.i_writecount", HintKind.REFERENCE_COUNT),
        ("struct inode.i_rwsem", HintKind.LOCK),
        ("struct inode.i_rwsem.count", HintKind.LOCK),
        ("struct super_block.s_inode_list_lock", HintKind.LOCK),
        ("rename_lock", HintKind.LOCK),
        ("struct mm_struct.mmap_lock", HintKind.LOCK),
        ("struct dentry.d_seq", HintKind.LOCK),
        ("per-CPU nr_dentry", HintKind.STATISTICS),
        ("struct transaction_s.t_handle_count", HintKind.STATISTICS),
        ("struct transaction_s.t_updates", HintKind.STATISTICS),
        ("struct buffer_head.b_count", HintKind.REFERENCE_COUNT),
        ("struct inode.i_mtime", HintKind.TIME),
        ("struct inode.i_ctime", HintKind.TIME),
        ("struct inode.__i_atime", HintKind.TIME),
        ("struct inode.dirtied_when", HintKind.TIME),
        ("struct shmem_sb_info.free_inodes", HintKind.STATISTICS),
        ("struct mm_struct.total_vm", HintKind.STATISTICS),
        ("struct files_struct.next_fd", HintKind.STATISTICS),
        ("struct lruvec.nonresident_age", HintKind.STATISTICS),
        ("struct dentry.d_subdirs", HintKind.LIST_HEAD),
        ("struct inode.i_sb_list.next", HintKind.LIST_HEAD),
        ("dentry_hashtable", HintKind.LIST_HEAD),
        ("init_ucounts.rlimit[]", HintKind.STATISTICS),
        ("struct zone.vm_stat[]", HintKind.STATISTICS),
        ("per-CPU struct cfd_percpu.csd.node.llist", HintKind.LIST_HEAD),
        ("struct vm_area_struct.shared.rb", HintKind.LIST_HEAD),
        ("struct vm_area_struct.free list link", HintKind.LIST_HEAD),
        ("struct vm_area_struct.vm_start", HintKind.DATA),
        ("struct inode.i_nlink", HintKind.REFERENCE_COUNT),
        ("struct buffer_head.b_count", HintKind.REFERENCE_COUNT),
        ("struct transaction_s.t_handle_count", HintKind.STATISTICS),
        ("struct super_block.s_remove_count", HintKind.STATISTICS),
        ("struct inode.i_ctime", HintKind.TIME),
        ("struct inode.i_size", HintKind.DATA),
        ("struct dentry.d_flags", HintKind.DATA),
        ("struct clock.ticks", HintKind.DATA),
        ("ShardedMap.count_ (commutant::make, commutant.hpp:28; by access)", HintKind.STATISTICS),
        ("ShardedMap.shards_[].entries._M_element_count", HintKind.STATISTICS),
        ("Cache.size_", HintKind.STATISTICS),
        ("_Sp_counted_base._M_use_count", HintKind.REFERENCE_COUNT),
    ],
)
def test_a_name_says_the_kind(name, kind):
    assert kind_of(finding(name)) is kind


def test_functions_say_it_where_the_name_does_not():
    assert kind_of(finding("kmalloc-64", ("_raw_spin_lock", "queued_spin_lock_slowpath"))) is HintKind.LOCK
    assert kind_of(finding("kmalloc-64", ("lockref_get", "x"))) is HintKind.REFERENCE_COUNT
    assert kind_of(finding("kmalloc-64", ("_raw_spin_lock", "x"))) is HintKind.DATA
    locked = ("_raw_spin_lock_irq", "shmem_file_llseek")
    assert kind_of(finding("struct address_space.host | i_pages", locked, "false", (True, False))) is HintKind.LOCK
    assert kind_of(finding("struct address_space.host | i_pages", locked, "false", (False, True))) is HintKind.DATA
    assert kind_of(finding("kmalloc-64", ("blockdown", "shutdown"))) is HintKind.DATA


@pytest.mark.parametrize(
    ("shared", "failing", "technique"),
    [
        (finding("struct inode.i_rwsem | i_size", sharing="false"), False, Technique.SEPARATE),
        (finding("struct table.left | right", sharing="neighbour"), False, Technique.PAIRS),
        (finding("struct dentry.d_lockref"), False, Technique.DEFER),
        (finding("struct dentry.d_lockref"), True, Technique.DEFER),
        (finding("struct inode.i_nlink", writes=(True, False)), False, Technique.DO_NOT_READ),
        (finding("struct inode.i_rwsem"), False, Technique.LAYER),
        (finding("struct inode.i_rwsem"), True, Technique.CHECK_FIRST),
        (finding("struct shmem_sb_info.free_inodes"), False, Technique.PER_CORE),
        (finding("struct super_block.s_inode_list_lock"), False, Technique.PER_CORE),
        (finding("struct vm_area_struct.free list link"), False, Technique.PER_CORE),
        (finding("struct inode.i_size", writes=(True, False)), False, Technique.DO_NOT_READ),
        (finding("struct inode.i_size"), False, Technique.LAYER),
        (finding("struct dentry.d_subdirs"), False, Technique.LAYER),
        (finding("struct inode.i_mtime"), False, Technique.PER_CORE),
        (finding("struct inode.i_mtime", writes=(True, False)), False, Technique.DO_NOT_READ),
    ],
)
def test_kind_and_access_say_the_technique(shared, failing, technique):
    assert hint(shared, failing).technique is technique


def test_every_technique_is_a_section_of_the_documentation():
    headings = re.findall(r"^## (.+)$", PATTERNS, re.MULTILINE)
    assert [technique.title for technique in Technique] == headings[:-1]
    assert set(re.findall(r"\]\(#([a-z-]+)\)", PATTERNS)) == {technique.anchor for technique in Technique}


def test_hostile_names_have_some_kind():
    """Names of 10,000 characters once took a pattern minutes: it tried every way to part them at underscores."""
    for name in (*HOSTILE_NAMES, "a_" * 5_000, "_lock" * 2_000 + "!", ".seq" * 3_000, "|" * 10_000):
        assert kind_of(finding(f"struct x.{name}", (name, name))) in HintKind


def test_code_of_a_lock_that_became_a_part_of_its_caller_is_a_lock():
    """Rust's: the accessing function is the caller's, and frames of the lock stand before it."""
    inlined = (
        "atomic::swap library/core/src/sync/atomic.rs:1",
        "Mutex::lock library/std/src/sync/mutex.rs:2",
        "put+0x1 src/lib.rs:3",
    )
    within = ("HashMap::insert src/map.rs:1", "put+0x1 src/lib.rs:3", "Mutex::lock+0x4 library/std/src/sync/mutex.rs:2")
    one = finding("Mutex<..>.inner", functions=("put", "put"))
    for stack, kind in ((inlined, HintKind.LOCK), (within, HintKind.DATA), ((), HintKind.DATA)):
        sides = {"first": structs.replace(one.first, stack=stack), "second": structs.replace(one.second, stack=stack)}
        assert kind_of(structs.replace(one, **sides)) is kind, stack


def twins(call, args, results, observation):
    placed = tuple(PlacedCall(call, args, core, 0, core) for core in (0, 1))
    outcome = ExpectedOutcome(results, observation)
    return structs.replace(make_test(), calls=placed, orders=(Order((0, 1), (outcome,)), Order((1, 0), (outcome,))))


@pytest.mark.parametrize(
    ("test", "idle"),
    [
        (twins("put", {"key": "k0", "value": "v0"}, (False, False), ("v0",)), True),
        (twins("put", {"key": "k0", "value": "v0"}, (True, False), ("v0",)), False),
        (twins("push", {"item": "v0"}, (None, None), ("v0", "v0", {"errno": "EAGAIN"})), False),
        (twins("submit", {"payload": "p0"}, ({"sort": "Job", "id": 0}, {"sort": "Job", "id": 0}), ()), False),
        (twins("add", {"amount": 1}, (None, None), (2,)), False),
        (twins("unlink", {"name": "n0"}, (0, {"errno": "ENOENT"}), ()), True),
        (make_test(), False),
    ],
)
def test_a_call_that_does_again_what_the_other_did_is_to_check_first(test, idle):
    assert has_idle_call(test) is idle
    (first, *_) = causes(JudgedTest(test, Outcome.CONFLICTING, (finding("struct map.lock"),)))
    assert (first.hint.technique is Technique.CHECK_FIRST) is idle
