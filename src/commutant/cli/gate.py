"""The gate behind `check --fail-on`: which findings fail it, asked twice before it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from commutant.cli import console
from commutant.support import UsageError

if TYPE_CHECKING:
    from commutant.compare import Suppressions
    from commutant.report import FindingGroup, RunReport
    from commutant.runs import Check, Run

AGAIN = "again"
"""The folder of a run that holds the second campaign, over tests with new findings."""


def refuse_without_common_test(baseline: Run, check: Check) -> None:
    """Raises UsageError before anything runs, if the comparison after it could say nothing."""
    if not any(test.id in baseline.tests for test in check.corpus.tests):
        raise UsageError(
            f"{baseline.path} has none of these tests: it is of {baseline.info.interface} "
            f"(model {baseline.info.model}), this corpus of {check.corpus.interface} "
            f"(model {check.corpus.model_hash}); give a run of the same corpus"
        )


def failures(run: Run, baselines: Sequence[Run], suppressions: Suppressions) -> int:
    """How many findings fail the gate; says on standard error how many, and where they are shown.

    Without baselines all that stand and are not accepted. With baselines those that are new, too, and that stand or are
    seen again in a second campaign over a few of their tests, in another order.
    """
    from commutant.compare import failing, findings_of
    from commutant.runs import report_of
    from commutant.support import plural

    content = report_of(run)
    groups = failing(findings_of(content, [report_of(one) for one in baselines], suppressions))
    if not groups:
        return 0
    if not baselines:
        console.message(f"{plural(len(groups), 'finding')}: `commutant report {run.path}` shows them")
        return len(groups)
    again = run.path / AGAIN
    stayed = _seen_again(groups, content, run, again)
    found = plural(len(groups), "new finding")
    console.message(f"{found}, {len(stayed)} of them seen again in {again}: `commutant report {again}` shows them")
    return len(stayed)


def _seen_again(groups: Sequence[FindingGroup], content: RunReport, run: Run, directory: Path) -> list[FindingGroup]:
    from commutant.compare import confirmed, examples_of
    from commutant.runs import Check, report_of
    from commutant.targets import load_target

    corpus = replace(run.corpus, tests=examples_of(groups, content))
    info = run.info
    with Check.new(
        corpus, load_target(info.target), jobs=info.jobs, repeats=info.repeats, seed=info.seed + 1, directory=directory
    ) as check:
        with console.ProgressBar("checking again what is new") as bar:
            check.start(bar)
        return confirmed(groups, report_of(check.run()))
