"""The constructed implementations of the rule's proof (SOSP 2013, figures 1 and 2), under the tracer.

Each knows one history beforehand: a set-up, then a region of two calls that commute. Both are right whatever is called.
The second one's calls share nothing where the history is the known one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.targets.base import Job
from commutant.testgen import TestCase, generate
from tests.libraries.building import SOURCES, build, session
from tests.libraries.flag import Flag

HISTORIES = [("set", "set", False), ("clear", "clear", True), ("set", "test", True), ("clear", "test", False)]
"""Two calls, and whether the flag is set before. Equal changes are among them: that they need share nothing is what no
implementation has for all histories at once."""


def outcomes(adapter: Path) -> dict[tuple[str, str, bool], tuple[set[str], set[str]]]:
    """By history: the variables that the tests of it share, and what was wrong."""
    tests: tuple[TestCase, ...] = tuple(generate(Flag).tests)
    with session(adapter) as running:
        records = list(running.run([Job(test, order) for test in tests for order in range(len(test.orders))]))
    assert len(records) == 2 * len(tests)
    found: dict[tuple[str, str, bool], tuple[set[str], set[str]]] = {}
    for record in records:
        test = record.job.test
        first, second = (placed.call for placed in test.calls)
        shared, wrong = found.setdefault((first, second, bool(test.setup)), (set(), set()))
        shared |= {finding.name.partition(" ")[2].partition(" ")[0] for finding in record.findings}
        wrong |= {str(reason) for reason in (record.wrong, record.crashed) if reason is not None}
    return found


def macros(figure: int, history: tuple[str, str, bool]) -> list[str]:
    """What makes the adapter one of a figure, for a history."""
    first, second, is_set = history
    return [f"-DFIGURE={figure}", f"-DFIRST={first}", f"-DSECOND={second}", f"-DIS_SET={int(is_set)}"]


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("figure", [1, 2])
def test_the_known_history_is_conflict_free_with_figure_2_alone(
    tmp_path: Path, figure: int, history: tuple[str, str, bool]
) -> None:
    found = outcomes(build(tmp_path, "constructed", "constructed.c", extra=macros(figure, history)))
    assert set(found) >= set(HISTORIES)
    assert not {known: wrong for known, (_, wrong) in found.items() if wrong}, "it emulates all other histories"
    shared, _ = found[history]
    if figure == 1:
        assert "flag.next" in shared
    else:
        assert shared == set()
    others = {known for known in HISTORIES if known != history and found[known][0]}
    assert others == set(HISTORIES) - {history}, "what is not known beforehand is emulated, and shares M's state"


def flawed(folder: Path, right: str, wrong: str) -> dict[tuple[str, str, bool], tuple[set[str], set[str]]]:
    """What comes of Figure 2 for the first history with a piece of its source changed."""
    text = (SOURCES / "constructed.c").read_text()
    assert text.count(right) == 1
    source = folder / "flawed.c"
    source.write_text(text.replace(right, wrong))
    return outcomes(build(folder, "flawed", source, extra=macros(2, HISTORIES[0])))


def test_a_region_without_a_mode_of_its_own_shares_all_places(tmp_path: Path) -> None:
    found = flawed(tmp_path, "threads[thread].commutes = 1", "threads[thread].commutes = 0")
    assert found[HISTORIES[0]] == ({"flag.threads[].next"}, set())


def test_calls_that_the_reference_is_not_given_are_missed(tmp_path: Path) -> None:
    found = flawed(tmp_path, "core < 2; core++", "core < 0; core++")
    assert found[HISTORIES[0]][1], "who tests the flag afterwards finds it cleared"
