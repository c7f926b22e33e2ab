"""Shrinks a sequence that differs to a shortest and simplest one that differs.

Candidates are tried in a fixed order, each on the real target, and the first that still differs is gone on with: fewer
calls first, then fewer values, processes and cores, then simpler arguments. What is tried is always simpler than what
there is, so it ends; and it is the same each time if the target is deterministic. Where a difference comes now and then
only (clocks, choices), each candidate is run so often that it would be seen.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from commutant.conformance.judge import Undecided
from commutant.conformance.script import Script, write_script
from commutant.conformance.sequence import Call, CallSequence, Returned, Unresolved
from commutant.conformance.trial import Fault, NotOffered, Refused, find_fault
from commutant.guard import ModelFault
from commutant.lang import BoolType, Interface, IntType, Process, SortType, Type
from commutant.support import OnProgress, Progress, plural
from commutant.targets import SequenceRecord, Session

PROBES = (8, 64)
"""So often a sequence is run to see how often it differs; the second only if it did not differ in the first."""

_ENOUGH = 4
_AT_ONCE = 32
_MOST_TRIALS = 20_000
_MOST_CRASHES = 60
_PAIRS_UP_TO = 12


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The result: a sequence with its script and what is wrong with it.

    `repeats` is how often it has to be run to show it; 0 if it did not show again.
    """

    sequence: CallSequence
    script: Script
    fault: Fault
    repeats: int


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which faults to go on with: those with this signature, or, unless `same`, all; but deaths stay deaths."""

    signature: tuple[str, ...]
    same: bool

    def by(self, fault: Fault, script: Script) -> bool:
        if self.same or self.signature == ("crashed",):
            return fault.signature(script) == self.signature
        return fault.crashed is None


class Shrinker:
    """Shrinks sequences of one interface on one session."""

    def __init__(self, interface: type[Interface], session: Session, on_progress: OnProgress) -> None:
        """`on_progress` is called now and then with how far it is."""
        self._interface = interface
        self._session = session
        self._on_progress = on_progress
        self._trials = 0
        self._crashes = 0

    def shrink(self, sequence: CallSequence, script: Script, fault: Fault, *, same: bool) -> Shrunk:
        """The shortest that is found; with `same` it must differ in the same way, else in any.

        Raises RunError if the session cannot go on.
        """
        self._trials = self._crashes = 0
        wanted = _Wanted(fault.signature(script), same)
        for probes in PROBES:
            hits = [hit for hit in self._tried([sequence] * probes, wanted, 1) if hit is not None]
            if hits:
                repeats = 1 if len(hits) == probes else min(PROBES[-1], -(-_ENOUGH * probes // len(hits)))
                return self._shrink_again_and_again(dataclasses.replace(hits[0], repeats=repeats), wanted)
            if fault.crashed is not None:
                break
        return Shrunk(sequence, script, fault, 0)

    def _shrink_again_and_again(self, current: Shrunk, wanted: _Wanted) -> Shrunk:
        found: Shrunk | None = current
        while found is not None:
            current = found
            left = plural(len(current.sequence.calls), "call")
            self._on_progress(Progress(text=f"shrinking: {left} left after {plural(self._trials, 'trial')}"))
            hits = self._tried(_simpler(self._interface, current), wanted, current.repeats)
            found = next((hit for hit in hits if hit is not None), None)
        return current

    def _tried(self, candidates: Iterable[CallSequence], wanted: _Wanted, repeats: int) -> Iterator[Shrunk | None]:
        """What differs as is wanted among the candidates, in their order; None for one that does not. They are run
        some at a time, as they are asked for; one by one if the implementation dies of them."""
        rest = iter(candidates)
        at_once = 1 if wanted.signature == ("crashed",) else _AT_ONCE
        while self._trials < _MOST_TRIALS and self._crashes < _MOST_CRASHES:
            some = list(itertools.islice(rest, at_once))
            if not some:
                return
            written = list(self._written(some))
            texts = [script.text() for _, script in written for _ in range(repeats)]
            self._trials += len(texts)
            records = list(self._session.run_sequences(texts))
            self._crashes += sum(record.crashed is not None for record in records)
            for index, (sequence, script) in enumerate(written):
                yield self._hit(sequence, script, records[index * repeats : (index + 1) * repeats], wanted)

    def _hit(
        self, sequence: CallSequence, script: Script, records: Sequence[SequenceRecord], wanted: _Wanted
    ) -> Shrunk | None:
        for record in records:
            try:
                fault = find_fault(self._interface, script, record)
            except (NotOffered, Refused, Undecided):
                continue
            if fault is not None and wanted.by(fault, script):
                return Shrunk(sequence, script, fault, len(records))
        return None

    def _written(self, sequences: Iterable[CallSequence]) -> Iterator[tuple[CallSequence, Script]]:
        """The scripts of those that have one: others miss what a dropped call returned, or are none for the model."""
        for sequence in sequences:
            try:
                yield sequence, write_script(self._interface, sequence)
            except (Unresolved, ModelFault):
                continue


def _simpler(interface: type[Interface], current: Shrunk) -> Iterator[CallSequence]:
    """What to try next, in order."""
    sequence = current.sequence
    size = _size(sequence)
    yield from _with_fewer_calls(current)
    for candidate in itertools.chain(_with_fewer_values(sequence), _with_simpler_calls(interface, sequence)):
        if _size(candidate) < size:
            yield candidate


def _size(sequence: CallSequence) -> tuple[Any, ...]:
    """What shrinking makes smaller."""
    calls = sequence.calls
    pools = sum(map(len, sequence.pools.values()))
    places = [(call.process, 0 if call.core is None else 1 + call.core) for call in calls]
    weights = [_weight(sequence, value) for call in calls for value in call.arguments.values()]
    return (
        len(calls),
        len({process for process, _ in places}),
        pools,
        sum(map(sum, places)),
        sum(weights),
        places,
        weights,
    )


def _weight(sequence: CallSequence, value: Any) -> int:
    if isinstance(value, Returned):
        return 100
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return abs(value)
    if isinstance(value, str):
        return next((pool.index(value) for pool in sequence.pools.values() if value in pool), 0)
    return 1


def _with_fewer_calls(current: Shrunk) -> Iterator[CallSequence]:
    """Without what follows the difference; without halves, quarters, ..., single calls; without pairs; and without a
    call that exchanged two names, which those after it exchange instead."""
    calls = current.sequence.calls
    count = len(calls)
    if current.fault.mismatch is not None:
        needed = current.fault.mismatch.position - len(current.script.begin) + 1
        if 0 < needed < count:
            yield dataclasses.replace(current.sequence, calls=calls[:needed])
    part = count // 2
    while part:
        for start in range(0, count, part):
            yield dataclasses.replace(current.sequence, calls=calls[:start] + calls[start + part :])
        part //= 2
    if count <= _PAIRS_UP_TO:
        for first, second in itertools.combinations(range(count), 2):
            left = tuple(call for index, call in enumerate(calls) if index not in (first, second))
            yield dataclasses.replace(current.sequence, calls=left)
        pairs = [pair for pool in current.sequence.pools.values() for pair in itertools.combinations(pool, 2)]
        for index, (one, other) in itertools.product(range(count), pairs):
            behind = tuple(_renamed(call, {one: other, other: one}) for call in calls[index + 1 :])
            yield dataclasses.replace(current.sequence, calls=calls[:index] + behind)


def _with_fewer_values(sequence: CallSequence) -> Iterator[CallSequence]:
    """One process for two; one value of a sort for two; no values that no call names."""
    for sort, pool in sequence.pools.items():
        if sort is Process:
            if len(pool) > 1:
                merged = tuple(dataclasses.replace(call, process=0) for call in sequence.calls)
                yield CallSequence({**sequence.pools, sort: pool[:1]}, merged)
            continue
        for late, early in ((late, early) for late in reversed(pool) for early in pool):
            if early == late:
                break
            merged = tuple(_renamed(call, {late: early}) for call in sequence.calls)
            yield CallSequence({**sequence.pools, sort: tuple(v for v in pool if v != late)}, merged)
            swapped = tuple(_renamed(call, {late: early, early: late}) for call in sequence.calls)
            yield CallSequence(sequence.pools, swapped)
        if pool and all(pool[-1] not in call.arguments.values() for call in sequence.calls):
            yield CallSequence({**sequence.pools, sort: pool[:-1]}, sequence.calls)


def _renamed(call: Call, names: dict[Any, Any]) -> Call:
    """A call with some names of a sort replaced; numbers are left to `_with_simpler_calls`."""
    arguments = {
        name: names.get(value, value) if isinstance(value, str) else value for name, value in call.arguments.items()
    }
    return dataclasses.replace(call, arguments=arguments)


def _with_simpler_calls(interface: type[Interface], sequence: CallSequence) -> Iterator[CallSequence]:
    """One call, then all, on whatever core or in process 0; one call with one simpler argument."""
    for index, call in enumerate(sequence.calls):
        for simpler in _simpler_calls(interface, sequence, call):
            calls = (*sequence.calls[:index], simpler, *sequence.calls[index + 1 :])
            yield dataclasses.replace(sequence, calls=calls)
    yield dataclasses.replace(sequence, calls=tuple(dataclasses.replace(call, core=None) for call in sequence.calls))
    yield dataclasses.replace(sequence, calls=tuple(dataclasses.replace(call, process=0) for call in sequence.calls))


def _simpler_calls(interface: type[Interface], sequence: CallSequence, call: Call) -> Iterator[Call]:
    if call.core is not None:
        yield dataclasses.replace(call, core=None)
    if call.process:
        yield dataclasses.replace(call, process=0)
    parameters = interface.signature(call.name).parameters
    for name, value in call.arguments.items():
        for simpler in _simpler_values(sequence, parameters[name], value):
            yield dataclasses.replace(call, arguments={**call.arguments, name: simpler})


def _simpler_values(sequence: CallSequence, type_: Type, value: Any) -> Sequence[Any]:
    if isinstance(type_, BoolType):
        return (False,) if value else ()
    if isinstance(type_, IntType):
        lowest = type_.low if type_.low is not None and type_.low > 0 else 0
        return tuple(range(lowest, lowest + 4)) if isinstance(value, Returned) else tuple(range(lowest, abs(value)))
    if isinstance(type_, SortType):
        pool = sequence.pools.get(type_.sort, ())
        return pool if isinstance(value, Returned) else pool[: pool.index(value)] if value in pool else ()
    return ()
