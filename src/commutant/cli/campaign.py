"""One campaign from the command line, for `check`, `resume` and `repeat`: run it, show it, ask the gate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from commutant.cli import console, gate, options, results
from commutant.support import UsageError, plural

if TYPE_CHECKING:
    from commutant.runs import Check, Run

R = TypeVar("R")


def gated(function: Callable[..., R]) -> Callable[..., R]:
    """`--fail-on`, `--baseline` and `--suppress`, which say when the exit code is 1: the parameter `gate`."""

    @functools.wraps(function)
    def with_gate(
        *args: object, fail_on: str | None, baseline: tuple[Path, ...], suppress: Path | None, **others: object
    ) -> R:
        return function(*args, gate=Gate(fail_on, baseline, suppress), **others)

    option = click.option(
        "--fail-on",
        type=click.Choice(["findings", "new"]),
        help="Exit with 1 if there are findings that stand; `new`: only if a baseline never saw them.",
    )
    return option(options.baseline(options.suppress(with_gate)))


class Gate:
    """What `gated` asked for. Raises UsageError for a baseline or a file of suppressions that cannot be read."""

    def __init__(self, fail_on: str | None, baseline: tuple[Path, ...], suppress: Path | None) -> None:
        from commutant.runs import load_run

        if fail_on == "new" and not baseline:
            raise click.UsageError("--fail-on new needs --baseline RUN, the run that says what is known")
        self._fail_on = fail_on
        self._known = [load_run(path) for path in baseline]
        results.say_if_named_otherwise(*self._known)
        self._suppress = suppress
        self._suppressions = results.load_suppressions(suppress)

    def refuse_without_common_test(self, check: Check) -> None:
        """Raises UsageError before anything runs, if the comparison after it could say nothing."""
        for earlier in self._known:
            gate.refuse_without_common_test(earlier, check)

    def exit_code(self, run: Run) -> int:
        """1 if the run fails the gate, else 0; says why on standard error."""
        if self._fail_on is None:
            return 0
        failed = gate.failures(run, self._known, self._suppressions)
        results.say_unused(self._suppress, self._suppressions)
        return 1 if failed else 0


def carry_out(check: Check, gate: Gate, format_: str) -> int:
    """Runs a check to its end, prints what it found, and returns the exit code: 3 for wrong results, 1 if the gate
    fails.
    """
    gate.refuse_without_common_test(check)
    return conclude(_run(check), gate, format_)


def conclude(run: Run, gate: Gate, format_: str) -> int:
    """Prints what a run found and returns the exit code, as `carry_out` does."""
    if format_ == "json":
        console.write_document(run.summary)
        console.message(f"run: {run.path}")
    else:
        _show(run)
    if run.summary.wrong_result:
        console.error(
            f"wrong results in {plural(run.summary.wrong_result, 'test')}: model and target disagree; "
            f"`commutant report {run.path}` lists them"
        )
        return 3
    return gate.exit_code(run)


def refuse_existing(output: Path | None) -> None:
    """Raises UsageError if there is something where a new run directory is to be."""
    if output is not None and output.exists():
        raise UsageError(f"{output} exists already; -o takes the name of a new directory")


def _run(check: Check) -> Run:
    with check:
        with console.ProgressBar(f"starting {check.target.argument}") as bar:
            check.start(bar)
        if limits := check.target.describe().get("limits"):
            console.message(f"note: {limits}")
        with console.ProgressBar("checking") as bar:
            return check.run(bar)


def _show(run: Run) -> None:
    from commutant import report
    from commutant.runs import REPORT_FILE, report_of

    report.print_run(report_of(run), console.results())
    console.write("\n")
    console.write_path(run.path / REPORT_FILE)
