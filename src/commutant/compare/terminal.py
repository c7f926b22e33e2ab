"""A comparison in the terminal: what became worse and why, then what came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commutant.compare.corpora import CorpusComparison
from commutant.compare.runs import ChangedSet, RunComparison
from commutant.compare.sides import Side
from commutant.report import FindingGroup, by_variable, by_weight
from commutant.support import plural, safe_text

LISTED = 20
"""Rows of a table."""
LISTED_IDS = 5
CAUSES = 3
FUNCTIONS = 3
LEAST_CHANGE = 0.1
"""A set is listed as sharing more or less if that is so by this part: two runs of one target differ a little."""


def print_run_comparison(comparison: RunComparison, base: Side, new: Side, console: Console) -> None:
    """Two runs: counts, calls that became worse with the variables behind, variables that appeared and went."""
    for label, side in (("BASE", base), ("NEW", new)):
        _line(console, Text(f"{label:<5}").append(side.title, style="bold").append(f": {side.counts}"))
    for line in comparison.reach("BASE", "NEW"):
        _line(console, Text(line, style="dim"))
    worse, better = len(comparison.worse), len(comparison.better)
    before, after = (_each(shared, comparison.common) for shared in comparison.shared)
    _line(
        console,
        Text(
            f"{plural(comparison.common, 'test')} in both: {worse:,} worse, {better:,} better{_apart(comparison)}; "
            f"a test shares {before} variables in BASE, {after} in NEW"
        ),
    )
    _print_sets(comparison.sets, console, "became worse", lambda one: one.worse, lambda one: one.causes)
    _print_sets(comparison.sets, console, "became better", lambda one: one.better, lambda one: one.reliefs)
    _print_shares(comparison.sets, console, "share more", 1, lambda one: one.gained)
    _print_shares(comparison.sets, console, "share less", -1, lambda one: one.lost)
    console.print()
    accepted = sum(1 for group in comparison.appeared if group.accepted)
    _line(
        console,
        Text(
            f"Findings: {len(comparison.appeared):,} appeared"
            + (f" ({accepted:,} of them accepted)" if accepted else "")
            + f", {len(comparison.went):,} went, {len(comparison.moved):,} moved, {len(comparison.stayed):,} stayed",
            style="bold",
        ),
    )
    _print_variables("Appeared", [group for group in comparison.appeared if not group.accepted], console)
    _print_variables("Went", comparison.went, console)
    for group in by_weight(comparison.moved)[:LISTED]:
        assert group.former is not None
        _line(console, Text(safe_text(f"moved: {group.former.place} is now {group.fingerprint.place}"), style="dim"))
    _rest(len(comparison.moved), "finding", console)


def print_corpus_comparison(comparison: CorpusComparison, base: Side, new: Side, console: Console) -> None:
    """Two corpora: tests added and removed per set of calls, with the first ids."""
    for label, side in (("BASE", base), ("NEW", new)):
        _line(console, Text(f"{label:<5}").append(side.title, style="bold").append(f": {side.counts}"))
    _line(
        console,
        Text(f"{comparison.common:,} in both, {comparison.added:,} added, {comparison.removed:,} removed"),
    )
    changed = [one for one in comparison.sets if one.added or one.removed]
    if not changed:
        return
    console.print()
    table = _table("added", "removed", "in both", last=("calls", "such as"))
    for one in changed[:LISTED]:
        ids = [f"+{test_id}" for test_id in one.added[:LISTED_IDS]] + [f"-{test_id}" for test_id in one.removed]
        table.add_row(
            *(Text(f"{count:,}") for count in (len(one.added), len(one.removed), one.common)),
            Text(", ".join(map(safe_text, one.calls))),
            Text(", ".join(map(safe_text, ids[:LISTED_IDS]))),
        )
    console.print(table)
    _rest(len(changed), "set", console)


def _apart(comparison: RunComparison) -> str:
    parts = [
        f"{count:,} only in {label}"
        for count, label in ((comparison.only_base, "BASE"), (comparison.only_new, "NEW"))
        if count
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _print_sets(
    sets: Sequence[ChangedSet],
    console: Console,
    what: str,
    count: Callable[[ChangedSet], int],
    behind: Callable[[ChangedSet], Counter[str]],
) -> None:
    changed = sorted((one for one in sets if count(one)), key=lambda one: (-count(one), one.calls))
    if not changed:
        return
    console.print()
    _line(console, Text(f"Calls that {what}", style="bold"))
    table = _table("tests", "before", "after", "of", last=("calls", "because of"))
    for one in changed[:LISTED]:
        table.add_row(
            *(Text(f"{number:,}") for number in (count(one), one.before, one.after, one.tests)),
            Text(", ".join(map(safe_text, one.calls)), style="bold"),
            Text(", ".join(f"{safe_text(name)} ({number:,})" for name, number in behind(one).most_common(CAUSES))),
        )
    console.print(table)
    _rest(len(changed), "set", console)


def _print_shares(
    sets: Sequence[ChangedSet],
    console: Console,
    what: str,
    sign: int,
    behind: Callable[[ChangedSet], Counter[str]],
) -> None:
    """Sets whose tests share more (or less), whether or not that made them conflicting."""

    def rise(one: ChangedSet) -> float:
        return sign * (one.shared_after - one.shared_before)

    changed = [one for one in sets if rise(one) > LEAST_CHANGE * max(one.shared_before, one.shared_after)]
    changed.sort(key=lambda one: (-rise(one) / one.tests, one.calls))
    if not changed:
        return
    console.print()
    _line(console, Text(f"Calls that {what}", style="bold").append("; variables of a test", style="not bold"))
    table = _table("before", "after", "of", last=("calls", "because of (tests)"))
    for one in changed[:LISTED]:
        table.add_row(
            Text(_each(one.shared_before, one.tests)),
            Text(_each(one.shared_after, one.tests)),
            Text(f"{one.tests:,}"),
            Text(", ".join(map(safe_text, one.calls)), style="bold"),
            Text(", ".join(f"{safe_text(name)} ({number:,})" for name, number in behind(one).most_common(CAUSES))),
        )
    console.print(table)
    _rest(len(changed), "set", console)


def _each(sum_of_tests: int, tests: int) -> str:
    return f"{sum_of_tests / max(tests, 1):.1f}"


def _print_variables(title: str, groups: Iterable[FindingGroup], console: Console) -> None:
    variables = by_variable(groups)
    if not variables:
        return
    console.print()
    _line(console, Text(title, style="bold"))
    table = _table("tests", "sets", last=("variable", "in"))
    for variable in variables[:LISTED]:
        table.add_row(
            Text(f"{variable.tests:,}"),
            Text(f"{len(variable.sets):,}"),
            Text(safe_text(variable.name), style="bold"),
            Text(", ".join(map(safe_text, variable.functions[:FUNCTIONS]))),
        )
    console.print(table)
    _rest(len(variables), "variable", console)


def _table(*numbers: str, last: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim", highlight=False)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(last[0], overflow="fold", ratio=2)
    table.add_column(last[1], overflow="fold", ratio=3)
    return table


def _rest(count: int, noun: str, console: Console) -> None:
    if count > LISTED:
        _line(console, Text(f"and {plural(count - LISTED, noun)} more; --format json lists all", style="dim"))


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
