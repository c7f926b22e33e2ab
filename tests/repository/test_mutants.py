"""`make test-mutants`: which faults it makes, how it counts, and what it refuses. Its runs take hours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mutants
import mutants_rust
from tests.repository.tree import ROOT


def test_every_crate_and_area_that_is_named_is_there() -> None:
    crates = {path.name for path in (ROOT / "crates").glob("*/*")}
    assert set(mutants_rust.CRATES) | {name for tests in mutants_rust.CRATES.values() for name in tests} <= crates
    for name in mutants.AREAS:
        area = mutants.Area(name)
        assert area.files and all((ROOT / tests).exists() for tests in area.tests)


def test_a_draw_depends_on_its_seed_and_parts_are_the_whole() -> None:
    area = mutants.Area("verdict")
    whole = area.drawn(20, 1, (1, 1))
    parts = [area.drawn(20, 1, (part, 3)) for part in (1, 2, 3)]
    assert sorted(mutant.name for part in parts for mutant in part) == sorted(mutant.name for mutant in whole)
    assert whole == area.drawn(20, 1, (1, 1)) != area.drawn(20, 2, (1, 1))


def _results(folder: Path, **lists: list[str]) -> Path:
    for name, lines in lists.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_a_score_counts_what_builds_and_makes_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = tmp_path / "equivalent.txt"
    reasons.write_text("# told\na/src/lib.rs: replace f with () # only a hint\n")
    monkeypatch.setattr(mutants_rust, "EQUIVALENT", reasons)
    missed = ["a/src/lib.rs:7:5: replace f with ()", "a/src/lib.rs:9:5: replace g with ()"]
    lists = {"caught": ["one", "two"], "previously_caught": ["two", "three"], "unviable": ["four"], "timeout": ["five"]}
    score = mutants_rust.score(_results(tmp_path, missed=missed, **lists))
    assert (score.caught, score.timed_out, score.unviable, score.equivalent) == (3, 1, 1, 1)
    assert score.missed == missed[1:] and score.percent == 80.0


def test_an_equivalent_mutant_needs_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = tmp_path / "equivalent.txt"
    reasons.write_text("a/src/lib.rs: replace f with ()\n")
    monkeypatch.setattr(mutants_rust, "EQUIVALENT", reasons)
    with pytest.raises(SystemExit, match=r"equivalent.txt: expected `MUTANT # REASON`, got 'a/src/lib.rs: replace f"):
        mutants_rust.score(tmp_path)


def test_scores_are_kept_each_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "KEPT", tmp_path)
    score = mutants_rust.Score(drawn=4, caught=3, timed_out=0, unviable=0, equivalent=0, missed=["a"])
    for name in ("wire", "verdict", "wire"):
        mutants.keep_score(name, 4, 1, "1/1", score)
    kept = json.loads((tmp_path / "scores.json").read_text())
    assert [(entry["name"], entry["percent"]) for entry in kept.values()] == [("wire", 75.0), ("verdict", 75.0)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["everything"], "unknown area 'everything'"),
        (["--part", "3/2"], "--part takes N/M, got '3/2'"),
        (["--count", "0"], "--count takes a number from 1 on, got 0"),
    ],
)
def test_bad_arguments_get_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mutants.main(arguments)
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)
