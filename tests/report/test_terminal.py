"""What a run looks like in a terminal, with and without colour, wide and narrow, friendly and hostile."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from commutant.report import print_by_sharing, print_heat_map, print_run, rank_shared
from commutant.report.data import RunReport
from tests.report.invented import POSIX18, hostile_run, invented_run, summary_of
from tests.report.snapshots import assert_snapshot


def _console(width: int, encoding: str = "utf-8", colour: bool = False) -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    return Console(
        file=file, width=width, highlight=False, force_terminal=colour, color_system="truecolor" if colour else None
    )


def _text(console: Console) -> str:
    console.file.flush()
    file = console.file
    assert isinstance(file, io.TextIOWrapper)
    buffer = file.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(file.encoding)


@pytest.mark.parametrize(("calls", "width"), [(None, 80), (POSIX18, 140)])
def test_a_run_as_text(calls: tuple[str, ...] | None, width: int) -> None:
    run = invented_run() if calls is None else invented_run(calls, 60)
    console = _console(width)
    print_run(run, console)
    text = _text(console)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width
    assert_snapshot(f"run-{width}.txt", text)


def test_levels_are_coloured_on_a_terminal() -> None:
    console = _console(80, colour=True)
    print_heat_map(invented_run().summary, console)
    assert "\x1b[38;2;255;255;255;48;2;127;39;4m" in _text(console)


def test_without_unicode_the_map_is_plain_ascii() -> None:
    console = _console(80, encoding="ascii")
    print_heat_map(invented_run().summary, console)
    assert "6/6@" in _text(console)


def test_a_map_that_does_not_fit_becomes_a_list() -> None:
    console = _console(60)
    print_heat_map(invented_run(POSIX18, 60).summary, console)
    text = _text(console)
    assert "munmap, munmap" in text or "open, munmap" in text
    assert "sets more" in text


def test_sets_of_three_are_a_sorted_list() -> None:
    summary = {
        "interface": "counter",
        "target": "gallery:x",
        "sets": [
            {"calls": ["get", "get", "put"], "conflict_free": 7, "conflicting": 1},
            {"calls": ["put", "put", "put"], "conflict_free": 0, "conflicting": 9, "crashed": 1},
            {"calls": ["get", "get", "get"], "conflict_free": 4},
        ],
    }
    console = _console(80)
    print_heat_map(summary, console)
    assert_snapshot("triples.txt", _text(console))


def test_nothing_tested_and_nothing_shared_are_said() -> None:
    console = _console(80)
    print_run(RunReport(summary_of([]), []), console)
    assert "No set of calls was tested." in _text(console)
    assert "No memory was shared without need." in _text(console)


def test_hostile_names_stay_names() -> None:
    run = hostile_run()
    console = _console(120, colour=True)
    print_run(run, console)
    print_by_sharing(rank_shared(run.tests), console, limit=100)
    text = _text(console)
    for harm in ("\x1b]0", "\x1b[2J", "\x07", "\u2028", "\u202e", "\r", "x" * 500):
        assert harm not in text
    assert "[bold red]" in text
    assert "{{ 7 * 7 }}" in text
