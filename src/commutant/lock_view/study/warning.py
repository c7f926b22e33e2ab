"""Locks that will be in the way once there are more threads: held long, by sections that could run side by side."""

from __future__ import annotations

from dataclasses import dataclass

from commutant.lock_view.study.classes import LockClass, LockStudy

LEAST_HELD_PERCENT = 0.5
LEAST_INDEPENDENCE_PERCENT = 50.0


@dataclass(frozen=True, slots=True)
class ContentionWarning:
    """A class of locks that serialises independent work: for how much of all instructions it is held, and how many of
    the threads that this keeps busy could go on; `contended_percent` of its acquires had to wait already."""

    lock: LockClass
    held_percent: float
    independence_percent: float
    contended_percent: float

    @property
    def full_at_threads(self) -> float:
        """With how many threads like the recorded ones the lock is held all the time, so that one more gains nothing.

        A thread holds it for its share of the instructions; as many threads as that share goes into 1 fill it.
        """
        return 100.0 / self.held_percent


def warnings(study: LockStudy) -> list[ContentionWarning]:
    """What would be gained most first: by the time that independent sections hold the lock, contended or not."""
    found = [warning for one in study.classes if (warning := _warning(one, study)) is not None]
    return sorted(found, key=lambda one: -one.held_percent * one.independence_percent)


def _warning(one: LockClass, study: LockStudy) -> ContentionWarning | None:
    independence = one.independence_percent()
    if independence is None or independence < LEAST_INDEPENDENCE_PERCENT:
        return None
    # Of several instances the one that is held longest is full first.
    held = study.fullest_percent(one)
    if held < LEAST_HELD_PERCENT:
        return None
    return ContentionWarning(one, held, independence, 100.0 * one.contended / one.acquired)
