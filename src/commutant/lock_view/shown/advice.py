"""Warnings and predictions in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from commutant.lock_view.shown.lines import line, name_cell, table
from commutant.lock_view.study.classes import LockClass, LockStudy
from commutant.lock_view.study.warning import warnings
from commutant.lock_view.study.what_if import THREADS, predictions

_SHOWN = 10


def print_warnings(study: LockStudy, console: Console) -> None:
    """Prints which locks will be in the way though their sections are independent, if there are any."""
    found = warnings(study)[:_SHOWN]
    if not found:
        return
    console.print()
    shown = table("before contention", "held %", "full at", "indep. %", "contended %")
    for one in found:
        shown.add_row(
            name_cell(one.lock.name),
            f"{one.held_percent:.1f}",
            f"{one.full_at_threads:.1f}",
            f"{one.independence_percent:.1f}",
            f"{one.contended_percent:.1f}",
        )
    console.print(shown)
    line(
        console,
        "Sections of these locks mostly touch disjoint data. held: of all instructions, by one of the locks; full at: "
        "threads like these that would hold it all the time.",
    )


def print_predictions(study: LockStudy, classes: Sequence[LockClass], console: Console) -> None:
    """Prints what changes of each class would gain, with what is assumed of them."""
    explained = False
    for one in classes:
        found = predictions(one, study.record)
        if not any(gain > 1.05 for prediction in found for gain in prediction.gains.values()):
            continue
        console.print()
        shown = table(f"{one.name}: what if", *(f"x{count}" for count in THREADS))
        shown.add_column("assumes")
        for prediction in found:
            gains = [f"{prediction.gains[count]:.2f}" for count in THREADS]
            shown.add_row(name_cell(prediction.change), *gains, name_cell(prediction.assumes))
        console.print(shown)
        explained = True
    if explained:
        line(console, f"x{THREADS[0]}: times as many sections in the same time, with {THREADS[0]} threads.")
