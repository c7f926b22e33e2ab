"""Benchmarks on virtual cores, under the emulator: what must be zero is, what is planted is named, seeds repeat."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from commutant.cli.main import run
from commutant.documents import text
from commutant.scale import (
    Benchmark,
    ScaleConditions,
    ScaleDocument,
    benchmarks,
    counting,
    find_benchmark,
    page,
    picture,
    read_constants,
    scaling,
)
from commutant.support import RunError, artifacts

FEW = ScaleConditions(operations=60, warm_up=60)


def scaled(name: str, cores: tuple[int, ...], conditions: ScaleConditions = FEW) -> ScaleDocument:
    *_, document = scaling(find_benchmark(name), cores, conditions, read_constants(None))
    return document


def test_a_planted_counter_is_counted_and_named_and_its_control_has_none() -> None:
    document = scaled("sharded-map-counted", (1, 2, 16))
    alone, two, many = document.steps
    assert (alone.transfers, alone.variables) == (0.0, ())
    assert 0.3 < two.transfers < many.transfers <= 2.0
    [variable] = many.variables
    assert variable.name.endswith("ENTRY_COUNT")
    assert variable.during == "operations"
    for stack in (variable.first, variable.second):
        assert any("scale-runner/src/benchmarks/sharded.rs" in frame for frame in stack)
        assert not any("scale-runner/src/main.rs" in frame for frame in stack)
    assert document.stops is not None
    assert document.stops.variable == variable.name
    control = scaled("sharded-map", (1, 2, 16))
    assert [step.transfers + step.maintenance + step.after_maintenance for step in control.steps] == [0.0] * 3
    assert control.stops is None
    assert control.steps[2].predicted.per_core == 1.0


def test_the_same_seed_gives_the_same_document_and_another_seed_another() -> None:
    one, again, other = (
        text(scaled("open-any", (4,), ScaleConditions(seed=seed, operations=20, warm_up=70))) for seed in (3, 3, 4)
    )
    assert one == again
    assert one != other


def test_several_seeds_are_counted_each_and_their_spread_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    few = ScaleConditions(seed=3, operations=40, warm_up=20)
    several = scaled("sharded-map-counted", (4,), ScaleConditions(seed=3, operations=40, warm_up=20, seeds=3))
    [step] = several.steps
    assert [counts.seed for counts in step.seeds] == [3, 4, 5]
    assert len({counts.transfers for counts in step.seeds}) > 1
    assert step.transfers == step.seeds[0].transfers == scaled("sharded-map-counted", (4,), few).steps[0].transfers
    mean = sum(counts.transfers for counts in step.seeds) / 3
    least, most = min(one.transfers for one in step.seeds), max(one.transfers for one in step.seeds)
    options = ("--cores", "4", "--seed", "3", "--seeds", "3", "--operations", "40", "--warm-up", "20")
    assert command("sharded-map-counted", *options) == 0
    expected = f"4 cores, seeds 3 to 5: operations {mean:.4f} ({least:.4f} to {most:.4f})"
    assert expected in capfd.readouterr().out


def test_a_lowest_number_is_shared_and_any_number_is_not() -> None:
    # Cores come to their maintenance at least once before what counts, and during it.
    conditions = ScaleConditions(operations=70, warm_up=130)
    lowest, any_number = (scaled(name, (8,), conditions).steps[0] for name in ("open", "open-any"))
    assert lowest.transfers > 3
    assert any_number.transfers == pytest.approx(0.0, abs=0.01)
    assert any_number.maintenance > 0
    names = {variable.name for variable in any_number.variables}
    assert any("epoch" in name for name in names), names


def test_a_mail_server_of_commutative_calls_shares_nothing_but_a_planted_counter() -> None:
    # What is given back has come round several times before what counts.
    settled = ScaleConditions(operations=32, warm_up=256, maintain_every=8)
    step = scaled("mail-any", (4,), settled).steps[0]
    assert step.transfers <= 0.05, step.variables
    assert not any("maximum" in variable.name for variable in step.variables), "each reads what it has just written"
    counted = scaled("mail-any-counted", (4,), settled).steps[0]
    assert counted.transfers >= step.transfers + 0.5
    assert counted.variables[0].name.endswith("mail::DELIVERY_COUNT")


def test_an_unmap_asks_those_that_have_touched_the_page_however_many_cores_there_are() -> None:
    few, many = scaled("map", (4, 24), ScaleConditions(operations=16, warm_up=72)).steps
    assert many.accesses == pytest.approx(few.accesses, rel=0.05)


def test_what_fxmark_counts_is_there_and_only_what_is_shared_moves() -> None:
    cases = [benchmark.name for benchmark in benchmarks() if benchmark.operation.startswith("FxMark: ")]
    data, metadata = "drbl drbm drbh dwol dwom dwal dwtl", "mrpl mrpm mrph mrdl mrdm mwcl mwcm mwul mwum mwrl mwrm"
    assert cases == f"{data} {metadata}".split()
    few = ScaleConditions(operations=30, warm_up=70)
    for name in ("drbh", "dwom", "mrph", "mwum"):
        assert scaled(name, (4,), few).steps[0].transfers <= 0.1, name
    for standard, commutative in (("read", "pread"), ("pipe-new", "pipe-new-any")):
        more, less = (scaled(name, (4,), few).steps[0].transfers for name in (standard, commutative))
        assert more > 2 * less + 1, standard


def test_the_picture_has_a_point_for_each_number_of_cores() -> None:
    document = scaled("sharded-map-counted", (1, 2, 4))
    root = ET.fromstring(picture(document))
    titles = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 3
    assert "ENTRY_COUNT" in titles[2]


def test_a_point_of_the_page_leads_to_variables_that_open_both_stacks() -> None:
    document = scaled("sharded-map-counted", (1, 4))
    # The declaration of HTML is none of XML, and two of its elements are not closed.
    shown = page(document).removeprefix("<!doctype html>\n")
    root = ET.fromstring(re.sub(r"<(meta [^>]*)>", r"<\1/>", shown))
    links = [element.get("href") for element in root.iter("{http://www.w3.org/2000/svg}a")]
    assert links == ["#cores-1", "#cores-4"]
    alone, four = (element for element in root.iter("details") if element.get("id"))
    assert [alone.get("id"), four.get("id")] == ["cores-1", "cores-4"]
    assert "No line goes" in "".join(alone.itertext())
    [variable] = (element for element in four.iter("details") if element.get("class") == "variable")
    assert "ENTRY_COUNT" in "".join(next(variable.iter("summary")).itertext())
    stacks = ["".join(stack.itertext()) for stack in variable.iter("ol")]
    assert len(stacks) == 2
    assert all("sharded.rs:" in stack for stack in stacks)
    assert "<script" not in shown


def command(*arguments: str) -> int:
    return run(["scale", *arguments])


def test_a_gate_fails_on_the_planted_counter_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    few = ("--cores", "2,8", "--operations", "50", "--warm-up", "10", "--fail-on", "transfers>0.1@8")
    path = tmp_path / "counted.json"
    assert command("sharded-map-counted", *few, "--format", "json", "-o", str(path)) == 1
    assert "most of it commutant_scale_runner::benchmarks::sharded::ENTRY_COUNT" in capfd.readouterr().err
    document: dict[str, Any] = json.loads(path.read_text())
    assert [step["cores"] for step in document["steps"]] == [2, 8]
    assert document["complete"]
    assert command("sharded-map", *few) == 0
    assert "No line goes from core to core with 8 cores." in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("open", "--cores", "1,257"), "expected 1 to 256 cores, got 257"),
        (("open", "--cores", "0,1"), "expected 1 to 256 cores, got 0"),
        (("open", "--cores", "2,1"), "expected ascending numbers of cores"),
        (("open", "--cores", "1,2,4,..."), "expected ascending numbers of cores"),
        (("open", "--cores", "...,4"), "expected ascending numbers of cores"),
        (("opne",), "did you mean"),
        (("open", "--fail-on", "transfers>1@3"), "expected one of the --cores"),
        (("open", "--fail-on", "transfers"), "as transfers>0.1@64"),
        (("open", "--hand-over", "1025"), "1025"),
    ],
)
def test_bad_use_is_one_line(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert command(*arguments) == 2
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("given", "meant"),
    [("1,2,4,...,64", (1, 2, 4, 8, 16, 32, 64)), ("2,4,...,10", (2, 4, 8, 10)), ("10,15,...,30", (10, 15, 20, 25, 30))],
)
def test_steps_go_on_as_they_begin(given: str, meant: tuple[int, ...]) -> None:
    from commutant.cli.scale import _Cores

    assert _Cores().convert(given, None, None) == meant


def test_what_does_not_end_in_time_is_stopped(capfd: pytest.CaptureFixture[str]) -> None:
    assert command("open", "--cores", "2", "--operations", "1000000", "--timeout", "1") == 3
    assert "did not end within 1 s" in capfd.readouterr().err


def test_a_file_system_that_is_too_small_is_one_line() -> None:
    """By itself, since 200,000 operations take long under the emulator."""
    numbers = {"cores": 1, "operations": 200_000, "warm-up": 0, "seed": 1, "hand-over": 0, "maintain-every": 10**6}
    command = [str(artifacts.scale_runner_path()), "dwal", *map(str, numbers.values()), os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    [line] = done.stderr.splitlines()
    assert line.startswith("commutant-scale-runner: pwrite: ENOSPC: the file system is too small for this benchmark")
    assert "--maintain-every" in line


@pytest.mark.parametrize(
    ("stopped", "code", "said"), [(RunError("it broke"), 3, "it broke"), (KeyboardInterrupt(), 130, "interrupted")]
)
def test_what_was_counted_before_a_failure_is_shown_as_such(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stopped: BaseException, code: int, said: str
) -> None:
    counted = counting.counted

    def failing(benchmark: Benchmark, cores: int, conditions: ScaleConditions) -> Any:
        if cores == 2:
            raise stopped
        return counted(benchmark, cores, conditions)

    monkeypatch.setattr(importlib.import_module("commutant.scale.scaling"), "counted", failing)
    assert command("sharded-map", "--cores", "1,2", "--operations", "5") == code
    printed = capfd.readouterr()
    assert said in printed.err
    assert "INTERRUPTED" in printed.out
    assert "\n      1      0.0000" in printed.out


def test_without_a_benchmark_all_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert command() == 0
    out = capfd.readouterr().out
    assert {"stat", "open-any", "create", "map", "send-any"} <= {line.split(" ")[0] for line in out.splitlines()}
