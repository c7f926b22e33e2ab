"""Sharing that shows in a corner alone is found by the option of target `scalefs` that leads there, and by no other.

Each is planted in the making of a name: with a core's 64th since its maintenance, with one of more than 200 bytes, with
one in a directory below the root, and with one that a user makes whom permission bits bind.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from commutant.lang import load_interface
from commutant.runs import Check
from commutant.runs.content import judged_tests
from commutant.support import artifacts
from commutant.targets.registry import load_target
from commutant.testgen import generate
from tests.targets_process import planted_runner

LATE, LONG, DEEP, USERS = 8, 16, 32, 64
ALL = LATE | LONG | DEEP | USERS
PREFIX = "scalefs::planted_causes::NAMES_"
CORNERS = {
    "scalefs": set[str](),
    "scalefs:warm=64": {"LATE"},
    "scalefs:names=long": {"LONG"},
    "scalefs:depth=2": {"DEEP"},
    "scalefs:users=2": {"OF_USERS"},
    "scalefs:warm=64,names=long,depth=2,users=2": {"LATE", "LONG", "DEEP", "OF_USERS"},
}


@pytest.fixture(scope="module")
def runner() -> Path:
    """A runner whose ScaleFS can share without need."""
    return planted_runner.build()


@pytest.mark.long
@pytest.mark.parametrize("argument", CORNERS)
def test_each_corner_is_reached_by_its_option_alone(
    argument: str, runner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "scalefs_runner_path", lambda: runner)
    corpus = generate(load_interface("names"), ("open",), 2, level="conflict", jobs=1)
    with (
        planted_runner.planting(ALL),
        Check.new(corpus, load_target(argument), jobs=1, directory=tmp_path / "run") as check,
    ):
        check.start(lambda _doing: None)
        judged = list(judged_tests(check.run()))
    assert judged
    assert not [test for test in judged if test.detail]
    names = Counter(finding.object.split("+")[0] for test in judged for finding in test.findings)
    assert {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)} == CORNERS[argument], names
