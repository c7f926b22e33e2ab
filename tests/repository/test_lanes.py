"""Lanes: every test is in one, by its measured time, and the quick tests of an area stay within their budget."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import lanes
import rust_tests
from lanes import Seconds
from tests.repository.tree import ROOT

KEPT = Seconds.kept()


def test_every_file_of_tests_has_a_measured_time() -> None:
    assert set(KEPT.files) == set(lanes.test_files()), "`make test ALL=1`, then `make lanes`"


def test_every_slow_test_is_still_there() -> None:
    for name in KEPT.slow:
        file, *_, function = re.sub(r"\[.*\]$", "", name, flags=re.DOTALL).split("::")
        functions = {
            node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)
        }
        assert function in functions, f"{name}; `make test ALL=1`, then `make lanes`"


def test_every_program_of_rust_tests_has_a_measured_time() -> None:
    measured = {name for name in KEPT.programs if not name.endswith(("/lib", "(bin)"))}
    there = {f"{crate}/{program}" for crate, program, _ in rust_tests.test_programs()}
    assert measured == there, "`make test ALL=1`, then `make lanes`"
    assert set(KEPT.schedules) <= there


def test_the_quick_tests_of_each_area_stay_within_their_budget() -> None:
    assert not lanes.over_budget(KEPT.quick_by_area(lanes.area_of_crate()))


def test_an_area_above_its_budget_is_named_with_what_to_do() -> None:
    seconds = Seconds(
        files={"tests/report/test_page.py": 25.0, "tests/report/test_text.py": 16.0, "tests/libraries/test_a.py": 90.0},
        programs={"wire/documents": 2.0, "wire/judging": 39.0},
    )  # fmt: skip
    areas = seconds.quick_by_area({"wire": "checker"})
    assert areas == {"tests/report": 41.0, "crates/checker": 2.0}
    (line,) = lanes.over_budget(areas)
    assert line.startswith("tests/report: 41 s of processor time, and 40 s are allowed; ")


def test_a_test_is_in_one_lane(pytester_items: dict[str, set[str]]) -> None:
    assert pytester_items["quick"] and pytester_items["whole"]
    assert not pytester_items["quick"] & pytester_items["whole"]
    assert pytester_items["quick"] | pytester_items["whole"] == pytester_items["all"]


@pytest.fixture
def pytester_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Names of the tests of a small tree that each lane has, and of all of them."""
    from tests import conftest

    kept = tmp_path / "seconds.json"
    table = {"files": {}, "slow": {"tests/a/test_a.py::test_one[x]": 2.0}, "programs": {}, "schedules": {}}
    kept.write_text(json.dumps(table))
    monkeypatch.setattr(lanes.Seconds, "kept", classmethod(lambda cls, file=kept: _read(file)))
    names = [
        "tests/a/test_a.py::test_one[x]",
        "tests/a/test_a.py::test_one[y]",
        "tests/libraries/test_guide.py::test_builds",
        "tests/b/test_new.py::test_new",
    ]

    class Item:
        def __init__(self, nodeid: str) -> None:
            self.nodeid = nodeid

    class Config:
        def __init__(self, lane: str | None) -> None:
            self.lane = lane
            self.left: list[str] = []
            self.hook = self

        def getoption(self, name: str) -> str | None:
            assert name == "--lane"
            return self.lane

        def pytest_deselected(self, items: list[Item]) -> None:
            self.left = [item.nodeid for item in items]

    found: dict[str, set[str]] = {}
    for lane in (None, "quick", "whole"):
        items = [Item(name) for name in names]
        config = Config(lane)
        conftest.pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
        found[lane or "all"] = {item.nodeid for item in items}
        assert found[lane or "all"] | set(config.left) == set(names)
    return found


def _read(file: Path) -> Seconds:
    found = json.loads(file.read_text())
    return Seconds(found["files"], found["slow"], found["programs"], found["schedules"])


def test_slow_tests_are_told_by_their_time_and_noise_moves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "seconds.json"
    Seconds(slow={"tests/a/test_a.py::test_was_slow": 1.2}).save(kept)
    monkeypatch.setattr(lanes, "KEPT", kept)
    monkeypatch.setattr(lanes.Seconds, "kept", classmethod(lambda cls: _read(kept)))
    files, slow = lanes.summed(
        {
            "tests/a/test_a.py::test_was_slow": 0.8,
            "tests/a/test_a.py::test_is_slow[1]": 1.1,
            "tests/a/test_a.py::test_is_quick": 0.8,
            "tests/c/test_long.py": 0.0,
            "tests/libraries/test_gallery.py::test_builds": 80.0,
        }
    )
    assert slow == {"tests/a/test_a.py::test_was_slow": 0.8, "tests/a/test_a.py::test_is_slow[1]": 1.1}
    assert files == {"tests/a/test_a.py": 0.8, "tests/c/test_long.py": 0.0, "tests/libraries/test_gallery.py": 80.0}


def test_what_was_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MEASURED", tmp_path / "measured.json")
    monkeypatch.setattr(lanes, "test_files", lambda: ["tests/a/test_a.py", "tests/a/test_b.py"])
    assert lanes.missing_of(lanes.measured()) == ["cargo test", "histories", *lanes.test_files()]
    lanes.note({"tests": {"tests/a/test_a.py::test_one": 0.1}, "programs": {"wire/documents": 0.2}})
    lanes.note({"schedules": {"scalefs/deaths": 9.0}})
    assert lanes.missing_of(lanes.measured()) == ["tests/a/test_b.py"]
    lanes.MEASURED.write_text("damaged")
    assert lanes.measured() == {"tests": {}, "programs": {}, "schedules": {}}


def test_shards_take_about_the_same_time_and_leave_nothing_out() -> None:
    seconds = {"a": 10.0, "b": 6.0, "c": 5.0, "d": 1.0, "e": 0.0}
    shards = lanes.shards(seconds, 2)
    assert sorted(name for shard in shards for name in shard) == sorted(seconds)
    assert [sum(seconds[name] for name in shard) for shard in shards] == [11.0, 11.0]
    assert lanes.shards({"a": 1.0}, 3) == [["a"]]
