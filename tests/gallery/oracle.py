"""What brute force says of a model over a small domain: when calls commute, and which kinds of results there are."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from commutant.lang import (
    BoolType,
    EnumType,
    Errno,
    Interface,
    IntType,
    MapType,
    OpaqueValue,
    OptionalType,
    Seq,
    SeqType,
    SortType,
    StructType,
    TupleType,
    Type,
    struct_fields,
)
from commutant.lang.interface import WHOLE_STATE
from commutant.testgen.concrete import CallUnderTest, ConcreteModel, Start
from commutant.testgen.valuation import sorts_of

NUMBERS = range(-1, 5)
"""The integers that are tried, within a type's bounds."""

Placed = list[tuple[str, dict[str, Any]]]


class Maps(Sequence[Any]):
    """All maps from some keys to some items: each is made when it is drawn, since there may be many thousands."""

    def __init__(self, kind: type, keys: Sequence[Any], items: Sequence[Any]) -> None:
        self._kind, self._keys, self._items = kind, keys, items

    def __len__(self) -> int:
        return (len(self._items) + 1) ** len(self._keys)

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        held = {}
        for key in self._keys:
            index, item = divmod(index, len(self._items) + 1)
            if item:
                # Each entry has a value of its own: a call may change it in its place.
                held[key] = copy.deepcopy(self._items[item - 1])
        return self._kind(held)


def values(type_: Type) -> Sequence[Any]:
    """The values of a type that are tried."""
    if isinstance(type_, SortType):
        name = type_.sort.__name__
        return [OpaqueValue(name, str(n)) if type_.sort.opaque else f"{name.lower()}{n}" for n in range(2)]
    if isinstance(type_, BoolType):
        return [False, True]
    if isinstance(type_, EnumType):
        return list(type_.members)
    if isinstance(type_, IntType):
        return [n for n in NUMBERS if (type_.low is None or n >= type_.low) and (type_.high is None or n <= type_.high)]
    if isinstance(type_, OptionalType):
        return [None, *values(type_.item)]
    if isinstance(type_, TupleType):
        return list(itertools.product(*map(values, type_.items)))
    if isinstance(type_, StructType):
        fields = struct_fields(type_.struct)
        given = itertools.product(*map(values, fields.values()))
        return [type_.struct(**dict(zip(fields, one, strict=True))) for one in given]
    if isinstance(type_, SeqType):
        items = values(type_.item)
        return [Seq(one) for n in range(type_.capacity + 1) for one in itertools.product(items, repeat=n)]
    assert isinstance(type_, MapType)
    return Maps(type(type_.zero()), values(type_.key)[:3], values(type_.value))


class Domain:
    """The states and arguments of a model that are tried."""

    def __init__(self, interface: type[Interface]) -> None:
        self.interface = interface
        self._parts = {name: values(type_) for name, type_ in interface.state_types().items()}
        hooks = dict(interface.well_formedness())
        self._holds = hooks.pop(WHOLE_STATE, [])
        self._of_entries = hooks
        self.sorts = {name: values(SortType(sort)) for name, sort in sorts_of(interface).items()}

    def state(self, chance: random.Random) -> Interface:
        """A well-formed state, drawn."""
        while True:
            state = self.interface()
            for name, options in self._parts.items():
                setattr(state, name, copy.deepcopy(chance.choice(options)))
            if self.is_well_formed(state):
                return state

    def is_well_formed(self, state: Interface) -> bool:
        """Whether all that the model demands of initial states holds."""
        return all(holds(state) for holds in self._holds) and all(
            holds(state, key, value)
            for name, of_entry in self._of_entries.items()
            for key, value in getattr(state, name).items()
            for holds in of_entry
        )

    def calls(self, names: Sequence[str], chance: random.Random) -> Placed:
        """Calls of these names with arguments, drawn."""
        signatures = [self.interface.signature(name) for name in names]
        return [
            (s.name, {name: copy.deepcopy(chance.choice(values(type_))) for name, type_ in s.parameters.items()})
            for s in signatures
        ]


def kind(result: Any) -> str:
    """What of a result counts as its kind: the error, the truth value, or that it succeeds."""
    if isinstance(result, Errno) or (isinstance(result, Mapping) and "errno" in result):
        return result.name if isinstance(result, Errno) else str(result["errno"])
    return str(result).lower() if isinstance(result, bool) else "success"


Kind = tuple[str, str, bool]
"""A call, the kind of its result, and whether it changes what can be seen of the state."""


def kinds(state: Interface, calls: Placed) -> Iterator[Kind]:
    """The kinds of what the calls do in this state, each by itself."""
    for name, arguments in calls:
        end = copy.deepcopy(state)
        result = getattr(end, name)(**copy.deepcopy(arguments))
        yield name, kind(result), not end.equivalent(state)


class Ran:
    """What the calls of generated tests do, noted where their outcomes are worked out."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.kinds: set[Kind] = set()
        outcomes = ConcreteModel.outcomes

        def noting(
            model: ConcreteModel, start: Start, calls: Sequence[CallUnderTest], order: Any, observe: Any
        ) -> list[str]:
            before = start.reached.copy()
            for one in calls:
                for returned, end in model._moves(start.reached, one):
                    self.kinds.add((one.call, kind(returned.result), not end.copy().equivalent(before)))
            return outcomes(model, start, calls, order, observe)

        patch.setattr(ConcreteModel, "outcomes", noting)
