"""What changes save in transfers of lines, in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from commutant.remedy.change import Change, Way
from commutant.remedy.documents import (
    BestEntry,
    MixEntry,
    SavingRow,
    SetShare,
    TransferDocument,
    change_entries,
    transfer_count,
)
from commutant.remedy.mix import Mix
from commutant.remedy.places import path_of
from commutant.remedy.savings import BestTest, Saving, Savings
from commutant.remedy.traffic import Traffic, Transfers, range_text
from commutant.support import plural, safe_text

_SETS_SHOWN = 3


def print_savings(savings: Savings, traffic: Traffic, console: Console) -> None:
    """Prints the lists: layouts, what changes code, and layouts that cost transfers."""
    _say(console, _heading(savings, traffic))
    lists = [
        ("Layouts that save most of them:", savings.layouts),
        ("Changes of what code does to a line:", savings.accesses),
        ("These would make it worse:", savings.worse),
    ]
    if not savings.layouts and not savings.accesses:
        _say(console, "no change of a single place, and no parting of a line, would save any of them")
    for title, rows in lists:
        if rows:
            console.print()
            _say(console, title)
            _print_rows(rows, console)
    console.print()
    _say(console, _LIMIT, style="dim")


def print_saving(saving: Saving, traffic: Traffic, console: Console) -> None:
    """Prints what given changes save, made together."""
    for change in saving.changes:
        _say(console, str(change), style="bold")
    if not saving.tests:
        _say(console, f"would save no transfers with {traffic.cores} cores")
    else:
        few = plural(len(saving.tests), "test")
        _say(
            console,
            f"saves {range_text(saving.saved)} of {range_text(saving.of)} transfers per round, with {traffic.cores} "
            f"cores, in {few} whose calls all succeed; {_percent(saving.share)} of all",
        )
        sets = ", ".join(f"{'+'.join(calls)} {_percent(share)}" for calls, share in saving.sets[:_SETS_SHOWN])
        _say(console, f"  mostly {sets}")
        if saving.best is not None:
            _say(console, f"  best: {_best(saving.best)}")
        if saving.neighbours:
            _say(console, f"  shares its line with {', '.join(saving.neighbours)}")
        if saving.worse:
            _say(console, f"  has more transfers than before: {plural(len(saving.worse), 'test')}")
    _say(console, f"frees {saving.freed:,} of {plural(len(traffic.scene.tests), 'test')} that are not conflict-free")
    _say(console, _LIMIT, style="dim")


def saved_text(saving: Saving) -> str:
    """What changes save, in a part of a sentence."""
    few = plural(len(saving.tests), "test")
    text = f"{range_text(saving.saved)} of {range_text(saving.of)} transfers of lines in {few}"
    return text if saving.best is None else f"{text} (best: {_best(saving.best)})"


def savings_document(
    rows: Mapping[str, Sequence[Saving]], traffic: Traffic, mix: Mix, total: Transfers
) -> TransferDocument:
    """The document; `rows` has the lists `layouts`, `accesses` and `worse`, or `requested`."""
    return TransferDocument(
        cores=traffic.cores,
        mix=tuple(MixEntry(call, share) for call, share in mix.shares.items()),
        tests=len(traffic.tests),
        sets=len(traffic.sets),
        transfers=transfer_count(total),
        requested=tuple(map(_row, rows.get("requested", ()))),
        layouts=tuple(map(_row, rows.get("layouts", ()))),
        accesses=tuple(map(_row, rows.get("accesses", ()))),
        worse=tuple(map(_row, rows.get("worse", ()))),
    )


_LIMIT = (
    "Transfers per round of a test's calls: the first number for caches that share a modified line on a read, the "
    "second for those that hand it over. Predicted for gaps where fields were; docs/guides/remedies.md explains the "
    "measure."
)


def _heading(savings: Savings, traffic: Traffic) -> str:
    few = plural(savings.tests, "test")
    return (
        f"{range_text(savings.total)} transfers of lines per round of a test's calls, with {traffic.cores} cores: "
        f"the mean of {few} whose calls all succeed, over {plural(savings.sets, 'set')} of calls"
    )


def _print_rows(rows: Sequence[Saving], console: Console) -> None:
    """Each change in a line with its numbers, and one below with what it leaves and the test that it helps most."""
    numbers = [
        [_percent(row.share), range_text(row.saved), range_text(row.of), f"{len(row.tests):,}", f"{row.freed:,}"]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *numbers, strict=True)]

    def line(cells: Sequence[str], text: str) -> str:
        return "  ".join([*(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), text])

    _say(console, line(_COLUMNS, "change"), style="bold")
    for cells, row in zip(numbers, rows, strict=True):
        _say(console, line(cells, "; ".join(map(str, row.changes))))
        more = []
        if row.neighbours and all(change.way in (Way.MOVE, Way.PART) for change in row.changes):
            more.append(f"away from {', '.join(_short(row.neighbours, row.changes))}")
        if row.best is not None and row.best.saved.plain > 0:
            more.append(f"best: {_best(row.best)}")
        if row.worse and len(row.worse) < len(row.tests):
            more.append(f"worse in {plural(len(row.worse), 'test')}")
        if more:
            _say(console, line([""] * len(widths), f"  {'; '.join(more)}"), style="dim")


_COLUMNS = ("share", "saved", "of", "tests", "freed")


def _short(members: Sequence[str], changes: Sequence[Change]) -> list[str]:
    """Members without their type, where it is that of the places."""
    type_ = path_of(changes[0].places[0])[0]
    return [member.removeprefix(f"{type_}.") for member in members]


def _best(best: BestTest) -> str:
    part = best.saved.plain / best.of.plain if best.of.plain else 0.0
    return f"{part:.0%}, {best.saved.plain:.1f} of {best.of.plain:.1f} in {best.test}"


def _percent(share: Transfers) -> str:
    plain, taken_over = f"{100 * share.plain:.1f}", f"{100 * share.taken_over:.1f}"
    return f"{plain} %" if plain == taken_over else f"{plain} to {taken_over} %"


def _row(saving: Saving) -> SavingRow:
    return SavingRow(
        changes=change_entries(saving.changes),
        text="; ".join(map(str, saving.changes)),
        share=transfer_count(saving.share),
        saved=transfer_count(saving.saved),
        of=transfer_count(saving.of),
        tests=saving.tests,
        worse=saving.worse,
        best=BestEntry(saving.best.test, transfer_count(saving.best.saved), transfer_count(saving.best.of))
        if saving.best
        else None,
        sets=tuple(SetShare(calls, transfer_count(share)) for calls, share in saving.sets),
        freed=saving.freed,
        neighbours=saving.neighbours,
    )


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(safe_text(text), style=style), soft_wrap=True)
