"""The first cause is the one without which the fewest lines remain: three are planted in ScaleFS, each really removed.

The instance is built with its feature `planted-causes`. A campaign runs with all three, and with each one left out;
what the report predicted of the first must be what is left.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from commutant.lang import load_interface
from commutant.report.causes import CauseKind, causes
from commutant.report.data import JudgedTest
from commutant.runs import Check
from commutant.runs.content import judged_tests
from commutant.support import artifacts
from commutant.targets.registry import load_target
from commutant.testgen import generate
from tests.targets_process import planted_runner

LOCK, COUNTER, PAIR = 1, 2, 4
ALL = LOCK | COUNTER | PAIR
LINES = {LOCK: 4, COUNTER: 1, PAIR: 1}
"""How many lines each shares: the lock's is its own and three that are touched only while it is held."""

PREFIX = "scalefs::planted_causes::NAMES_"
VARIABLES = {
    LOCK: {"LOCK", "FIRST", "LAST", "GENERATION"},
    COUNTER: {"MADE"},
    PAIR: {"OF_PARITY"},
}


@pytest.fixture(scope="module")
def runner() -> Path:
    """A runner whose ScaleFS can share without need."""
    return planted_runner.build()


def _creates(planted: int, directory: Path) -> dict[str, JudgedTest]:
    """The conflicting tests of two calls of which each makes a name."""
    corpus = generate(load_interface("names"), ("open",), 2, level="conflict", jobs=1)
    with (
        planted_runner.planting(planted),
        Check.new(corpus, load_target("scalefs"), jobs=1, directory=directory) as check,
    ):
        check.start(lambda _doing: None)
        tests = {judged.test.id: judged for judged in judged_tests(check.run())}
    return {id_: judged for id_, judged in tests.items() if _planted_lines(judged)}


def _planted_lines(judged: JudgedTest) -> Counter[str]:
    names = (finding.object.split("+")[0] for finding in judged.findings)
    return Counter(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))


@pytest.mark.long
def test_without_the_first_cause_what_was_foretold_remains(
    runner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "scalefs_runner_path", lambda: runner)
    whole = _creates(ALL, tmp_path / "all")
    assert len(whole) == 2  # in one process, and in two
    without = {cause: _creates(ALL & ~cause, tmp_path / f"without-{cause}") for cause in LINES}
    for id_, judged in whole.items():
        expected = {name for names in VARIABLES.values() for name in names}
        assert set(_planted_lines(judged)) == expected
        found = causes(judged)
        first = found[0]
        assert (first.kind, len(first.lines)) == (CauseKind.LOCK, LINES[LOCK]), [one.title for one in found]
        assert first.name.startswith(f"{PREFIX}LOCK")
        left = {cause: len(tests[id_].findings) for cause, tests in without.items()}
        # Predicted, and truly least of the three.
        assert left[LOCK] == first.remaining == min(left.values())
        for cause, names in VARIABLES.items():
            assert left[cause] == len(judged.findings) - LINES[cause]
            assert set(_planted_lines(without[cause][id_])) == expected - names
            told = next(
                one for one in found if names & {finding.object.split("+")[0][len(PREFIX) :] for finding in one.lines}
            )
            assert told.remaining == left[cause]
    print(f"{len(whole)} tests: the lock first, {LINES[LOCK]} lines gone without it")
