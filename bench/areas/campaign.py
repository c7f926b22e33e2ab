"""What posix18 takes from the model to the report: all tests at level `conflict`, and all of them run on Linux."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.commands import Run, commutant_run
from bench.figure import Figure, Goal

TITLE = "Tests of posix18, made and run on Linux"
GENERATE = ("generate", "posix18", "--no-cache")
GENERATIONS = 3
CHECKS = (("tmpfs", 3, 120), ("ramfs", 3, 120), ("tmpfs", 1, 45))
"""File system, `--repeats`, and seconds to stay below."""


def measure() -> list[Figure]:
    """Seconds of making the tests and of checking them on each file system, page included, and what came of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpora = [folder / f"posix18-{number}.jsonl.gz" for number in range(GENERATIONS)]
        made = [commutant_run(*GENERATE, "--format", "json", "-o", str(corpus)) for corpus in corpora]
        figures = [*_of_generation(made)]
        for file_system, repeats, limit_seconds in CHECKS:
            options = ("--target", f"linux:fs={file_system}", "--repeats", str(repeats))
            run_folder = folder / f"{file_system}-{repeats}"
            run = commutant_run("check", str(corpora[0]), *options, "-o", str(run_folder))
            command = " ".join(("commutant check posix18.jsonl.gz", *options))
            title = f"run on {file_system} with --repeats {repeats}"
            figures += _of_check(title, command, run, run_folder, limit_seconds)
    return figures


def _of_generation(runs: list[Run]) -> Iterator[Figure]:
    command = " ".join(("commutant", *GENERATE))
    tests = tuple(float(sum(pair["tests"] for pair in run.document()["sets"])) for run in runs)
    yield Figure("all pairs with tests", "s", tuple(run.wall_seconds for run in runs), command, Goal("at_most", 10))
    yield Figure("all pairs with tests, processor time", "s", tuple(run.processor_seconds for run in runs), command)
    yield Figure("tests", "tests", tests, command, Goal("at_least", 20_000))
    yield Figure("all pairs with tests, largest process", "MiB", tuple(run.peak_memory_mib for run in runs), command)


def _of_check(title: str, command: str, run: Run, folder: Path, limit_seconds: float) -> Iterator[Figure]:
    summary = json.loads((folder / "summary.json").read_text())
    yield Figure(f"{title}, whole command", "s", (run.wall_seconds,), command, Goal("at_most", limit_seconds))
    yield Figure(f"{title}, processor time", "s", (run.processor_seconds,), command)
    yield Figure(f"{title}, windows", "windows", (summary["windows"],), command)
    yield Figure(f"{title}, wrong results", "tests", (summary["wrong_result"],), command, Goal("at_most", 0))
    yield Figure(f"{title}, unstable", "tests", (summary["unstable"],), command)
    yield Figure(f"{title}, largest process", "MiB", (run.peak_memory_mib,), command)
