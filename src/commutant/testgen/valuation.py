"""Concrete values for the unknowns of a class: what may differ does, integers are small, open flags as usual.

What no call has looked at has no unknown, and gets a value of its own: different from all others, or the zero of its
type. Values are numbered in the order in which they are asked for, so that equal classes give equal values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commutant.lang.interface import Interface
from commutant.lang.types import (
    BoolType,
    IntType,
    Map,
    MapType,
    OpaqueValue,
    Process,
    Seq,
    SeqType,
    Sort,
    SortType,
    Struct,
    StructType,
    Time,
    TupleType,
    Type,
    struct_fields,
)
from commutant.symbolic import BoolValue, Context, IntValue, SortValue, SymbolicMap
from commutant.symbolic.integers import value_of
from commutant.testgen.canonical import Anything


class Valuation:
    """The values of one class. `sorts` are those of the model, by name."""

    def __init__(self, context: Context, sorts: Mapping[str, type[Sort]]) -> None:
        self._context = context
        self._sorts = sorts
        self._ints = context.int_solution()
        self._constrained = context.constrained_ints()
        self._by_root: dict[int, Any] = {}
        self._by_sort: dict[str, list[Any]] = {name: [] for name in sorts}
        for index, constant in context.constants.items():
            self._by_root[context.find(index)] = constant
            self._by_sort[context.sort_names[index]].append(constant)

    def state(self, initial: Interface) -> Interface:
        """The concrete state that stands for an unknown one."""
        state = object.__new__(type(initial))
        asked_for = vars(initial)
        for name, type_ in type(initial).state_types().items():
            setattr(state, name, self(asked_for[name]) if name in asked_for else self.of_type(type_))
        return state

    def __call__(self, value: Any) -> Any:
        """The concrete value of a part of an unknown state."""
        if isinstance(value, SortValue):
            return self._sort_value(value)
        if isinstance(value, BoolValue):
            usual = self._context.bool_usual.get(value.index, False)
            return self._context.bool_values.get(value.index, usual)
        if isinstance(value, IntValue):
            number = value_of(value.linear, self._ints)
            free = all(variable not in self._constrained for variable, _ in value.linear[0])
            return Anything(number) if free else number
        if isinstance(value, tuple):
            return tuple([self(item) for item in value])
        if isinstance(value, Seq):
            return Seq(self(item) for item in value)
        if isinstance(value, Struct):
            struct = object.__new__(type(value))
            asked_for, fields = vars(value), vars(struct)
            for name, type_ in struct_fields(type(value)).items():
                fields[name] = self(asked_for[name]) if name in asked_for else self.of_type(type_)
            return struct
        if isinstance(value, SymbolicMap):
            return self._map(value)
        return value

    def _map(self, value: SymbolicMap) -> Map[Any, Any]:
        """Entries in the order of their keys, whatever the order in which the model asks for them."""
        known = self._context.bool_values
        entries = [
            (self(entry.key), entry)
            for entry in value.content.entries
            if not isinstance(entry.presence, bool) and known.get(entry.presence.index, False)
        ]
        if len(entries) > 1:
            entries.sort(key=lambda found: _place(found[0]))
        return Map(
            (key, self(entry.value) if entry.known else self.of_type(value.content.type.value))
            for key, entry in entries
        )

    def of_type(self, type_: Type) -> Any:
        """A value that nobody has looked at."""
        if isinstance(type_, SortType):
            if type_.sort is Time:
                return Anything(0)
            return self._new(type_.sort.__name__) if type_.constant is None else type_.constant
        if isinstance(type_, IntType):
            return Anything(type_.zero())
        if isinstance(type_, BoolType):
            return type_.usual
        if isinstance(type_, TupleType):
            return tuple([self.of_type(item) for item in type_.items])
        if isinstance(type_, StructType):
            return type_.struct(**{name: self.of_type(field) for name, field in struct_fields(type_.struct).items()})
        assert isinstance(type_, MapType | SeqType)
        return type_.zero()

    def _sort_value(self, value: SortValue) -> Any:
        if value.sort == Time.__name__:
            return Anything(0)
        root = self._context.find(value.index)
        if root not in self._by_root:
            self._by_root[root] = self._new(value.sort)
        return self._by_root[root]

    def _new(self, name: str) -> Any:
        """A value of the sort that differs from those handed out before."""
        sort, handed_out = self._sorts[name], self._by_sort[name]
        number = len(handed_out)
        value: Any
        if sort is Process:
            value = number
        elif sort.opaque:
            value = OpaqueValue(name, f"initial.{number}")
        elif sort.numbered:
            value = max(handed_out, default=0) + 1
        else:
            value = f"{name[0].lower()}{number}"
        handed_out.append(value)
        return value

    def of_sorts(self) -> dict[type[Sort], list[Any]]:
        """The values handed out so far, per sort, in the order of their first use."""
        return {sort: self._by_sort[name] for name, sort in self._sorts.items()}


def _place(key: Any) -> tuple[Any, ...]:
    """Where a key stands among others of its map."""
    if isinstance(key, OpaqueValue):
        return (len(key.label), key.label)
    return tuple([_place(part) for part in key]) if isinstance(key, tuple) else (key,)


def sorts_of(interface: type[Interface]) -> dict[str, type[Sort]]:
    """Every sort of a model's state and arguments by name, in the order of the text."""
    found: dict[str, type[Sort]] = {}

    def visit(type_: Type) -> None:
        if isinstance(type_, SortType):
            found.setdefault(type_.sort.__name__, type_.sort)
        elif isinstance(type_, MapType):
            visit(type_.key)
            visit(type_.value)
        elif isinstance(type_, SeqType):
            visit(type_.item)
        elif isinstance(type_, TupleType):
            for item in type_.items:
                visit(item)
        elif isinstance(type_, StructType):
            for field in struct_fields(type_.struct).values():
                visit(field)

    for type_ in interface.state_types().values():
        visit(type_)
    for call in interface.call_names():
        for type_ in interface.signature(call).parameters.values():
            visit(type_)
    return found
