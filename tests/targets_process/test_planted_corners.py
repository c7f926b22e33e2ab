"""Sharing that shows in a corner alone is found by the option of target `scalefs` that leads there, and by no other.

Each is planted in the making of a name: with a core's 64th since its maintenance, with one of more than 200 bytes, with
one in a directory below the root, and with one that a user makes whom permission bits bind. Two need a set of three
calls: an `unlink` on the third core, and a file of three names.
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
THIRD, MANY = 128, 256
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
    assert planted_names(("open",), 2, argument, ALL, tmp_path) == CORNERS[argument]


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "found"), [(2, set[str]()), (3, {"OF_CORE", "OF_MANY"})], ids=["pairs", "sets of three"]
)
def test_a_third_call_reaches_a_third_core_and_a_third_name(
    size: int, found: set[str], runner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression test: each call of a set had one core for all its orders, so that a call that stands last in its set
    was never on the first core, nor one that stands first on the last; and of what a set-up had counted nothing had
    reached a file when the calls began, so that a file of three names had one for anyone who asked its count."""
    monkeypatch.setattr(artifacts, "scalefs_runner_path", lambda: runner)
    assert planted_names(("open", "unlink"), size, f"scalefs:cores={size}", THIRD | MANY, tmp_path) == found


def planted_names(calls: tuple[str, ...], size: int, argument: str, planted: int, folder: Path) -> set[str]:
    """The planted variables that a check of these calls finds."""
    corpus = generate(load_interface("names"), calls, size, level="conflict", jobs=1)
    with (
        planted_runner.planting(planted),
        Check.new(corpus, load_target(argument), jobs=1, directory=folder / "run") as check,
    ):
        check.start(lambda _doing: None)
        judged = list(judged_tests(check.run()))
    assert judged
    assert not [test for test in judged if test.detail]
    names = Counter(finding.object.split("+")[0] for test in judged for finding in test.findings)
    return {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)}
