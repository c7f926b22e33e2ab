"""The gate behind `check --fail-on` (`commutant.compare.gate`) on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commutant.cli import console
from commutant.support import UsageError

if TYPE_CHECKING:
    from commutant.compare import Suppressions
    from commutant.corpus import TestCase
    from commutant.report import RunReport
    from commutant.runs import Check, Run


def refuse_without_common_test(baseline: Run, check: Check) -> None:
    """Raises UsageError before anything runs, if the comparison after it could say nothing."""
    if not any(test.id in baseline.tests for test in check.corpus.tests):
        raise UsageError(
            f"{baseline.path} has none of these tests: it is of {baseline.info.interface} "
            f"(model {baseline.info.model}), this corpus of {check.corpus.interface} "
            f"(model {check.corpus.model_hash}); give a run of the same corpus"
        )


def failures(run: Run, baselines: Sequence[Run], suppressions: Suppressions) -> int:
    """How many findings fail the gate; says on standard error which, and where they are shown.

    Without baselines all that stand and are not accepted. With baselines those that are new, too, and that stand or are
    seen again in a second campaign over a few of their tests, in another order.
    """
    from commutant.compare import gate
    from commutant.runs import again_folder, report_of, run_again

    shown = run.path

    def again(tests: Sequence[TestCase]) -> RunReport:
        nonlocal shown
        shown = again_folder(run)
        with console.ProgressBar("checking again what is new") as bar:
            return report_of(run_again(run, tests, bar))

    gated = gate(report_of(run), [report_of(one) for one in baselines], suppressions, again)
    if gated.new:
        count, *named = gated.lines()
        where = f" in {shown}" if gated.was_repeated else ""
        console.message(f"{count.removesuffix(':')}{where}: `commutant report {shown}` shows them")
        for line in named:
            console.message(line)
    return len(gated.failing)
