"""What the lock view says first: whether any lock matters, and if so which, and what is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass

from commutant.lock_view.study.classes import LockClass, LockStudy
from commutant.lock_view.study.warning import LEAST_HELD_PERCENT, LEAST_INDEPENDENCE_PERCENT
from commutant.lock_view.study.what_if import Prediction, predictions
from commutant.support import plural


@dataclass(frozen=True, slots=True)
class LockVerdict:
    """One sentence or two; the lock that matters most, None if none does; and the change that surely helps, if any."""

    text: str
    lock: LockClass | None
    change: Prediction | None


def verdict(study: LockStudy) -> LockVerdict:
    """Judges by how much of all work is executed with one lock held: that bounds what all threads together get done."""
    held = study.held_percent
    if not study.classes or held is None:
        return LockVerdict("No lock matters here: none was seen.", None, None)
    known = [one for one in study.classes if one.ranked_hold]
    fullest = max(known, key=study.fullest_percent, default=None)
    keep_out = [one for one in known if one.reader_writes or one.independence_percent() is not None]
    in_the_way = max(keep_out, key=study.fullest_percent, default=None)
    if in_the_way is not None and study.fullest_percent(in_the_way) >= LEAST_HELD_PERCENT:
        fullest = in_the_way  # what one thread alone holds keeps no one out, however long
    share = study.fullest_percent(fullest) if fullest else 0.0
    if fullest is None or share < LEAST_HELD_PERCENT:
        full = f", and none would be held all the time by fewer than {100 / share:,.0f} threads" if share else ""
        return LockVerdict(
            f"No lock matters here: {_percent(held)} % of instructions are executed with one held{full}.", None, None
        )
    if fullest.reader_writes:
        return LockVerdict(_of_readers(fullest, share), fullest, None)
    if fullest.independence_percent() is None:
        return LockVerdict(
            f"No lock is known to matter: {fullest.name} is held for {_percent(share)} % of all work, by one thread "
            "alone.",
            None,
            None,
        )
    change = next(
        (one for one in predictions(fullest, study.record, hand_overs=study.hand_overs) if one.is_advised), None
    )
    return LockVerdict(f"{_weight(fullest, share)} {_remedy(fullest, change)}", fullest, change)


def _of_readers(one: LockClass, share: float) -> str:
    return (
        f"The lock to look at is {one.name}: short sections of readers hold it for {_percent(share)} % of all work. "
        "They exclude no one, but meet in the lock's own word, which each writes when it comes and when it goes: "
        f"{one.reader_writes:,} times in {plural(one.hold_instructions, 'instruction')}. Read-copy-update, a sequence "
        "lock or a lock per core would spare them that."
    )


MAX_THREADS = 64
"""As many threads as most machines run: a lock that fewer than these would hold all the time is the one to look at."""


def _weight(one: LockClass, share: float) -> str:
    if 100 / share > MAX_THREADS:
        return (
            f"No lock is in the way of {MAX_THREADS} threads. The first that would be is {one.name}: it is held for "
            f"{_percent(share)} % of all work, so that {100 / share:.0f} threads like these would hold it all the time."
        )
    return (
        f"The lock to look at is {one.name}: it is held for {_percent(share)} % of all work, so that {100 / share:.1f} "
        "threads like these would hold it all the time."
    )


def _remedy(one: LockClass, change: Prediction | None) -> str:
    independence = one.independence_percent() or 0.0
    gain = ""
    if change is not None:
        threads, most = max(change.gains.items(), key=lambda gain: gain[1].least)
        gain = f" What surely helps: {change.change}, {most} times the work with {threads} threads."
    if independence >= LEAST_INDEPENDENCE_PERCENT:
        return (
            f"Its sections touch disjoint data in {independence:.0f} % of pairs: it keeps apart what could run at once."
            f"{gain}"
        )
    common = f", most of all on {one.fields[0].name}" if one.fields else ""
    rest = gain or " Another kind of lock would not help; less work under it would, or other data."
    return f"Its sections do conflict, in {100 - independence:.0f} % of pairs{common}.{rest}"


def _percent(value: float) -> str:
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"
