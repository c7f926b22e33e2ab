"""The area `domains` of the benchmarks: its program runs, and every ratio is of times of one round."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.areas import domains
from bench.commands import ROOT
from bench.hare import section

BENCHMARKS = (
    *("creates", "writes", "renames", "directories", "rm dense", "rm sparse", "pfind dense", "pfind sparse"),
    *("extract", "punzip", "fsstress", "mailbench", "build linux"),
)


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it without optimisation, and without the network."""
    command = [*(word for word in domains.COMMAND if word != "--release"), *arguments]
    command.insert(2, "--offline")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def output() -> str:
    ran = program("--quick")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_program_prints_all_that_figures_are_made_of(output: str) -> None:
    figures = {figure.name: figure for figure in domains.figures_of(domains.Rows.read(output))}
    for benchmark in BENCHMARKS:
        for system in domains.SYSTEMS:
            assert figures[f"{benchmark}, {system}: throughput, of tmpfs's"].median > 0
        assert figures[f"{benchmark}, 3 simulated cores: speed-up"].median > 0
        assert figures[f"{benchmark}: gain of distribution"].median > 0
        shares = [figure.median for name, figure in figures.items() if name.startswith(f"{benchmark}: calls of ")]
        assert sum(shares) == pytest.approx(1)
    # Names of another domain are asked for; what a program makes for itself is not.
    assert figures[f"creates, {domains.SPLIT}: messages, per call"].median > 1
    assert figures[f"extract, {domains.SERVER}: messages, per call"].median > 1
    assert figures[f"{domains.SPLIT}: bare"].median > 0
    assert {name for name in figures if "efficiency" in name} == {
        f"{workload}, 4 simulated hosts on CXL: efficiency" for workload in domains.EFFICIENCY
    }


def test_a_part_that_is_done_is_not_measured_again(tmp_path: Path) -> None:
    kept = tmp_path / "trips.jsonl"
    with pytest.raises(RuntimeError, match="returned 3"):
        domains.part_of(kept, sys.executable, "-c", "print('half'); raise SystemExit(3)")
    assert not kept.exists()
    assert domains.part_of(kept, sys.executable, "-c", "print('whole')") == "whole\n"
    assert domains.part_of(kept, sys.executable, "-c", "raise SystemExit(3)") == "whole\n"


def test_a_ratio_is_of_one_round(output: str) -> None:
    rows = domains.Rows.read(output)
    slow = [json.loads(line) for line in output.splitlines()]
    for row in slow:
        if row.get("configuration") == domains.SPLIT and "benchmark" in row:
            row["ns"] *= 2
    text = "\n".join(json.dumps(row) for row in slow)
    name = f"creates, {domains.SPLIT}: throughput, of tmpfs's"
    before, after, both = (
        next(figure for figure in domains.figures_of(domains.Rows.read(lines)) if figure.name == name)
        for lines in (output, text, output + text)
    )
    assert after.median == pytest.approx(before.median / 2)
    assert both.samples == (before.median, after.median)
    assert rows.names("measured", "benchmark") == list(BENCHMARKS)


def test_the_page_has_a_row_for_each_benchmark_and_says_what_was_missed(output: str) -> None:
    figures = domains.figures_of(domains.Rows.read(output))
    area = {"date": "2026-01-31", "machine": {"commit": "abcdef123"}, "figures": [it.to_json() for it in figures]}
    lines = "\n".join(section(area)).splitlines()
    for benchmark in BENCHMARKS:
        assert len([line for line in lines if line.startswith(f"| {benchmark} | ")]) == 3, benchmark
    missed = [figure for figure in figures if figure.met is False]
    assert missed, "so few calls reach no goal of 40 domains"
    assert sum("**missed**" in line for line in lines) > 0
    of_techniques = next(line for line in lines if line.startswith("| benchmark | speed-up | "))
    techniques = [cell.strip() for cell in of_techniques.split("|")[3:-1]]
    assert set(domains.GAINS) < set(techniques), "Hare's five, and ours"
    widths = {line.count("|") for line in lines if line.startswith(("| creates | ", "| median | ", "| here: "))}
    assert len(widths) == 3, "three tables, each with one number of columns"


def test_the_page_has_the_heading_that_others_lead_to_before_anything_was_measured() -> None:
    lines = "\n".join(section(None)).splitlines()
    assert lines[1].startswith("## Hare's benchmarks")
    assert any("make bench-domains" in line for line in lines)


def test_a_part_that_there_is_not_is_refused() -> None:
    ran = program("--fast")
    assert ran.returncode == 2
    assert ran.stderr.startswith("domains-bench: expected [--quick] [trips|measured|hare|cxl]..., got ")
    assert ran.stderr.count("\n") == 1
