"""Tables and lines of the lock view in the terminal: names come from files and are made safe here."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from commutant.support import safe_text


def table(first: str, *others: str) -> Table:
    """A table of a name and of numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    made.add_column(Text(safe_text(first)), overflow="fold")
    for name in others:
        made.add_column(name, justify="right", no_wrap=True)
    return made


def name_cell(name: str) -> Text:
    """A name as a cell."""
    return Text(safe_text(name))


def line(console: Console, text: str) -> None:
    """Prints a line, which is not broken."""
    console.print(Text(safe_text(text)), soft_wrap=True)


def share_cell(value: float | None) -> str:
    """A percentage, if there is one."""
    return "-" if value is None else f"{value:.1f}"


def number_cell(value: float | None) -> str:
    """A number, if there is one."""
    return "-" if value is None else f"{value:,.1f}"
