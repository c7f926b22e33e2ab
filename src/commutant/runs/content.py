"""From a run directory to the plain values that `commutant.report` shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from commutant.documents import builtins
from commutant.runs.directory import Run
from commutant.support import plural

if TYPE_CHECKING:  # who makes or reads a run need not load what shows one
    from commutant.report import JudgedTest, RunReport


def report_of(run: Run) -> RunReport:
    """The run as the report functions take it; raises UsageError if a file of it is damaged."""
    from commutant.report import RunReport

    return RunReport(builtins(run.summary), list(judged_tests(run)), facts(run))


def judged_tests(run: Run) -> Iterator[JudgedTest]:
    """The tests that were judged, in the order of their verdicts; raises UsageError if a file of the run is damaged."""
    from commutant.report import JudgedTest

    for verdict in run.verdicts():
        yield JudgedTest(run.tests[verdict.test_id], verdict.outcome, verdict.findings, verdict.detail)


def facts(run: Run) -> dict[str, str]:
    """What the head of a page says about a run, label to text."""
    info = run.info
    lines = {"command": " ".join(info.command), "started": info.started}
    if not run.complete:
        lines["incomplete"] = f"interrupted after {run.summary.tests:,} of {plural(info.tests, 'test')}"
    for label, value in info.target_description.items():
        lines[label.replace("_", " ")] = value if isinstance(value, str) else _plain(value)
    lines["model"] = info.model
    lines["seed"] = str(info.seed)
    lines["windows per order"] = str(info.repeats)
    lines["commutant"] = info.commutant
    return lines


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    return str(value)
