"""Ids say what a test does, so that corpora of two versions of a model can be compared test by test."""

from __future__ import annotations

from commutant.compare import compare_corpora
from commutant.interfaces.names import Name, Names
from commutant.lang import Errno, call
from commutant.testgen import generate


class Rewritten(Names):
    """`names` with a call written in another way, which asks for the same in another order, and one call more."""

    @call
    def unlink(self, name: Name) -> Errno | int:
        inum = self.names.pop(name, None)
        if inum is None:
            return Errno.ENOENT
        self.inodes[inum].nlink -= 1
        return 0

    @call
    def exists(self, name: Name) -> bool:
        return name in self.names

    @call
    def link(self, old: Name, new: Name) -> Errno | int:
        there = new in self.names
        if old not in self.names:
            return Errno.ENOENT
        if there:
            return Errno.EEXIST
        inum = self.names[new] = self.names[old]
        self.inodes[inum].nlink += 1
        return 0


class Stricter(Names):
    """`names` where a call says no in one case more."""

    @call
    def link(self, old: Name, new: Name) -> Errno | int:
        return Errno.EPERM if old == new else super().link(old, new)


CALLS = ["link", "unlink", "stat", "rename"]


def test_a_rewritten_call_keeps_the_ids() -> None:
    """Its `link` looks at a name that the other does not: its classes are finer, and none gets lost. Only which of two
    mirror images is kept can change."""
    comparison = compare_corpora(generate(Names, CALLS), generate(Rewritten, CALLS))
    assert comparison.common > 500
    for one in comparison.sets:
        assert not one.removed or one.calls == ("link", "link")
        assert not one.added or "link" in one.calls


def test_a_new_call_adds_tests_of_its_own_sets_only() -> None:
    comparison = compare_corpora(generate(Rewritten, CALLS), generate(Rewritten, [*CALLS, "exists"]))
    assert not comparison.removed
    assert all("exists" in one.calls for one in comparison.sets if one.added)


def test_another_answer_is_another_test() -> None:
    calls = ["link", "stat", "access"]
    comparison = compare_corpora(generate(Names, calls), generate(Stricter, calls))
    assert comparison.common and comparison.added and comparison.removed
    assert {one.calls for one in comparison.sets if one.added} == {
        ("link", "link"),
        ("link", "stat"),
        ("link", "access"),
    }
