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
        found = predictions(one, study.record, hand_overs=study.hand_overs)
        advised = [prediction for prediction in found if prediction.is_advised]
        if not advised:
            continue
        console.print()
        shown = table(f"{one.name}: what surely helps", *(f"x{count}" for count in THREADS))
        shown.add_column("assumes")
        for prediction in advised:
            gains = [str(prediction.gains[count]) for count in THREADS]
            shown.add_row(name_cell(prediction.change), *gains, name_cell(prediction.assumes))
        console.print(shown)
        explained = True
    if explained:
        least, most = study.hand_overs
        line(
            console,
            f"x{THREADS[0]}: how many times the work gets done with {THREADS[0]} threads, if handing a lock on costs "
            f"what {least:,.0f} to {most:,.0f} instructions do (--hand-over). More than there are threads: what they "
            "lose by handing it on is gained, too. A change that might lose is not shown.",
        )
