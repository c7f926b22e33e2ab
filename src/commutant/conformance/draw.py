"""Draws random sequences: small pools of values, so that calls meet, and what calls returned as later arguments.

Which calls a sequence is made of, how often each, and how its flags lean is drawn again for each sequence (swarm
testing: Groce et al., ISSTA 2012), since some states are reached only where other calls are absent: a pipe gets full
where no one reads. Most calls that fail on the model are left out again, as most arguments would be wrong ones. The
types of the parameters alone say what is drawn, so any model will do. A sequence is a function of its number.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from commutant.conformance.script import Script, begun, call_step, process_of, process_parameter, write_script
from commutant.conformance.sequence import Call, CallSequence, Results, Returned, Unresolved
from commutant.guard import ChoiceRefused, ModelFault
from commutant.lang import (
    BoolType,
    Errno,
    Interface,
    IntType,
    OpaqueValue,
    Process,
    Seq,
    SeqType,
    Signal,
    Sort,
    SortType,
    StructType,
    TupleType,
    Type,
    struct_fields,
    types_within,
)

PROCESSES = 2
"""The most processes of a sequence, and the most cores."""

_WEIGHTS = (0, 1, 1, 2, 4, 8)
_FEW_CALLS = (2, 3, 4)
_OF_FEW_CALLS = 0.15
_POOL_SIZES = (1, 2, 2, 3, 3, 4)
_LEANINGS = (0.1, 0.5, 0.5, 0.9)
_FEW_VALUES = 8
_SMALL = 4
_ATTEMPTS = 4
_ON_CORES = 0.2
_TWO_PROCESSES = 0.4
"""Shares of sequences: whose calls say which core they are made on, and with two processes. Both take longer to run."""

_FAILURES_LEFT_OUT = 0.85
_SAME_CALL_AGAIN = 0.6
_OTHER_PROCESS = 0.15


class _Nothing(Exception):
    """There is no value to be drawn yet."""


class Drawer:
    """Draws sequences of some calls of a model."""

    def __init__(self, interface: type[Interface], calls: Sequence[str], length: int) -> None:
        self.interface = interface
        self.length = length
        self.signatures = [interface.signature(name) for name in calls]
        self.sorts_of_calls = [{type_.sort for type_ in _sort_types(s.parameters.values())} for s in self.signatures]
        every_signature = [interface.signature(name) for name in interface.call_names()]
        parameters = [type_ for signature in every_signature for type_ in signature.parameters.values()]
        self.sorts_of_arguments = {type_.sort for type_ in _sort_types(parameters)}
        known = _sort_types((*interface.state_types().values(), *parameters))
        self.sorts = list(dict.fromkeys(type_.sort for type_ in known))
        self.constants: dict[type[Sort], list[int]] = {}
        for type_ in known:
            constants = self.constants.setdefault(type_.sort, [])
            if type_.constant is not None and type_.constant not in constants:
                constants.append(type_.constant)

    def draw(self, number: int) -> tuple[CallSequence, Script]:
        """Sequence `number` and its script; ModelFault, with the number, if the model fails on it."""
        try:
            return _Drawing(self, number).draw()
        except ModelFault as error:
            again = f"in sequence {number}; `--seed {number} --sequences 1` draws it again"
            raise ModelFault(f"{error} ({again})") from None


class _Drawing:
    """One sequence while it is drawn."""

    def __init__(self, drawer: Drawer, number: int) -> None:
        self._random = random.Random(number)
        self._drawer = drawer
        self._weights = self._drawn_weights()
        self._again: int | None = None
        self._leanings: dict[tuple[str, str], float] = {}
        used = set().union(*(sorts for sorts, w in zip(drawer.sorts_of_calls, self._weights, strict=True) if w))
        unused = drawer.sorts_of_arguments - used - {Process}
        self._pools = {sort: () if sort in unused else self._pool(sort) for sort in drawer.sorts}
        self._cores = range(PROCESSES if self._random.random() < _ON_CORES else 0)
        self._processes = self._pools.get(Process) or self._pool(Process)
        self._results = Results()
        self._returned: dict[tuple[int | None, str], dict[Any, Returned]] = {}

    def _drawn_weights(self) -> list[float]:
        """How often each call is made, relative to the others: most of them at all, or only a few."""
        count = len(self._drawer.signatures)
        if count > max(_FEW_CALLS) and self._random.random() < _OF_FEW_CALLS:
            few = self._random.sample(range(count), self._random.choice(_FEW_CALLS))
            return [float(index in few) for index in range(count)]
        weights = [float(self._random.choice(_WEIGHTS)) for _ in range(count)]
        return weights if any(weights) else [1.0] * count

    def draw(self) -> tuple[CallSequence, Script]:
        """The calls, first made on the model alone, then those that are kept written out."""
        drawer = self._drawer
        length = max(self._random.randint(1, drawer.length), self._random.randint(1, drawer.length))
        run = begun(drawer.interface, self._pools)
        calls: list[Call] = []
        for number in range(_ATTEMPTS * length):
            call = self._call(number)
            if call is None:
                break
            try:
                result = run.make(call_step(drawer.interface, call, self._results))
            except ChoiceRefused:
                continue
            if isinstance(result, Errno | Signal) and self._random.random() < _FAILURES_LEFT_OUT:
                continue
            self._again = None
            calls.append(call)
            if len(calls) == length:
                break
            self._learn(call, result)
        sequence = CallSequence(self._pools, tuple(calls))
        try:
            return sequence, write_script(drawer.interface, sequence)
        except Unresolved:  # a call that failed and was left out had changed the state after all
            return self._shortened(sequence)

    def _shortened(self, sequence: CallSequence) -> tuple[CallSequence, Script]:
        """As much of the beginning of a sequence as can be written."""
        for length in range(len(sequence.calls) - 1, 0, -1):
            shorter = CallSequence(sequence.pools, sequence.calls[:length])
            with contextlib.suppress(Unresolved):
                return shorter, write_script(self._drawer.interface, shorter)
        empty = CallSequence(sequence.pools, ())
        return empty, write_script(self._drawer.interface, empty)

    def _pool(self, sort: type[Sort]) -> tuple[Any, ...]:
        size = self._random.choice(_POOL_SIZES)
        if sort is Process:
            return tuple(range(PROCESSES if self._random.random() < _TWO_PROCESSES else 1))
        if sort.opaque:
            return ()
        if sort.numbered:
            return (*self._drawer.constants[sort], *range(1, size + 1))
        return tuple(f"{sort.__name__[0].lower()}{index}" for index in range(size))

    def _call(self, number: int) -> Call | None:
        """A call whose arguments can all be drawn, the one that was left out last if there is one; None if none can."""
        weights = list(self._weights)
        while any(weights):
            (chosen,) = self._random.choices(range(len(weights)), weights)
            if self._again is not None and self._random.random() < _SAME_CALL_AGAIN:
                chosen = self._again
            signature = self._drawer.signatures[chosen]
            process = self._random.choice(self._processes)
            placed = process_parameter(self._drawer.interface, signature.name)
            caller = None if placed is None else process
            try:
                arguments = {
                    name: self._value(type_, (signature.name, name), caller)
                    for name, type_ in signature.parameters.items()
                    if name != placed
                }
            except _Nothing:
                weights[chosen] = 0.0
                self._again = None
                continue
            self._again = chosen
            core = self._random.choice(self._cores) if self._cores else None
            return Call(number, signature.name, arguments, process, core)
        return None

    def _learn(self, call: Call, result: Any) -> None:
        """Notes what can be an argument from here on; of equal values the latest."""
        process = process_of(self._drawer.interface, call)
        for index, value in enumerate(self._results.add(call.number, process, result)):
            kind = value.sort if isinstance(value, OpaqueValue) else ""
            self._returned.setdefault((process, kind), {})[value] = Returned(call.number, index)

    def _reused(self, process: int | None, kind: str, wanted: Callable[[Any], bool] = lambda _: True) -> Any:
        """A value that a call has returned, opaque ones of the same process only; None if there is none."""
        if process is not None and not kind and self._random.random() < _OTHER_PROCESS:
            process = 1 - process
        known = self._returned.get((process, kind), {})
        values = [value for value in known if wanted(value)]
        return known[self._random.choice(values)] if values else None

    def _value(self, type_: Type, place: tuple[str, str], process: int | None) -> Any:
        """A value of a type for a call of a process; `place` is the call and its parameter: their flags lean one way
        for the whole sequence."""
        kind = type(type_)  # compared by identity, which is many times faster than isinstance of an abstract class
        if kind is SortType:
            return self._of_sort(cast(SortType, type_), process)
        if kind is BoolType:
            if place not in self._leanings:
                usual = 0.9 if cast(BoolType, type_).usual else 0.5
                self._leanings[place] = self._random.choice((*_LEANINGS, usual))
            return self._random.random() < self._leanings[place]
        if kind is IntType:
            return self._number(cast(IntType, type_), process)
        if isinstance(type_, TupleType):
            return tuple(self._value(item, place, process) for item in type_.items)
        if isinstance(type_, StructType):
            fields = struct_fields(type_.struct)
            return type_.struct(**{name: self._value(field, place, process) for name, field in fields.items()})
        assert isinstance(type_, SeqType), "calls take no maps"
        return Seq(self._value(type_.item, place, process) for _ in range(self._random.randint(0, type_.capacity)))

    def _of_sort(self, type_: SortType, process: int | None) -> Any:
        if type_.constant is not None:
            return type_.constant
        pool = self._pools[type_.sort]
        if not pool or self._random.random() < 0.5:
            returned = self._reused(process, type_.sort.__name__)
            if returned is not None:
                return returned
        if not pool:
            raise _Nothing
        return self._random.choice(pool)

    def _number(self, type_: IntType, process: int | None) -> Any:
        low, high = type_.low, type_.high
        if low is not None and high is not None and high - low < _FEW_VALUES:
            return self._random.randint(low, high)
        if self._random.random() < 0.6:
            fits = lambda value: (low is None or low <= value) and (high is None or value <= high)  # noqa: E731
            returned = self._reused(process, "", fits)
            if returned is not None:
                return returned
        start = low if low is not None else min(-2, high if high is not None else 0)
        return self._random.randint(start, start + _SMALL if high is None else min(high, start + _SMALL))


def _sort_types(types: Iterable[Type]) -> list[SortType]:
    """The sorts that occur within types."""
    return [inner for type_ in types for inner in types_within(type_) if isinstance(inner, SortType)]
