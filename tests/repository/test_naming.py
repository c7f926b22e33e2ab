"""What counts as a name, and as a whole stack."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bench.naming import NAMED, NameKind, has_whole_stack, kind_of_name, share_named
from commutant.mtrace.finding import Access, Finding

ACCESS = Access(0, True, 0, 8, "d_alloc", ("d_alloc+0x38", "do_syscall_64+0x58", "entry_SYSCALL_64_after_hwframe+0x69"))
FINDING = Finding(0x1000, "struct dentry", "d_lockref", "true", ACCESS, replace(ACCESS, core=1))


@pytest.mark.parametrize(
    ("object_name", "field", "kind"),
    [
        ("struct dentry", "d_lockref", NameKind.FIELD),
        ("struct address_space.host | struct inode.i_count", "", NameKind.FIELD),
        ("struct inode", "", NameKind.TYPE),
        ("rename_lock", "", NameKind.VARIABLE),
        ("per-CPU runqueues", "nr_running", NameKind.PER_CPU),
        ("kernel stack", "", NameKind.STACK),
        ("page table", "", NameKind.PAGE),
        ("page cache page", "", NameKind.PAGE),
        ("page", "", NameKind.NAMELESS),
        ("page_pool_lock", "", NameKind.VARIABLE),
        ("unknown", "", NameKind.NAMELESS),
        ("kmalloc-192", "", NameKind.NAMELESS),
        ("kmalloc-cg-1k", "free list link", NameKind.NAMELESS),
        ("kmalloc-cg-1k | struct pipe_buffer.len", "", NameKind.NAMELESS),
        ("per-CPU (dynamic)", "", NameKind.NAMELESS),
    ],
)
def test_a_name_is_what_a_developer_can_look_up(object_name: str, field: str, kind: NameKind) -> None:
    assert kind_of_name(replace(FINDING, object=object_name, field=field)) is kind
    assert (kind in NAMED) == (kind not in (NameKind.NAMELESS, NameKind.TYPE))


@pytest.mark.parametrize(
    ("stack", "whole"),
    [
        (ACCESS.stack, True),
        (("vma_link+0x1", "asm_exc_page_fault+0x4", "asm_exc_page_fault+0x0"), True),
        (("flush_tlb_func+0x1", "asm_sysvec_call_function_single+0x0"), True),
        (("user code",), True),
        (("d_alloc+0x38", "filename_create+0xc3"), False),
        (("d_alloc+0x38", "0xffffffff812aa690", "entry_SYSCALL_64_after_hwframe+0x69"), False),
        ((), False),
    ],
)
def test_a_stack_is_whole_if_it_goes_back_to_the_kernels_entry(stack: tuple[str, ...], whole: bool) -> None:
    assert has_whole_stack(replace(ACCESS, stack=stack)) is whole


def test_both_name_and_stacks_count() -> None:
    cut = replace(ACCESS, stack=ACCESS.stack[:2])
    findings = [FINDING, replace(FINDING, object="page", field=""), replace(FINDING, second=cut), FINDING]
    assert share_named(findings) == 0.5
    assert share_named([]) == 1.0
