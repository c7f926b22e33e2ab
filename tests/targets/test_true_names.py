"""Names held against a kernel's source: the rules on an invented one, and at length on a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commutant.mtrace.finding import Access, Finding
from tests.repository.tree import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import true_names

SOURCE = """#define lock_of(inode) (&(inode)->i_rwsem)

static void grow(struct inode *inode)
{
\tdown_write(lock_of(inode));
\tinode->i_size =
\t\t4096;
\tinode->i_nlink = 1;
}
"""


class _NoTypes:
    """Types of which none is known."""

    def structure(self, name: str) -> None:
        return None

    def embedders(self, name: str) -> list[str]:
        return []


class _NoCode(true_names.Kernel):
    """A kernel of which there is nothing but the source, what structures have, and one instruction."""

    def __init__(
        self, source: true_names.Source, operand: int | None = None, members: dict[str, tuple[int, int]] | None = None
    ) -> None:
        self.source = source
        self._given = None if operand is None else (operand, None)
        self._types = _NoTypes()
        self._members = lambda structure: members or {}
        self._places = self._list_places
        self._kinds = lambda structure: {}
        self._code = lambda frame: None

    def _operand(self, pair: true_names.Pair) -> tuple[int, int | None] | None:
        return self._given


def _finding(field: str, *lines: int) -> Finding:
    sides = (Access(core, True, 0, 8, "f", (f"f+0x1 fs/inode.c:{line}",)) for core, line in enumerate(lines))
    return Finding(0, "struct inode", field, "true", *sides)


@pytest.fixture
def kernel(tmp_path: Path) -> _NoCode:
    (tmp_path / "fs").mkdir()
    (tmp_path / "fs" / "inode.c").write_text(SOURCE)
    return _NoCode(true_names.Source(tmp_path))


def test_a_name_holds_where_the_statement_or_its_macro_has_it(kernel: _NoCode) -> None:
    told = true_names.judge([_finding("i_rwsem", 5, 5), _finding("i_size", 6, 7), _finding("i_nlink", 8, 8)], kernel)
    assert (told.wrong, told.neither, told.are_true) == ((), (), True)
    assert told.control == told.refused > 0


def test_a_wrong_name_is_refused(kernel: _NoCode) -> None:
    told = true_names.judge([_finding("i_size", 6, 8), _finding("i_rwsem", 8, 8)], kernel)
    assert [(pair.parts, pair.stack) for pair in told.wrong] == [
        (("i_size",), ("f+0x1 fs/inode.c:8",)),
        (("i_rwsem",), ("f+0x1 fs/inode.c:8",)),
    ]
    assert [finding.field for finding in told.neither] == ["i_rwsem"] and not told.are_true


REACHING = """static inline int hidden(struct dentry *dentry)
{
\treturn !dentry->d_hash.pprev;
}
#define FLAG(name, field) static inline int is_##name(struct inode *inode) { return inode->i_##field; }
"""
REACHED = """FLAG(dirty, state)
static int look(struct dentry *dentry, struct vma *other)
{
\tvoid **slots = dentry->d_slots;
\tint pivot = dentry->d_pivot;

\tif (hidden(dentry))
\t\treturn 0;
\tif (slots[pivot])
\t\treturn 1;
\tmemset(other, 0, sizeof(*other));
\treturn other->flags + dentry->d_seen;
}
"""


@pytest.fixture
def source(tmp_path: Path) -> true_names.Source:
    for folder, name, text in (("include/linux", "dcache.h", REACHING), ("fs", "look.c", REACHED)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_text(text)
    return true_names.Source(tmp_path)


def _pair(object_: str, field: str, line: int, size_bytes: int = 8) -> true_names.Pair:
    return true_names.Pair(object_, (field,), (f"look+0x1 fs/look.c:{line}",), size_bytes)


@pytest.mark.parametrize(
    ("field", "line", "expected"),
    [
        ("d_hash", 7, True),  # what an inline function of a header does
        ("d_slots", 9, True),  # what a local variable was set to
        ("d_pivot", 9, True),
        ("d_seen", 9, False),  # the function names it, but elsewhere
        ("d_pivot", 7, False),
        ("i_state", 1, True),  # put together by a macro
        ("i_dirty", 1, False),
    ],
)
def test_a_line_reaches_inline_functions_and_local_variables(
    source: true_names.Source, field: str, line: int, expected: bool
) -> None:
    assert true_names.holds(_pair("struct dentry", field, line), _NoCode(source)) is expected


def test_what_sets_all_of_an_object_touches_each_field_of_that_object(source: true_names.Source) -> None:
    kernel = _NoCode(source)
    assert true_names.holds(_pair("struct vma", "start", 11), kernel)
    assert not true_names.holds(_pair("struct dentry", "d_inode", 11), kernel)
    assert not true_names.holds(_pair("struct vma", "start", 12), kernel)


def test_an_operand_at_another_field_of_the_line_refutes_a_name(source: true_names.Source) -> None:
    members = {"flags": (16, 8), "d_seen": (24, 4), "d_behind": (28, 4), "d_other": (48, 8)}
    kernel = _NoCode(source, 24, members)
    assert true_names.holds(_pair("struct dentry", "d_seen", 12, 4), kernel)
    assert not true_names.holds(_pair("struct dentry", "flags", 12, 4), kernel)
    # An access of 8 bytes from there on has the field after it, too.
    assert true_names.holds(_pair("struct dentry", "d_behind", 12), kernel)
    assert not true_names.holds(_pair("struct dentry", "d_behind", 12, 4), kernel)
    # A pointer may lead to a structure within.
    within = {"flags": (16, 16), "flags.low": (16, 8), "flags.high": (24, 8), "d_seen": (8, 8)}
    assert true_names.holds(_pair("struct dentry", "flags.high", 12), _NoCode(source, 8, within))
    assert not true_names.holds(_pair("struct dentry", "flags.low", 12), _NoCode(source, 8, within))
    # Where the line names no field there, the operand belongs to another object.
    assert true_names.holds(_pair("struct dentry", "flags", 12, 4), _NoCode(source, 48, members))


def test_names_of_two_objects_are_held_each_for_itself(source: true_names.Source) -> None:
    sides = (Access(core, True, 0, 8, "f", (f"f+0x1 fs/look.c:{line}",)) for core, line in enumerate((7, 12)))
    finding = Finding(0, "struct dentry.d_hash / struct vma.flags", "", "true", *sides)
    assert all(true_names.holds(pair, _NoCode(source)) for pair in true_names.pairs(finding))
    assert next(true_names.pairs(finding)).fields == (("dentry", "d_hash"), ("vma", "flags"))
    # The type alone, which the line names as well, is no field.
    pair = true_names.Pair("struct dentry.d_hash / struct vma.start", ("struct vma.start",), ("f+0x1 fs/look.c:3",))
    assert not true_names.holds(pair, _NoCode(source))


def test_code_of_lists_is_no_callers_business_where_it_knows_the_object(source: true_names.Source) -> None:
    assert source.is_primitive("f+0x1 include/linux/dcache.h:3", frozenset({"inode_info"}))
    assert not source.is_primitive("f+0x1 include/linux/dcache.h:3", frozenset({"dentry"}))
    assert not source.is_primitive("f+0x1 fs/look.c:3", frozenset({"inode_info"}))


def test_the_instructions_of_a_module_are_found_by_function_and_offset(tmp_path: Path) -> None:
    (tmp_path / "own.c").write_text("int first(int *at) { return at[9]; }\n")
    subprocess.run(["cc", "-O1", "-fcf-protection=none", "-c", "own.c", "-o", "own.ko"], check=True, cwd=tmp_path)
    kernel = true_names.Kernel.__new__(true_names.Kernel)
    kernel._modules = {"own": tmp_path / "own.ko"}
    kernel._of_module = kernel._read_function
    assert kernel._read_code("first+0x0 [own] own.c:1") == (bytes.fromhex("8b4724"), 0)  # mov 0x24(%rdi),%eax
    assert kernel._read_code("first+0x1 [own]") is None and kernel._read_code("first+0x0 [other]") is None


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("48 8b 47 28", (0x28, False)),  # mov 0x28(%rdi),%rax
        ("f0 48 0f b1 97 c8 00 00 00", (0xC8, False)),  # lock cmpxchg %rdx,0xc8(%rdi)
        ("44 8b 04 24", (0, False)),  # mov (%rsp),%r8d
        ("48 8b 84 c7 a0 00 00 00", (0xA0, False)),  # mov 0xa0(%rdi,%rax,8),%rax
        ("8b 05 10 00 00 00", (0x10, True)),  # mov 0x10(%rip),%eax
        ("ff 43 f8", (-8, False)),  # incl -8(%rbx)
        ("48 89 c7", None),  # mov %rax,%rdi
        ("50", None),  # push %rax
    ],
)
def test_operands_are_read_from_an_instructions_bytes(code: str, expected: tuple[int, bool] | None) -> None:
    assert true_names.displacement(bytes.fromhex(code)) == expected


@pytest.mark.long
def test_names_of_a_run_are_true() -> None:
    """Of the run, kernel and source in TRUE_NAMES, as scripts/true_names.py takes them, divided by colons."""
    if "TRUE_NAMES" not in os.environ:
        pytest.skip("needs a run with debug information, told by TRUE_NAMES=RUN:VMLINUX:SOURCE")
    run, vmlinux, source = map(Path, os.environ["TRUE_NAMES"].split(":"))
    told = true_names.of_run(run, vmlinux, source)
    assert told.are_true, told.text(listing=True)
