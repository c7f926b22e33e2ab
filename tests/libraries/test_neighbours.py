"""The third, weaker kind of sharing: neighbouring lines of one pair, if asked for, and never instead of another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commutant.corpus import Corpus
from commutant.runs import Check
from commutant.targets.registry import load_target
from tests.libraries.building import both_orders, build, by_test, pair, session, variable

NAMES = (
    "lines_of_one_pair",
    "lines_of_two_pairs",
    "lines_across_pairs",
    "line_that_is_shared",
    "lines_that_are_read",
)
SHARED = {"line_that_is_shared": {("struct beside.left", "true")}}


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("neighbours"), "neighbours", "neighbours.c")


def _found(adapter: Path, options: str) -> dict[str, set[tuple[str, str]]]:
    tests = [pair(name, ({"core": 0}, {"core": 1})) for name in NAMES]
    with session(adapter, options) as running:
        records = by_test(list(running.run(both_orders(*tests))))
    found = {
        name: {(variable(finding), finding.sharing) for record in records[name] for finding in record.findings}
        for name in NAMES
    }
    return {name: told for name, told in found.items() if told}


def test_lines_of_one_pair_are_told_where_they_are_asked_for(adapter: Path) -> None:
    planted = {"lines_of_one_pair": {("struct beside.left | right", "neighbour")}}
    assert _found(adapter, ",neighbours=on") == SHARED | planted
    assert _found(adapter, "") == SHARED


def test_the_picture_is_of_the_pair(adapter: Path) -> None:
    test = pair("lines_of_one_pair", ({"core": 0}, {"core": 1}))
    with session(adapter, ",neighbours=on") as running:
        (finding,) = next(iter(running.run(both_orders(test)))).findings
    assert finding.line_address % 128 == 0
    assert [(access.core, access.offset) for access in (finding.first, finding.second)] == [(0, 0), (1, 64)]
    assert [(one.core, one.written) for one in finding.touched] == [(0, ((0, 8),)), (1, ((64, 8),))]
    names = {field.offset: field.name for field in finding.fields}
    assert (names[0], names[64]) == ("struct beside.left", "struct beside.right")


def test_a_run_tells_them_apart(adapter: Path, tmp_path: Path) -> None:
    """From the verdict to the report: counted, named as a cause of their own, with a technique of their own."""
    run = tmp_path / "run"
    tests = [pair(name, ({"core": 0}, {"core": 1})) for name in ("lines_of_one_pair", "lines_of_two_pairs")]
    target = load_target(f"library:path={adapter},neighbours=on")
    with Check.new(Corpus("planted", "conflict", "0123abcd", tests), target, jobs=1, directory=run) as check:
        check.start(lambda _doing: None)
        assert check.run().info.target_description["neighbours"] is True
    command = (sys.executable, "-m", "commutant", "report", run)
    shown = subprocess.run((*command, "--format", "json"), check=True, capture_output=True, text=True)
    document = json.loads(shown.stdout)
    (cause,) = document["first"]
    assert (cause["kind"], cause["technique"]) == ("neighbours", "keep-lines-apart")
    assert [(one["name"], one["tests"], one["sharing"]) for one in document["most_shared"]] == [
        ("struct beside.left | right (make, neighbours.c:46)", 1, "neighbour")
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "1 of 2 tests not conflict-free (50 %); 1 of them by neighbouring lines alone" in text
