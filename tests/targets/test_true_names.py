"""Names held against a kernel's source: the rules on an invented one, and at length on a run."""

from __future__ import annotations

import os
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


class _NoCode:
    """A kernel of which there is nothing but the source."""

    def __init__(self, source: true_names.Source) -> None:
        self.source = source

    def operand(self, pair: true_names.Pair) -> bool:
        return False

    def type(self, pair: true_names.Pair) -> bool:
        return False


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
