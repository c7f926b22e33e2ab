"""No circle of files in any crate: each can be read after those that it needs."""

from __future__ import annotations

import pytest

import crate_files


@pytest.mark.parametrize("crate", crate_files.crate_names())
def test_files_of_a_crate_need_one_another_in_no_circle(crate: str) -> None:
    arrows = crate_files.needs(crate)
    for name in sorted(arrows):
        print(f"{crate}: {name:24} {'─► ' if arrows[name] else ''}{' '.join(sorted(arrows[name]))}")
    assert crate_files.circles(arrows) == []


def test_the_files_of_a_crate_are_all_there_and_some_need_others() -> None:
    """A reader of sources that finds nothing would hold everything."""
    arrows = crate_files.needs("lock-study")
    assert len(arrows) > 5 and sum(map(len, arrows.values())) > len(arrows)


@pytest.mark.parametrize(
    ("tree", "paths"),
    [
        ("crate::a::B", ["crate::a::B"]),
        ("crate::{a::{B, C as D}, e}", ["crate::a::B", "crate::a::C as D", "crate::e"]),
        ("super::{self, x::*}", ["super::self", "super::x::*"]),
    ],
)
def test_trees_of_use_are_taken_apart(tree: str, paths: list[str]) -> None:
    assert list(crate_files._expanded(tree)) == paths
