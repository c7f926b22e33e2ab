"""One sequence on a target: made, judged, and what differs, if anything does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from commutant.conformance.judge import Mismatch, judge
from commutant.conformance.script import Script
from commutant.corpus import Value
from commutant.lang import Interface
from commutant.support import RunError
from commutant.targets import SequenceRecord


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a sequence on a target: a result that does not fit, or how the implementation died.

    `came` are the results of all steps; empty if it died.
    """

    mismatch: Mismatch | None
    crashed: str | None
    actual: tuple[Value, ...] = ()

    def signature(self, script: Script) -> tuple[str, ...]:
        """What faults with the same cause share: the call and the kind of its results, not their values."""
        if self.mismatch is None:
            return ("crashed",)
        step = script.steps[self.mismatch.position]
        part = "".join(character for character in self.mismatch.where if not character.isdigit())
        kinds = sorted({_kind(value) for value in self.mismatch.acceptable})
        return (step.call, part, *kinds, _kind(self.mismatch.actual))


def _kind(value: Value) -> str:
    """An error or signal by its name, any other result by what it is."""
    if isinstance(value, dict):
        return str(value.get("errno") or value.get("signal") or next(iter(value)))
    return type(value).__name__


class NotOffered(Exception):
    """The sequence asks for what the target does not offer, so that it says nothing; `str` of it says what."""


class Refused(RunError):
    """The target's runner cannot make a call of the sequence."""


def find_fault(interface: type[Interface], script: Script, record: SequenceRecord) -> Fault | None:
    """What is wrong, or None. Raises Undecided, NotOffered, Refused, or ModelFault."""
    if record.crashed is not None:
        return Fault(None, record.crashed)
    if record.actual is None:
        return None
    actual = json.loads(record.actual)
    if "unsupported" in actual:
        raise NotOffered(str(actual["unsupported"]))
    if "refused" in actual:
        raise Refused(str(actual["refused"]))
    results: Sequence[Value] = (*actual["results"], *actual["observation"])
    mismatch = judge(interface, script, results)
    return None if mismatch is None else Fault(mismatch, None, tuple(results))
