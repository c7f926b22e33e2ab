"""Two recordings of locks in the terminal: what was gained, lock by lock, then the locks that one of them alone has."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commutant.compare.locks.comparison import LockComparisonDocument
from commutant.compare.locks.lines import HEADINGS, alone, both, details, figures, gained, heading
from commutant.support import plural, safe_text

LISTED = 20
"""Rows of a table."""


def print_lock_comparison(found: LockComparisonDocument, console: Console) -> None:
    """Prints the two recordings, how many locks changed and how, and tables."""
    for label, side in (("BASE", found.base), ("NEW", found.new)):
        _line(console, Text(f"{label:<5}").append(side.title, style="bold").append(f": {side.counts}"))
        _line(console, Text(f"     {safe_text(side.verdict)}", style="dim"))
    _line(console, Text(f"{plural(len(found.locks), 'class', 'classes')} of locks in both: {heading(found)}"))
    _line(console, Text(gained(found)))
    _line(
        console,
        Text(
            "wait: the emulator's clock. held: of all work. indep.: pairs of sections that touch disjoint data. "
            "busy: processors that the sections could keep busy.",
            style="dim",
        ),
    )
    _print_table("Locks in both", [(lock.name, both(lock)) for lock in found.locks], console)
    for lock in found.locks[:LISTED]:
        changes = list(details(lock, safe_text))
        if changes:
            console.print()
            _line(console, Text(safe_text(lock.name), style="bold").append(": its sections", style="not bold"))
            for text in changes:
                _line(console, Text(f"  {text}"))
    for label, locks in alone(found):
        _print_table(f"Only in {label}", [(lock.name, figures(lock.figures)) for lock in locks], console)


def _print_table(title: str, rows: Iterable[tuple[str, tuple[str, ...]]], console: Console) -> None:
    rows = list(rows)
    if not rows:
        return
    console.print()
    _line(console, Text(title, style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", highlight=False)
    for name in HEADINGS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("lock", overflow="fold", ratio=1)
    for name, cells in rows[:LISTED]:
        table.add_row(*map(Text, cells), Text(safe_text(name), style="bold"))
    console.print(table)
    if len(rows) > LISTED:
        more = plural(len(rows) - LISTED, "class", "classes")
        _line(console, Text(f"and {more} more; --format json lists all", style="dim"))


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
