"""What changes are worth, in the terminal and as JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commutant.remedy.change import Change
from commutant.remedy.documents import RemedyDocument, RemedyRow, change_entries, named_counts, set_counts
from commutant.remedy.foretell import Foretold
from commutant.remedy.places import without_owner
from commutant.remedy.rank import Ranking
from commutant.remedy.savings import Saving
from commutant.remedy.show_savings import saved_text
from commutant.support import percent, plural, safe_text

_PAIRS_SHOWN = 3
_LEFT_SHOWN = 5

Calls = Mapping[str, tuple[str, ...]]
"""The calls of each test."""


def print_ranking(ranking: Ranking, calls: Calls, console: Console) -> None:
    """Prints the list of changes; `together` counts what a change frees with those above it."""
    heading = f"{ranking.tests:,} of {plural(ranking.judged, 'test')} not conflict-free"
    if not ranking.changes:
        console.print(Text(f"{heading}; no change of a single place would free any of them"), soft_wrap=True)
        return
    console.print(Text(f"{heading}; these changes would free most of them"), soft_wrap=True)
    console.print()
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("alone", justify="right")
    table.add_column("together", justify="right")
    table.add_column("change", ratio=3, overflow="fold")
    table.add_column("mostly in", ratio=2, overflow="fold")
    for one in ranking.changes:
        table.add_row(
            f"{len(one.alone.freed):,}",
            f"{one.together:,}",
            safe_text(str(one.change)),
            safe_text(_pairs(one.alone.freed or one.newly, calls)),
        )
    console.print(table)
    last = ranking.changes[-1].together
    console.print()
    console.print(Text(f"All of them: {plural(last, 'test')}, {percent(last / ranking.tests)} of those that share"))
    console.print(Text(_LIMIT, style="dim"), soft_wrap=True)


def print_next(run: Path, target: str, change: Change, locks: Iterable[str], console: Console) -> None:
    """Prints how a change that was made is proved: the run's tests again, and what came of them.

    A lock has its full name where others of the run's locks have the same one but for whose it is.
    """
    again = "linux:kernel=NAME" if target.partition(":")[0] == "linux" else target
    short = without_owner(change.place)
    is_of_many = sum(without_owner(lock) == short for lock in locks) > 1
    flag = f"--{change.way.value} {shlex.quote(change.place if is_of_many else short)}"
    lines = (
        "Make a change, and prove it, here the first:",
        f"  commutant check {shlex.quote(str(run))} --target {shlex.quote(again)} -o NEW",
        f"  commutant prove {shlex.quote(str(run))} NEW {flag}",
    )
    for line in ("", *lines):
        console.print(Text(safe_text(line)), soft_wrap=True)


def print_foretold(
    foretold: Foretold, calls: Calls, tests: int, console: Console, saving: Saving | None = None
) -> None:
    """Prints what given changes free, and what would still be shared; of those that free nothing what they save."""
    for change in foretold.changes:
        console.print(Text(safe_text(str(change)), style="bold"), soft_wrap=True)
    freed, fewer = len(foretold.freed), len(foretold.fewer)
    if not freed:
        made = "this change" if len(foretold.changes) == 1 else "these changes together"
        few = f"{plural(tests, 'test')} that {'is' if tests == 1 else 'are'} not conflict-free"
        console.print(Text(f"{made} would free none of {few}"), soft_wrap=True)
        if saving is not None:
            text = f"but saves {saved_text(saving)}; --by transfers says more"
            console.print(Text(safe_text(text)), soft_wrap=True)
    else:
        console.print(Text(f"frees {freed:,} of {plural(tests, 'test')} that are not conflict-free"), soft_wrap=True)
        console.print(Text(f"  mostly {safe_text(_pairs(foretold.freed, calls))}"), soft_wrap=True)
    if fewer:
        verb = "shares" if fewer == 1 else "share"
        console.print(Text(f"{plural(fewer, 'more test')} {verb} less, and still:"), soft_wrap=True)
        for name, count in Counter(foretold.left).most_common(_LEFT_SHOWN):
            console.print(Text(f"  {count:>6,}  {safe_text(name)}"), soft_wrap=True)
    console.print(Text(_LIMIT, style="dim"), soft_wrap=True)


_LIMIT = "Predicted for lines of their own and gaps where fields were: a run cannot say what else comes into a line."


def remedy_document(
    changes: Sequence[tuple[Sequence[Change], Foretold, int]], calls: Calls, tests: int, judged: int, exact: bool
) -> RemedyDocument:
    """The document: per row its changes, what they free, and the tests freed together with all rows before it."""
    rows = tuple(
        RemedyRow(
            changes=change_entries(made),
            text="; ".join(map(str, made)),
            freed=len(foretold.freed),
            freed_together=together,
            fewer=len(foretold.fewer),
            tests=tuple(sorted(foretold.freed)),
            sets=set_counts(_counted(foretold.freed, calls)),
            left=named_counts(Counter(foretold.left).most_common()),
        )
        for made, foretold, together in changes
    )
    return RemedyDocument(judged=judged, not_conflict_free=tests, bytes_per_test=exact, changes=rows)


def _counted(tests: Collection[str], calls: Calls) -> list[tuple[tuple[str, ...], int]]:
    found = Counter(calls[test] for test in tests)
    return sorted(found.items(), key=lambda one: (-one[1], one[0]))


def _pairs(tests: Collection[str], calls: Calls) -> str:
    found = _counted(tests, calls)
    named = [f"{'+'.join(names)} {count:,}" for names, count in found[:_PAIRS_SHOWN]]
    more = len(found) - _PAIRS_SHOWN
    return ", ".join(named) + (f", {more} more" if more > 0 else "")
