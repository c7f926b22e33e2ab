"""The area `olf` of the benchmarks: its program runs, and every ratio is of times that it prints."""

from __future__ import annotations

import subprocess

import pytest

from bench.areas import olf
from bench.commands import ROOT

RATIOS = {f"{one.what}: {one.way} to {one.other}" for one in olf.RATIOS if one.threads == 1}


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it without optimisation and without the network, built in a folder of its own: in the usual one cargo waits
    until all tests of crates are built, which on a busy machine takes longer than a test may."""
    command = [*(word for word in olf.COMMAND if word != "--release"), *arguments]
    command[2:2] = ["--offline", "--target-dir", "target/benchmarks"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def output() -> str:
    ran = program("--quick")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_program_prints_all_that_figures_are_made_of(output: str) -> None:
    figures = olf.figures_of([olf.run_of(output)] * 2)
    names = [figure.name for figure in figures]
    assert set(names) >= RATIOS
    assert len(names) == len(set(names)) > 60
    assert all(figure.median > 0 for figure in figures if "share" not in figure.name)
    assert {figure.goal.kind for figure in figures if figure.goal} == {"at_most", "at_least"}


def test_a_ratio_is_of_one_run(output: str) -> None:
    run = olf.run_of(output)
    slow = olf.Run(
        {key: (2 if key[1] == "move_to" else 1) * time for key, time in run.times.items()}, run.shares, run.sizes
    )
    (before, after), *_ = (
        figure.samples for figure in olf.figures_of([run, slow]) if figure.name.endswith("move_to to two spin locks")
    )
    assert after == pytest.approx(2 * before)


def test_a_part_that_there_is_not_is_refused() -> None:
    ran = program("--fast")
    assert ran.returncode == 2
    assert ran.stderr.startswith("olf-bench: expected [--quick] [moves|maps|")
