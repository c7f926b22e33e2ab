"""posix18: every class of states has a set-up, and observations show what a caller could tell."""

from __future__ import annotations

from typing import Any

import pytest

from commutant.analyzer import analyze
from commutant.analyzer.analysis import sets_of_calls
from commutant.interfaces.posix.posix18 import Posix18
from commutant.interfaces.posix.state import Inode, Number, Page
from commutant.lang import Map, Process, call, load_interface
from commutant.lang.types import OpaqueValue
from commutant.testgen import Corpus, generate

POSIX18 = load_interface("posix18")


def corpus(*calls: str) -> Corpus:
    return generate(POSIX18, calls, level="path")


@pytest.mark.parametrize(
    "calls",
    [("open", "memread"), ("read", "close"), ("write", "pipe"), ("mprotect", "memwrite"), ("link", "fstat")],
    ids="-".join,
)
def test_every_class_has_a_set_up(calls: tuple[str, ...]) -> None:
    generated = corpus(*calls)
    assert generated.tests
    assert generated.without_setup == {}


@pytest.mark.long
@pytest.mark.parametrize("calls", sets_of_calls(POSIX18, None, 2), ids="-".join)
def test_every_class_of_every_pair_has_a_set_up(calls: tuple[str, ...]) -> None:
    assert generate(POSIX18, calls, level="conflict").without_setup == {}


def with_pages(pages: dict[int, int]) -> Any:
    state: Any = Posix18()
    state.inodes[OpaqueValue("Inum", "file")] = Inode(nlink=1, length=2, pages=Map(pages), mtime=1, ctime=1)
    return state


def test_a_hole_reads_like_a_page_of_zeros() -> None:
    assert with_pages({}).equivalent(with_pages({0: 0}))
    assert with_pages({0: 0, 1: 3}).equivalent(with_pages({1: 3}))
    assert not with_pages({}).equivalent(with_pages({0: 1}))
    assert not with_pages({0: 2}).equivalent(with_pages({0: 1}))


class Punching(Posix18):
    """posix18 and a call that makes a hole."""

    @call
    def punch(self, process: Process, fd: Number, page: Page) -> int:
        """fallocate(2) with FALLOC_FL_PUNCH_HOLE, and success whatever the descriptor is."""
        descriptor = self.descriptor(process, fd)
        if descriptor is not None and not descriptor.pipe:
            inode = self.inodes[descriptor.inum]
            if page < inode.length:
                inode.pages.pop(page, None)
        return 0


def test_a_page_of_zeros_commutes_with_making_it_a_hole() -> None:
    """By content: the states differ in what they hold, and no caller can tell."""
    conditions = " ".join(analyze(Punching, ["pwrite", "punch"]).sets[0].conditions)
    assert "data.0 = zero" in conditions or "zero = data.0" in conditions
