"""What to fix first, in the terminal: of each call with itself the first cause, and the causes of the whole run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from commutant.mtrace import Finding
from commutant.report.causes import RunCause, rank_causes
from commutant.report.data import JudgedTest
from commutant.report.parallel import ParallelCall, parallel_calls
from commutant.support import percent, plural, safe_text

FIRST_CAUSES = 3
"""Causes that a run's report begins with."""

SETS_NAMED = 3
"""Sets of calls that are named with a cause."""

_CALL_WIDTH = 12  # a call with many flags takes two lines, as its row does

CALLS_NAMED = 8
"""Calls of which it is said what to fix first."""


def print_first(
    tests: Sequence[JudgedTest],
    console: Console,
    causes: int = FIRST_CAUSES,
    calls: int = CALLS_NAMED,
    worth: Callable[[Finding], list[str]] | None = None,
) -> None:
    """Says what to fix first: of each call with itself the first cause; then the causes that come first in most
    tests, where, and what to look at, with `worth` also what changes of it would free. Says so where tests share memory
    and no cause can be found."""
    ranking = rank_causes(tests)
    together = parallel_calls(tests)
    if together:
        console.print(Text("What to fix first", style="bold").append(", so that a call scales with itself", "not bold"))
        _print_parallel(together[:calls], console)
        if len(together) > calls:
            console.print(Text(f"and {plural(len(together) - calls, 'call')} more (--first lists all)\n"))
    if ranking and ranking[0].first:
        console.print(_heading("over all pairs"))
        for number, cause in enumerate(ranking[:causes], 1):
            if cause.first:
                _print_cause(number, cause, console, worth)
        console.print()
    elif ranking:
        console.print(_heading("over all pairs"))
        console.print(Text("No common cause can be found: of each test, every shared line is of its own.\n"))


def _heading(where: str) -> Text:
    return Text("What to fix first", style="bold").append(f", {where}", style="not bold")


def _print_cause(number: int, cause: RunCause, console: Console, worth: Callable[[Finding], list[str]] | None) -> None:
    example = cause.example
    sets = ", ".join(" with ".join(map(safe_text, calls)) for calls, _ in cause.sets.most_common(SETS_NAMED))
    more = f" and {len(cause.sets) - SETS_NAMED} more" if len(cause.sets) > SETS_NAMED else ""
    text = Text(f"{number}. ").append(safe_text(cause.title), style="bold")
    text.append(
        f": the first cause in {plural(cause.first, 'test')} ({sets}{more}); as in "
        f"{safe_text(cause.example_id)}, where {example.sentence}."
    )
    console.print(text)
    console.print(Padding(Text(example.hint.sentence, style="italic"), (0, 0, 0, 3)))
    for change in worth(example.lines[0]) if worth is not None else ():
        console.print(Padding(Text(change), (0, 0, 0, 3)))


def _print_parallel(together: Sequence[ParallelCall], console: Console) -> None:
    """A row of two lines for each call: what its lines follow from, and what to look at."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", highlight=False)
    table.add_column("in parallel", overflow="fold", max_width=_CALL_WIDTH)
    table.add_column("tests", justify="right", no_wrap=True)
    table.add_column("most lines follow from", overflow="fold", ratio=1)
    table.add_column("lines", justify="right", no_wrap=True)
    for one in together:
        cause = Text("no common cause can be found")
        if one.first is not None:
            cause = Text(safe_text(one.first.title)).append(f"\n{one.first.hint.technique.title}", style="italic")
        table.add_row(
            Text(safe_text(one.call)),
            Text(f"{one.conflicting:,}/{one.tests:,}"),
            cause,
            Text(percent(one.explained / one.lines) if one.first else "-"),
        )
    console.print(table)
