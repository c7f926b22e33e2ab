"""The study in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console

from commutant.lock_view.record import Recording
from commutant.lock_view.shown.advice import print_predictions, print_warnings
from commutant.lock_view.shown.lines import line, name_cell, number_cell, share_cell, table
from commutant.lock_view.study.classes import LockClass, LockStudy
from commutant.lock_view.study.verdict import verdict
from commutant.support import UsageError, plural

SORT_KEYS: dict[str, Callable[[LockClass], float]] = {
    "acquired": lambda one: one.acquired,
    "contended": lambda one: one.contended,
    "avg_wait": lambda one: one.wait_nanoseconds / one.contended if one.contended else 0.0,
    "wait_total": lambda one: one.wait_nanoseconds,
    "hold_total": lambda one: one.ranked_hold,
    "independence": lambda one: one.independence_percent() or 0.0,
    "speedup": lambda one: one.speed_up(0) or 0.0,
}
"""What the tables can be sorted by, as `perf lock` names it where it has the same; the largest comes first."""

_STACK_FRAMES = 3
_NO_CODE = "expected an ELF file"
"""Data that a program maps names nothing, and nothing is missed."""


def check_sort_key(key: str) -> None:
    """Raises UsageError for a key that is none of SORT_KEYS."""
    if key not in SORT_KEYS:
        raise UsageError(f"unknown sort key {key!r}: expected one of {', '.join(SORT_KEYS)}")


def sorted_classes(study: LockStudy, key: str) -> list[LockClass]:
    """The classes by one of SORT_KEYS."""
    return sorted(study.classes, key=lambda one: (-SORT_KEYS[key](one), one.name))


def print_study(study: LockStudy, classes: Sequence[LockClass], console: Console, *, fields: int) -> None:
    """Prints the tables of contention and of the limit study, then what the first classes conflict on."""
    record = study.record
    line(console, verdict(study).text)
    line(
        console,
        f"{summary(study)}; {plural(record.threads, 'thread')}, {plural(record.instructions, 'instruction')}",
    )
    if text := start_up_text(record):
        line(console, text)
    independence, speed_up = study.independence_percent, study.speed_up(0)
    if independence is not None and speed_up is not None:
        line(
            console,
            f"Weighted by time held, {independence:.1f} % of pairs of sections touch disjoint data: enough for "
            f"{speed_up:.1f} of {record.crowds[0]} processors.",
        )
    else:
        line(console, "No lock was used by two threads, so there is nothing to compare.")
    console.print()
    _print_limits(classes, record.crowds, console)
    print_coverage(study, classes, console)
    contended = [one for one in classes if one.contended]
    if contended:
        console.print()
        _print_contended(contended, console)
    print_details(study, classes[:fields], console)
    print_problems(study, classes, console)


def print_problems(study: LockStudy, classes: Sequence[LockClass], console: Console) -> None:
    """Prints what could not be named, and what would name it."""
    for problem in study.unreadable.values():
        if _NO_CODE not in problem:
            line(console, f"not named: {problem}")
    nameless = sorted({one.name.removeprefix("lock of ").partition("+0x")[0] for one in classes if one.is_nameless})
    for name in nameless:
        line(
            console,
            f"{name} has no symbols, so places in it stand for names: compile it with -g, or install its symbols "
            f"(Debian: find-dbgsym-packages {name}, from the package debian-goodies), or set DEBUGINFOD_URLS and "
            "install the package debuginfod.",
        )


def summary(study: LockStudy) -> str:
    """How many acquires of how many locks were recorded."""
    acquired = plural(sum(one.acquired for one in study.classes), "acquire")
    locks = plural(sum(one.instances for one in study.classes), "lock")
    return f"{acquired} of {locks} in {plural(len(study.classes), 'class', 'classes')}"


def start_up_text(record: Recording) -> str:
    """What the program did before there were two threads, in a sentence; empty if it took no lock then."""
    start_up = record.start_up
    if start_up is None or not start_up.acquires:
        return ""
    share = 100.0 * start_up.instructions / (start_up.instructions + record.instructions or 1)
    return (
        f"Start-up is apart: {plural(start_up.acquires, 'acquire')} of {plural(start_up.locks, 'lock')} before the "
        f"second thread, in {share:.1f} % of all instructions."
    )


def print_coverage(study: LockStudy, classes: Sequence[LockClass], console: Console) -> None:
    """Prints how much of the time held the classes of a table cover, if it leaves any out."""
    held = sum(one.hold_instructions for one in study.classes)
    if len(classes) < len(study.classes) and held:
        share = 100.0 * sum(one.hold_instructions for one in classes) / held
        line(
            console,
            f"Shown: {len(classes):,} of {plural(len(study.classes), 'class', 'classes')}, with {share:.1f} % of the "
            "time held (--top N shows more).",
        )


def print_details(study: LockStudy, classes: Sequence[LockClass], console: Console) -> None:
    """Prints warnings, and of each of these classes what its sections conflict on and what a change would gain."""
    print_warnings(study, console)
    for one in classes:
        _print_fields(one, console)
    print_predictions(study, classes, console)


def _print_limits(classes: Sequence[LockClass], crowds: Sequence[int], console: Console) -> None:
    shown = table(
        "lock", "acquired", "hold_total", "indep.", "confl.", "set", "shared", f"x{crowds[0]}", f"x{crowds[-1]}"
    )
    for one in classes:
        shown.add_row(
            name_cell(one.name if one.instances == 1 else f"{one.name} ({one.instances:,})"),
            f"{one.acquired:,}",
            f"{one.hold_instructions:,}",
            share_cell(one.independence_percent()),
            share_cell(one.conflicting_acquires_percent),
            number_cell(one.mean_set_bytes),
            number_cell(one.mean_conflicting_bytes),
            number_cell(one.speed_up(0)),
            number_cell(one.speed_up(len(crowds) - 1)),
        )
    console.print(shown)
    line(
        console,
        "hold_total: instructions. indep.: % of pairs of sections that touch disjoint data. confl.: % of acquires that "
        "conflict with any of the window. set, shared: mean bytes of a section, and in conflict. "
        f"x{crowds[0]}: how many of {crowds[0]} processors the sections could keep busy.",
    )


def _print_contended(classes: Sequence[LockClass], console: Console) -> None:
    shown = table("lock", "contended", "%", "avg_wait us", "wait_total ms", "conflicting %")
    for one in classes:
        shown.add_row(
            name_cell(one.name),
            f"{one.contended:,}",
            share_cell(100.0 * one.contended / one.acquired),
            f"{one.wait_nanoseconds / one.contended / 1000:,.1f}",
            f"{one.wait_nanoseconds / 1e6:,.1f}",
            share_cell(one.contended_conflicts_percent),
        )
    console.print(shown)
    line(console, "Waiting is the emulator's: it says who met whom, not how long it takes on a processor.")


def _print_fields(one: LockClass, console: Console) -> None:
    independence = one.independence_percent()
    if not one.fields or independence is None:
        return
    compared = one.total(lambda lock: lock.field_pairs)
    console.print()
    line(console, f"{one.name}: what its sections conflict on")
    if one.together:
        without = independence + 100.0 * one.together.pairs / compared
        line(
            console,
            f"  without {one.together} together independence would rise from {independence:.1f} % to {without:.1f} %",
        )
    for found in one.fields[:_STACK_FRAMES]:
        without = independence + 100.0 * found.pairs_on_it_alone / compared
        gain = (
            f"without it independence would rise from {independence:.1f} % to {without:.1f} %"
            if found.pairs_on_it_alone
            else "never on it alone"
        )
        line(console, f"  {found.name}: {100.0 * found.pairs / compared:.1f} % of pairs; {gain}")
        for write, frames in found.sides:
            path = " < ".join(str(frame) for frame in frames[:_STACK_FRAMES])
            line(console, f"    {'writes' if write else 'reads '} {path}")
