"""Transactions compared with those of TxOS: what is to be reached, what TxOS did, and what is measured here.

TxOS's figures are those of the thesis (tables 5.1, 5.2 and 6.1, figure 5.1), on its own kernel and hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.figure import Figure, number


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of area `transactions` in words, with TxOS's; or why it is not measured there."""

    words: str
    theirs: str
    figure: str
    why: str = ""


ROWS = (
    Row(
        "a plain call, since there are transactions",
        "1.29",
        "",
        "two commits are compared: `make bench-scalefs` on both",
    ),
    Row(
        "a plain change beside transactions",
        "1.42",
        "plain create and unlink beside transactions, of beside plain calls",
    ),
    Row("a plain look beside transactions", "1.42", "plain stat beside transactions, of beside plain calls"),
    Row("`posix18`, conflict-free", "", "", "a campaign: `commutant check posix18 --target scalefs`"),
    Row(
        "a call alone in a transaction, time, of outside",
        "3.0 to 10.7",
        "time alone in one, of outside, geometric mean",
    ),
    Row("the same, instructions", "", "instructions alone in one, of outside, geometric mean"),
    Row("a call in one of ten, time, of outside", "1.3 to 7.4", "time in one of ten, of outside, geometric mean"),
    Row("the same, instructions", "", "instructions in one of ten, of outside, geometric mean"),
    Row("the slowest call alone in one, of tmpfs", "", "slowest call alone in one, of tmpfs"),
    Row("the slowest call in one of ten, of tmpfs", "", "slowest call in one of ten, of tmpfs"),
    Row("10,000 names in one, per name, of outside", "", "10,000 names in one, per name, of outside"),
    Row("the longest wait of a writer beside it", "", "longest call of a writer beside a transaction of 10,000 names"),
    Row("the same, without it (control)", "", "longest call of a writer beside none (control)"),
    Row(
        "two commuting calls commit at once",
        "",
        "",
        "a campaign: `commutant check posix18 --target scalefs:tx=both`",
    ),
    Row("histories without an order", "", "histories without an order"),
    Row("rename as link and unlink, 1 thread, of tmpfs", "", "rename as link and unlink, 1 threads, of tmpfs's rename"),
    Row(
        "the same, 2 threads",
        "0.26 of Linux at 8",
        "rename as link and unlink, 2 threads, of tmpfs's rename",
    ),
    Row("PostMark, of outside", "0.2 of ext2, 0.9 of ext3", "PostMark, in transactions, of outside"),
    Row("PostMark, of tmpfs", "", "PostMark, in transactions, of tmpfs"),
    Row(
        "PostMark, LFS and Andrew phases, of outside",
        "0.4 of ext2, 0.5 of ext3",
        "all phases, of outside, geometric mean",
    ),
    Row("the same, of tmpfs", "", "all phases, of tmpfs, geometric mean"),
    Row(
        "attempts of 10,000 calls against two writers of what they read",
        "",
        "attempts of a transaction of 10,000 calls against two writers of what it reads",
    ),
    Row("the longest wait of such a writer", "", "longest call of such a writer"),
    Row("check and use: rounds that the attacker wins", "loses", "rounds that an attacker wins, in transactions"),
    Row("the same, without (control)", "wins nearly all", "rounds that an attacker wins, without"),
    Row("directory service, add, of outside", "2.5 of LDIF", "directory service, add, in transactions, of outside"),
    Row(
        "directory service, delete, of outside", "3.4 of LDIF", "directory service, delete, in transactions, of outside"
    ),
)

HEAD = ("| what | goal | TxOS | here | smallest to largest | command |", "| --- | --- | --- | --- | --- | --- |")

SECTION = """
## Transactions beside TxOS
What `make bench-transactions` measured on {date} at commit {commit}. TxOS's figures are those of its thesis (tables
5.1, 5.2, 6.1; section 5.6), of its own kernel and machines. Ours are of {machine}.
"""


def table(figures: Mapping[str, Figure]) -> Iterator[str]:
    """The rows of the table, with the figures of area `transactions` by name."""
    yield from HEAD
    for row in ROWS:
        figure = figures.get(row.figure)
        if figure is None:
            why = row.why or "not measured: a call of it is refused in transactions"
            yield f"| {row.words} |  | {row.theirs} | | | {why} |"
            continue
        low, high = number(min(figure.samples)), number(max(figure.samples))
        here = f"**{number(figure.median)}** {figure.unit}".strip()
        yield f"| {row.words} | {figure.goal_text} | {row.theirs} | {here} | {low} to {high} | `{figure.command}` |"


def section(area: Mapping[str, Any] | None) -> Iterator[str]:
    """The lines of the page of figures; none before the first measurement."""
    if area is None:
        return
    figures = {figure["name"]: Figure.from_json(figure) for figure in area["figures"]}
    machine = ", ".join(f"{key} {value}" for key, value in area["machine"].items() if key != "commit")
    commit = area["machine"].get("commit", "")[:7]
    yield SECTION.format(machine=machine, date=area["date"], commit=commit)
    yield from table(figures)
