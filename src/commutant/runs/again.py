"""A few tests of a run a second time, in another order, into a folder of the run: for the gate, before it fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commutant.corpus import TestCase
from commutant.runs.check import Check
from commutant.runs.directory import Run
from commutant.support import OnProgress, no_progress
from commutant.targets import load_target

AGAIN = "again"
"""The folder of a run that holds its second campaign."""


def run_again(run: Run, tests: Sequence[TestCase], on_progress: OnProgress = no_progress) -> Run:
    """Runs these tests of a run again, on its target; raises UsageError and RunError as a check does."""
    info = run.info
    with Check.new(
        run.corpus.with_tests(tests),
        load_target(info.target),
        jobs=info.jobs,
        repeats=info.repeats,
        seed=info.seed + 1,
        directory=again_folder(run),
    ) as check:
        check.start(on_progress)
        return check.run()


def again_folder(run: Run) -> Path:
    """Where the second campaign of a run lies: there may be one already, of an earlier question."""
    number = 1
    while (path := run.path / (AGAIN if number == 1 else f"{AGAIN}-{number}")).exists():
        number += 1
    return path
