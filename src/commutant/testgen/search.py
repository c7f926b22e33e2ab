"""Finds the calls that build a state, where a model does not say: puts build any map, appends any sequence.

Best-first over the states that calls reach from the empty one, nearest first: the distance is how many entries and
values differ. Calls take what occurs in the wanted state, values that calls before have returned, and small numbers.
The search is bounded; what it reaches on the way to one state is kept for the next.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commutant.guard import ChoiceRefused
from commutant.lang import (
    BoolType,
    EnumType,
    Errno,
    Interface,
    IntType,
    Invocation,
    MapType,
    OpaqueValue,
    OptionalType,
    Process,
    SeqType,
    SortType,
    Struct,
    StructType,
    TupleType,
    Type,
    answered_by,
    struct_fields,
)
from commutant.testgen.canonical import Anything, agree
from commutant.testgen.concrete import ConcreteModel, ReplayedOracle
from commutant.testgen.frozen import Frozen, NotFrozen, freeze, thaw

MAX_MOVES = 4_000
"""This many calls are tried for one state."""

MAX_CALLS = 400
"""This many arguments are tried per call in one state."""


class _Values:
    """What calls may be given on the way to a wanted state, by type."""

    def __init__(self, wanted: Interface) -> None:
        self._numbers: dict[int, None] = {}
        self._sorts: dict[str, dict[Any, None]] = {}
        self._sequences: dict[Frozen, None] = {}
        for name, type_ in type(wanted).state_types().items():
            self._collect(getattr(wanted, name), type_)
        self._numbers.update(dict.fromkeys((0, 1)))

    def _collect(self, value: Any, type_: Type) -> None:
        if isinstance(type_, SortType):
            if not isinstance(value, OpaqueValue) and value is not None:
                self._sorts.setdefault(type_.sort.__name__, {})[value] = None
        elif isinstance(type_, IntType):
            self._numbers[int(value)] = None
        elif isinstance(type_, MapType):
            for key, item in value.items():
                self._collect(key, type_.key)
                self._collect(item, type_.value)
        elif isinstance(type_, OptionalType):
            if value is not None:
                self._collect(value, type_.item)
        elif isinstance(type_, SeqType):
            self._sequences[freeze(value)] = None
            for item in value:
                self._collect(item, type_.item)
        elif isinstance(type_, TupleType):
            for item, part in zip(value, type_.items, strict=True):
                self._collect(item, part)
        elif isinstance(type_, StructType):
            for name, part in struct_fields(type_.struct).items():
                self._collect(getattr(value, name), part)

    def of(self, type_: Type, returned: Sequence[OpaqueValue]) -> list[Any]:
        """What an argument of this type may be, where calls before have returned these opaque values."""
        if isinstance(type_, SortType):
            if type_.sort.opaque:
                return [value for value in returned if value.sort == type_.sort.__name__]
            known = list(self._sorts.get(type_.sort.__name__, ()))
            return known or ([0] if type_.sort is Process else [])
        if isinstance(type_, BoolType):
            return [False, True]
        if isinstance(type_, IntType):
            low, high = type_.low, type_.high
            fits = [n for n in self._numbers if (low is None or n >= low) and (high is None or n <= high)]
            return fits or [type_.zero()]
        if isinstance(type_, OptionalType):
            return [None, *self.of(type_.item, returned)]
        if isinstance(type_, EnumType):
            return list(type_.members)
        if isinstance(type_, TupleType):
            return [*itertools.islice(itertools.product(*(self.of(item, returned) for item in type_.items)), MAX_CALLS)]
        if isinstance(type_, StructType):
            fields = struct_fields(type_.struct)
            products = itertools.product(*(self.of(part, returned) for part in fields.values()))
            return [
                type_.struct(**dict(zip(fields, values, strict=True)))
                for values in itertools.islice(products, MAX_CALLS)
            ]
        return [thaw(sequence) for sequence in self._sequences]


class SetupSearch:
    """Looks for the calls that build states of one model."""

    def __init__(self, model: ConcreteModel, *, with_handles: bool) -> None:
        self._model = model
        self._with_handles = with_handles
        self._signatures = list(model.interface.signatures())

    def of(
        self, wanted: Interface, gone: Sequence[OpaqueValue] = (), first: Sequence[Invocation] = ()
    ) -> list[Invocation] | None:
        """Calls that lead from the empty state to this one, `first` these; None if none were found.

        `gone`: in addition, calls shall have returned this many values that the state has not, such as closed handles.
        """
        values = _Values(wanted)
        start = self._model.replay(first)
        try:
            frozen = freeze(start.state)
        except (NotFrozen, RecursionError):
            return None
        calls, returned = start.invocations, start.numbered.values
        if self._has_reached(wanted, gone, start.state, returned):
            return list(calls)
        order = itertools.count()
        pending = [(_distance(wanted, start.state), len(calls), next(order), frozen, calls, returned)]
        seen = {self._place(frozen, gone, returned)}
        moves = 0
        while pending:
            _, _, _, frozen, calls, returned = heapq.heappop(pending)
            for invocation in self._calls(values, returned):
                moves += 1
                if moves > MAX_MOVES:
                    return None
                state: Interface = thaw(frozen)
                result, reached = self._after(state, invocation, len(calls))
                more = (*returned, *(value for value in _opaque(result) if value not in returned))
                if reached is None or (place := self._place(reached, gone, more)) in seen:
                    continue
                seen.add(place)
                path = (*calls, invocation)
                if self._has_reached(wanted, gone, state, more):
                    return list(path)
                heapq.heappush(pending, (_distance(wanted, state), len(path), next(order), reached, path, more))
        return None

    def _place(self, state: Frozen, gone: Sequence[OpaqueValue], returned: Sequence[OpaqueValue]) -> tuple[Frozen, int]:
        """What tells a state from others: itself, and how many values were returned, if that matters."""
        return state, len(returned) if gone else 0

    def _has_reached(
        self, wanted: Interface, gone: Sequence[OpaqueValue], state: Interface, returned: Sequence[OpaqueValue]
    ) -> bool:
        names = agree(wanted, state, with_handles=self._with_handles)
        return names is not None and values_gone(gone, names, returned) is not None

    def _calls(self, values: _Values, returned: Sequence[OpaqueValue]) -> Iterator[Invocation]:
        for signature in self._signatures:
            products = itertools.product(*(values.of(type_, returned) for type_ in signature.parameters.values()))
            for given in itertools.islice(products, MAX_CALLS):
                yield Invocation(signature.name, dict(zip(signature.parameters, given, strict=True)))

    def _after(self, state: Interface, invocation: Invocation, number: int) -> tuple[Any, Frozen | None]:
        """What a call returns as the step of this number, and what it makes of the state; None if it makes nothing."""
        oracle = ReplayedOracle()
        oracle.begin(f"setup.{number}", 1 + number, state)
        try:
            with answered_by(oracle):
                result = self._model.perform(state, invocation.call, invocation.arguments)
            return result, None if isinstance(result, Errno) else freeze(state)
        except (ChoiceRefused, NotFrozen, RecursionError):
            return None, None


def values_gone(
    gone: Sequence[OpaqueValue], names: Mapping[OpaqueValue, OpaqueValue], returned: Sequence[OpaqueValue]
) -> dict[OpaqueValue, OpaqueValue] | None:
    """For each value that a state shall not have one that was returned and that it has not; None if there are too
    few."""
    here = set(names.values())
    found: dict[OpaqueValue, OpaqueValue] = {}
    for value in gone:
        spare = (one for one in returned if one.sort == value.sort and one not in here)
        one = next(spare, None)
        if one is None:
            return None
        found[value] = one
        here.add(one)
    return found


def _opaque(value: Any) -> Iterator[OpaqueValue]:
    if isinstance(value, OpaqueValue):
        yield value
    elif isinstance(value, Struct):
        for name in struct_fields(type(value)):
            yield from _opaque(getattr(value, name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _opaque(item)


def _distance(wanted: Interface, state: Interface) -> int:
    return sum(_apart(getattr(wanted, name), getattr(state, name)) for name in type(wanted).state_types())


def _apart(wanted: Any, value: Any) -> int:
    """How many values differ; opaque ones are all alike."""
    if isinstance(wanted, Anything) or (isinstance(wanted, OpaqueValue) and isinstance(value, OpaqueValue)):
        return 0
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        common = [key for key in wanted if key in value]
        missing, more = len(wanted) - len(common), len(value) - len(common)
        opaque = min(missing, more) if any(_has_opaque(key) for key in wanted) else 0
        return 3 * (missing + more - 2 * opaque) + sum(_apart(wanted[key], value[key]) for key in common)
    if isinstance(wanted, Struct) and isinstance(value, Struct):
        return sum(_apart(getattr(wanted, name), getattr(value, name)) for name in wanted.relevant())
    if isinstance(wanted, tuple | list) and isinstance(value, tuple | list):
        both = sum(_apart(*pair) for pair in zip(wanted, value, strict=False))
        return 3 * abs(len(wanted) - len(value)) + both
    return 0 if wanted == value else 1


def _has_opaque(key: Any) -> bool:
    return isinstance(key, OpaqueValue) or (isinstance(key, tuple) and any(map(_has_opaque, key)))
