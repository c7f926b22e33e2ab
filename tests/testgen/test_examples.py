"""Examples satisfy the condition that they are shown for; orders that are distinguished end differently."""

from __future__ import annotations

from typing import Any

import pytest

from commutant.analyzer import SetAnalysis, analyze
from commutant.cli.cases import lines_of
from commutant.lang import Interface, Map, Process, Sort, call, load_interface
from commutant.testgen.examples import Examples, difference
from tests.analyzer.interpretation import World

CASES = [
    ("figure4", ("rename", "rename")),
    ("names", ("open", "unlink")),
    ("names", ("link", "unlink", "stat")),
    ("posix18", ("read", "lseek")),
    ("posix18", ("close", "read")),
    ("posix18", ("mmap", "munmap")),
    ("posix18", ("open", "pipe")),
]


def analysed(name: str, calls: tuple[str, ...]) -> SetAnalysis:
    return analyze(load_interface(name), calls, len(calls)).sets[0]


@pytest.mark.parametrize("name, calls", CASES)
def test_examples_satisfy_their_condition(name: str, calls: tuple[str, ...]) -> None:
    one = analysed(name, calls)
    examples = Examples(one.interface, one.calls)
    shown = 0
    refused = [case for _, cases in one.refused_cases for case in cases]
    for commutes, cases in ((True, one.cases), (False, refused)):
        for text, cube in cases:
            example = examples.of(cube, commutes)
            if example is not None:
                shown += 1
                assert World.of(example.state, list(example.calls)).all_hold(cube), text
                told_apart = difference(example)
                if told_apart is not None:
                    assert not commutes, f"{text}: {example}: {told_apart}"
                    assert told_apart.shown[0] != told_apart.shown[1]
                else:
                    assert commutes or "choice" in repr(example.facts), f"{text}: {example}"
    assert shown > 0.8 * (len(one.cases) + len(refused))


def test_the_lines_of_a_pair() -> None:
    assert "\n".join(lines_of(analysed("names", ("open", "unlink")), why=True)) == SHOWN


SHOWN = """\
  - name.0 ≠ name.1
      open(n0) and unlink(n1)
  - name.0 not in names; not creat.0
      open(n0) and unlink(n0)
  not commuting, result of open.0:
  - name.0 in names; creat.0; excl.0; name.0 = name.1
      names {n0: i0}; inodes {i0}: open(n0, creat, excl) and unlink(n0)
        open, then unlink: open returns EEXIST
        unlink, then open: open returns 0
  - name.0 in names; not creat.0; name.0 = name.1
      names {n0: i0}; inodes {i0}: open(n0) and unlink(n0)
        open, then unlink: open returns 0
        unlink, then open: open returns ENOENT
  not commuting, state after open.0 and unlink.1:
  - name.0 in names; creat.0; not excl.0; name.0 = name.1
      names {n0: i0}; inodes {i0}: open(n0, creat) and unlink(n0)
        open, then unlink: stat(n0) then tells ENOENT
        unlink, then open: stat(n0) then tells ino=Inum#0 nlink=1
  not commuting, result of unlink.1:
  - name.0 not in names; creat.0; name.0 = name.1
      open(n0, creat) and unlink(n0)
        open, then unlink: unlink returns 0
        unlink, then open: unlink returns ENOENT"""


class Key(Sort):
    """A key."""


class Store(Interface):
    """Two processes share a register and observe nothing."""

    cells: Map[Key, int]

    @call
    def write(self, process: Process, key: Key, value: int) -> None:
        self.cells[key] = value


def test_states_are_shown_where_nothing_is_observed() -> None:
    one = analyze(Store, ["write", "write"]).sets[0]
    ((_, ((_, cube),)),) = one.refused_cases
    example: Any = Examples(Store, one.calls).of(cube, commutes=False)
    found = difference(example)
    assert found is not None and found.shown[0].startswith("leaves cells {k0")
    assert found.orders == (("write.0", "write.1"), ("write.1", "write.0"))
