"""A run as Markdown for a pull request: the figures first, lists folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from commutant.campaign import Outcome
from commutant.corpus import headline
from commutant.report.causes import RunCause, rank_causes
from commutant.report.data import (
    JudgedTest,
    RunReport,
    SetCounts,
    beside_only,
    read_sets,
    skipped_reasons,
    total_counts,
)
from commutant.report.groups import FindingGroup
from commutant.report.heat import sorted_sets
from commutant.report.markdown import cell, code, folded, table
from commutant.report.ranking import SharedVariable, rank_shared
from commutant.report.reach import not_reached
from commutant.report.variables import by_variable
from commutant.support import percent, plural

LISTED = 10
FIRST = 3
"""Causes that the text begins with, and sets of calls that each names."""


def run_markdown(run: RunReport, groups: Sequence[FindingGroup]) -> str:
    """The Markdown; `groups` are the run's findings as `commutant.compare.findings_of` marks them."""
    return "\n\n".join(_parts(run, groups)) + "\n"


def _parts(run: RunReport, groups: Sequence[FindingGroup]) -> Iterator[str]:
    sets = read_sets(run.summary)
    total = total_counts(sets)
    subject = code(f"{run.summary.get('interface')} on {run.summary.get('target')}")
    yield (
        f"### {subject}: {total.not_conflict_free:,} of {plural(total.judged, 'test')} not conflict-free "
        f"({percent(total.fraction)})"
    )
    unreached = run.summary.get("unreached", 0)
    notes = [
        f"{count:,} {words}"
        for count, words in (
            (beside_only(run.tests), "by neighbouring lines alone"),
            (total.unstable, "unstable"),
            (total.wrong_result, "with a **wrong result**"),
            (total.crashed, "**crashed**"),
            (total.skipped, "skipped"),
            (unreached if isinstance(unreached, int) else 0, "of these with a set-up that led elsewhere"),
        )
        if count
    ]
    new = sum(1 for group in groups if group.is_new and not group.accepted)
    accepted = sum(1 for group in groups if group.accepted)
    findings = plural(len(groups), "finding")
    if any(group.is_new is not None for group in groups):
        findings += f", **{new:,} new**"
    if accepted:
        findings += f", {accepted:,} accepted"
    if missing := not_reached(run.summary):
        yield f"Not reached: {'; '.join(missing)}."
    yield ". ".join([findings, *([", ".join(notes)] if notes else [])]) + "."
    ranking = rank_causes(run.tests)
    first = [cause for cause in ranking[:FIRST] if cause.first]
    if first:
        yield _first_list(first)
    elif ranking:
        yield "No common cause can be found: of each test, every shared line is of its own."
    variables = rank_shared(run.tests)
    if variables:
        yield _ranking_table(variables[:LISTED], groups)
    if sets:
        yield folded(plural(len(sets), "set of calls", "sets of calls"), _set_table(sorted_sets(sets)))
    if reasons := skipped_reasons(run.tests):
        rows = ((f"{tests:,}", cell(why)) for why, tests in reasons[:LISTED])
        skipped = plural(sum(tests for _, tests in reasons), "skipped test")
        yield folded(skipped, table(("tests:", "why"), rows))
    failed = [judged for judged in run.tests if judged.outcome in (Outcome.WRONG_RESULT, Outcome.CRASHED)]
    if failed:
        yield folded(plural(len(failed), "wrong result or crash", "wrong results and crashes"), _failure_table(failed))


def _first_list(first: Sequence[RunCause]) -> str:
    lines = ["What to fix first:"]
    for number, cause in enumerate(first, 1):
        sets = ", ".join(code(" with ".join(calls)) for calls, _ in cause.sets.most_common(FIRST))
        lines.append(
            f"{number}. {code(cause.title)}: the first cause in {plural(cause.first, 'test')} ({sets}). "
            f"{cause.example.hint.technique.title}: {cause.example.hint.technique.advice}"
        )
    return "\n".join(lines)


def _ranking_table(ranking: Sequence[SharedVariable], groups: Sequence[FindingGroup]) -> str:
    hints = {variable.name: variable.groups[0].hint for variable in by_variable(groups)}
    rows = []
    for variable in ranking:
        advice = hints.get(variable.name)  # none of a variable that is in unstable tests alone
        looks = (advice.kind.value, advice.technique.title) if advice else ("", "")
        rows.append((cell(variable.name), f"{variable.tests:,}", f"{variable.sets:,}", *looks))
    return table(("shared most", "tests:", "sets of calls:", "kind", "look at"), rows)


def _set_table(sets: Sequence[SetCounts]) -> str:
    rows = (
        (cell(", ".join(one.calls)), f"{one.not_conflict_free:,}", f"{one.judged:,}", percent(one.fraction))
        for one in sets
    )
    return table(("calls", "not conflict-free:", "of:", "fraction:"), rows)


def _failure_table(failed: Sequence[JudgedTest]) -> str:
    rows = (
        (cell(judged.test.id), cell(headline(judged.test.calls)), cell(judged.detail)) for judged in failed[:LISTED]
    )
    more = f"\n\nand {len(failed) - LISTED:,} more" if len(failed) > LISTED else ""
    return table(("test", "calls", "what"), rows) + more
