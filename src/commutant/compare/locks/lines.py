"""What both the terminal and Markdown say of two recordings of locks: the figures of a row, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from commutant.compare.locks.comparison import ComparedLock, LockComparisonDocument, LockFigures, OneSidedLock

HEADINGS = ("contended", "wait ms", "held %", "indep. %", "busy")
"""Of figures: `busy` is how many processors of the smallest crowd the sections could keep busy."""

LISTED_NAMES = 3
"""Functions, or data that sections conflict on, of one lock."""


def figures(one: LockFigures) -> tuple[str, ...]:
    """The figures of a lock in one recording, one for each of HEADINGS."""
    return (
        f"{one.contended:,}",
        _number(one.wait_total_nanoseconds / 1e6),
        _number(one.held_percent),
        _number(one.independence_percent),
        _number(busy(one.speed_up)),
    )


def both(lock: ComparedLock) -> tuple[str, ...]:
    """The figures of both recordings, one cell for each of HEADINGS."""
    return tuple(map(change, figures(lock.before), figures(lock.after)))


def change(before: str, after: str) -> str:
    """One text for what stayed, else both."""
    return before if before == after else f"{before} → {after}"


def busy(speed_up: dict[str, float | None]) -> float | None:
    """Processors that sections could keep busy, of the smallest crowd."""
    return next(iter(speed_up.values()), None)


def heading(found: LockComparisonDocument) -> str:
    """How many locks changed, in a line."""
    return (
        f"threads wait less for {len(found.waiting('less')):,}, more for {len(found.waiting('more')):,}; "
        f"sections are more disjoint in {len(found.disjoint('more')):,}, less in {len(found.disjoint('less')):,}"
    )


def gained(found: LockComparisonDocument) -> str:
    """What holds over all locks of a recording, before and after."""
    base, new = found.base, found.new
    crowd = next(iter(base.speed_up), None)
    parts = [
        f"contended acquires {change(f'{base.contended:,}', f'{new.contended:,}')}",
        f"waited {change(_milliseconds(base.wait_total_nanoseconds), _milliseconds(new.wait_total_nanoseconds))} ms",
        f"work with a lock held {change(_number(base.held_percent), _number(new.held_percent))} %",
        f"disjoint pairs {change(_number(base.independence_percent), _number(new.independence_percent))} %",
    ]
    if crowd is not None:
        parts.append(
            f"enough for {change(_number(busy(base.speed_up)), _number(busy(new.speed_up)))} of {crowd} processors"
        )
    return "; ".join(parts)


def details(lock: ComparedLock, shown: Callable[[str], str]) -> Iterator[str]:
    """What became of a lock's sections, a line each; `shown` makes names safe to show."""
    for title, callers in (
        ("more disjoint", [one for one in lock.callers if one.after > one.before]),
        ("less disjoint", [one for one in lock.callers if one.after < one.before]),
    ):
        if callers:
            each = (f"{shown(one.name)} ({one.before:.1f} → {one.after:.1f} %)" for one in callers[:LISTED_NAMES])
            yield f"{title}: {', '.join(each)}{_more(callers)}"
    for title, names in (("conflict no longer on", lock.fields_went), ("conflict now on", lock.fields_appeared)):
        if names:
            yield f"{title}: {', '.join(map(shown, names[:LISTED_NAMES]))}{_more(names)}"


def alone(found: LockComparisonDocument) -> Iterator[tuple[str, Sequence[OneSidedLock]]]:
    """Locks that one recording alone has, after the name of that one."""
    for label, locks in (("BASE", found.only_base), ("NEW", found.only_new)):
        if locks:
            yield label, locks


def _more(names: Sequence[object]) -> str:
    return f" and {len(names) - LISTED_NAMES:,} more" if len(names) > LISTED_NAMES else ""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _milliseconds(nanoseconds: int) -> str:
    return _number(nanoseconds / 1e6)
