"""posix has at least the 45 calls that its page lists, and what pairs of each area decide stays what it was."""

from __future__ import annotations

import pytest

from commutant.analyzer.analysis import explore_leaves
from commutant.lang import load_interface

POSIX = load_interface("posix")


def test_the_calls_are_those_of_the_areas() -> None:
    calls = POSIX.call_names()
    assert len(calls) >= 45
    assert {"readv", "dup2", "chmod", "madvise", "sigpending", "statx", "poll", "truncate"} <= {*calls}


@pytest.mark.parametrize(
    "calls, counts",
    [
        ("ftruncate dup", (143, 135)),
        ("write setfl", (95, 91)),
        ("mkdir utimensat", (268, 264)),
        ("kill sigtimedwait", (6, 4)),
        ("memread madvise", (240, 237)),
        ("unlink statx", (576, 483)),
    ],
)
def test_counts_of_paths(calls: str, counts: tuple[int, int]) -> None:
    """Paths, and those on which the calls commute."""
    first, second = calls.split()
    leaves = [leaf for leaf in explore_leaves(POSIX, (first, second)) if leaf.feasible]
    assert (len(leaves), sum(leaf.commutes for leaf in leaves)) == counts
