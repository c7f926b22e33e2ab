"""`make bench-scale` keeps what was counted if a part of it fails, and says how many did."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench import two_cores
from bench.areas import scale
from bench.areas.scale import ALL, OF_LOCK, OPERATIONS, PER_CORE, Part, counted, list_figure
from bench.commands import Run
from bench.figure import Figure
from bench.scaling import section

FAILING = ("mail", "128")


def run(*arguments: str) -> Run:
    """As `commutant scale` would, but for one benchmark on one number of cores."""
    name = arguments[1] if "--" not in arguments else " ".join(arguments[-3:-1])
    cores = arguments[arguments.index("--cores") + 1]
    if (name, cores) == FAILING:
        raise RuntimeError("it waits forever")
    predicted = {"operation_ns": 100.0 * int(cores)}
    step = {"cores": int(cores), "transfers": 0.5, "maintenance": 0.0, "after_maintenance": 0.0}
    document: dict[str, Any] = {"benchmark": name, "steps": [{**step, "accesses": 100.0, "predicted": predicted}]}
    return Run(json.dumps(document), 1.0, 2.0, 3.0)


def names(figures: list[Figure]) -> set[str]:
    return {figure.name for figure in figures}


def all_parts() -> list[Part]:
    return [
        Part(counting, cores, run(*counting.arguments(cores)))
        for counting in ALL
        for cores in counting.cores
        if (counting.name, str(cores)) != FAILING
    ]


def test_what_fails_is_said_and_the_rest_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    def no_processors() -> list[Figure]:
        raise FileNotFoundError("gcc")

    monkeypatch.setattr(two_cores, "measure", no_processors)
    monkeypatch.setattr(scale, "commutant_run", run)
    monkeypatch.setattr(scale, "text_of", lambda *command: "")
    monkeypatch.setattr(scale, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    figures = scale.measure()
    assert {f"mail, 32 cores: {OPERATIONS}", f"mail, 80 cores: {PER_CORE}"} <= names(figures)
    assert f"mail, 128 cores: {OPERATIONS}" not in names(figures)
    [failed] = (figure for figure in figures if figure.name == "parts of this area that failed")
    assert (failed.median, failed.met) == (2, False)
    said = capsys.readouterr().out
    assert "mail, 128 cores: FAILED: it waits forever" in said
    assert "predictions for two cores: FAILED: gcc" in said
    count = sum(len(counting.cores) for counting in ALL)
    assert f"  {count} of {count}: " in said
    assert (tmp_path / "docs" / scale.PICTURE).exists()


def test_lists_are_held_against_a_lock_and_have_a_table() -> None:
    figures = counted(all_parts())
    own = list_figure("moves between lists of the thread's own", "olf", 16, OF_LOCK)
    [figure] = (figure for figure in figures if figure.name == own)
    assert (figure.median, figure.met) == (1.0, False)
    area = {"date": "2026-01-01", "machine": {"commit": "0" * 40}, "figures": [one.to_json() for one in figures]}
    lines = section(area)
    assert "| moves between lists of 2 | olf | 0.500 / 1.00 | 0.500 / 1.00 |" in lines
    assert "| list of 100, 10 % changes | spin lock | 0.500 | 0.500 |" in lines


def test_without_the_first_number_of_cores_there_is_no_curve() -> None:
    parts = [part for part in all_parts() if part.cores != 1]
    assert not any(PER_CORE in name for name in names(counted(parts)))
    assert any(PER_CORE in name for name in names(counted(all_parts())))


def test_what_is_held_against_8_cores_needs_them() -> None:
    what = f"{scale.OF_TWO}: accesses at 256 cores to those at 8"
    assert what in names(counted(all_parts()))
    assert what not in names(counted([part for part in all_parts() if part.cores != 8]))
