"""Concrete values for the unknowns of a class: what may differ does, integers are small, open flags as usual.

What no call has looked at has no unknown, and gets a value of its own: different from all others, or the zero of its
type. Values are numbered in the order in which they are asked for, so that equal classes give equal values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from commutant.lang import (
    BoolType,
    EnumType,
    Interface,
    IntType,
    Map,
    MapType,
    OpaqueValue,
    OptionalType,
    Process,
    Record,
    Seq,
    SeqType,
    Set,
    Sort,
    SortType,
    Struct,
    StructType,
    Time,
    TupleType,
    Type,
    struct_fields,
)
from commutant.symbolic import BoolValue, Context, IntValue, MapContent, SortValue, SymbolicMap, value_of
from commutant.testgen.canonical import Anything
from commutant.testgen.frozen import FALSE, TRUE, Frozen, freeze, thaw


class Valuation:
    """The values of one class. `sorts` are those of the model, by name.

    Each integer is as small as can be. Given the `arguments` of the calls, these and what calls have compared differ
    from each other where the class leaves that open. `unusual`: flags that are open are on their other side.
    """

    def __init__(
        self,
        context: Context,
        sorts: Mapping[str, type[Sort]],
        arguments: Sequence[Mapping[str, Any]] | None = None,
        *,
        unusual: bool = False,
    ) -> None:
        self._unusual = unusual
        self._context = context
        self._sorts = sorts
        self._constrained = context.constrained_ints()
        if arguments is None:
            self._ints = context.int_solution()
        else:
            self._ints = context.int_values_apart(_held(context, self._constrained, arguments))
        self._by_root: dict[int, Any] = {}
        self._by_sort: dict[str, list[Any]] = {name: [] for name in sorts}
        for index, constant in context.constants.items():
            self._by_root[context.find(index)] = constant
            self._by_sort[context.sort_names[index]].append(constant)

    def __call__(self, value: Any) -> Any:
        """The concrete value of a part of an unknown state."""
        return thaw(self.frozen(value))

    def state(self, initial: Interface) -> Interface:
        """The concrete state that stands for an unknown one."""
        state: Interface = thaw(self.frozen_state(initial))
        return state

    def frozen_state(self, initial: Interface) -> Frozen:
        """The frozen form of the concrete state that stands for an unknown one."""
        model: Any = type(initial)
        return self._record(initial, _parts_of_state(model))

    def frozen(self, value: Any) -> Frozen:
        """The frozen form of the concrete value of a part of an unknown state."""
        kind = value.__class__
        if kind is BoolValue:
            return TRUE if self._truth(value.index) else FALSE
        if kind is SortValue:
            return self._sort_value(value)
        if kind is IntValue:
            return self._integer(value)
        if kind is SymbolicMap:
            return self._map(value)
        if isinstance(value, Struct):
            return self._record(value, _parts_of_struct(kind))
        if isinstance(value, tuple | Seq):
            return (kind, *[self.frozen(item) for item in value])
        return freeze(value)

    def _record(self, record: Record, parts: _Parts) -> Frozen:
        asked_for = vars(record)
        values = [record.__class__, parts.names]
        for name, unasked, type_ in parts.parts:
            if name in asked_for:
                values.append(self.frozen(asked_for[name]))
            else:
                values.append(self.of_type(type_) if unasked is None or self._unusual else unasked)
        return tuple(values)

    def _truth(self, index: int) -> bool:
        known = self._context.bool_value(index)
        return self._context.bool_usual.get(index, False) != self._unusual if known is None else known

    def _integer(self, value: IntValue) -> Frozen:
        number = value_of(value.linear, self._ints)
        for variable, _ in value.linear[0]:
            if variable in self._constrained:
                return number
        return _anything(number)

    def _map(self, value: SymbolicMap) -> Frozen:
        """Entries in the order of their keys, whatever the order in which the model asks for them."""
        content, truth = value.content, self._context.bool_value
        entries = [
            (self.frozen(entry.key), entry)
            for entry in content.entries
            if not isinstance(entry.presence, bool) and truth(entry.presence.index)
        ]
        if len(entries) > 1:
            entries.sort(key=lambda found: _place(found[0]))
        type_ = content.type.value
        kind = Set if content.type.is_set else Map
        known = [(key, self.frozen(e.value) if e.known else self.of_type(type_)) for key, e in entries]
        return (kind, *self._more_entries(content, len(entries)), *known)

    def _more_entries(self, content: MapContent, known: int) -> Iterator[tuple[Frozen, Frozen]]:
        """Entries that no one looked at, as many as there must be besides the known ones."""
        missing = 0 if content.size is None else self._ints[content.size] - known
        known_keys = [self.frozen(entry.key) for entry in content.entries] if missing else []
        for number in range(missing):
            yield self._new_key(content.type.key, known_keys, number), self.of_type(content.type.value)

    def _new_key(self, type_: Type, known: list[Frozen], number: int) -> Frozen:
        """A key of a map that is none of the known ones."""
        if isinstance(type_, IntType):
            lowest = max([key for key in known if isinstance(key, int)], default=(type_.low or 0) - 1)
            return lowest + 1 + number
        if isinstance(type_, TupleType):
            parts = [[key[-len(type_.items) :][place] for key in known] for place in range(len(type_.items))]
            return (tuple, *[self._new_key(*both, number) for both in zip(type_.items, parts, strict=True)])
        return self.of_type(type_)

    def of_type(self, type_: Type) -> Frozen:
        """The frozen form of a value that no one has looked at."""
        if self._unusual and isinstance(type_, BoolType):
            return FALSE if type_.usual else TRUE
        unasked = _unasked(type_)
        if unasked is not None:
            return unasked
        if isinstance(type_, SortType):
            return self._new(type_.sort.__name__)
        if isinstance(type_, TupleType):
            return (tuple, *[self.of_type(item) for item in type_.items])
        assert isinstance(type_, StructType)
        struct: Any = type_.struct
        parts = _parts_of_struct(struct)
        return (struct, parts.names, *[self.of_type(part) for _, _, part in parts.parts])

    def _sort_value(self, value: SortValue) -> Any:
        if value.sort == Time.__name__:
            return _ANYTHING
        root = self._context.find(value.index)
        known = self._by_root.get(root)
        if known is None:
            known = self._by_root[root] = self._new(value.sort)
        return known

    def _new(self, name: str) -> Any:
        """A value of the sort that differs from those handed out before."""
        sort, handed_out = self._sorts[name], self._by_sort[name]
        number = len(handed_out)
        value: Any
        if sort is Process:
            value = number
        elif sort.opaque:
            value = _initial(name, number)
        elif sort.numbered:
            value = max(handed_out, default=0) + 1
        else:
            value = f"{name[0].lower()}{number}"
        handed_out.append(value)
        return value

    def handed_out(self) -> tuple[tuple[Any, ...], ...]:
        """The values handed out so far, in the order of the sorts."""
        return tuple(map(tuple, self._by_sort.values()))

    def of_sorts(self) -> dict[type[Sort], list[Any]]:
        """The values handed out so far, per sort, in the order of their first use."""
        return {sort: self._by_sort[name] for name, sort in self._sorts.items()}


def _held(context: Context, constrained: set[int], arguments: Sequence[Mapping[str, Any]]) -> list[int]:
    """The integers that had better be small: those that say how many keys there are below, since the larger, the more a
    set-up has to make; and those of the state that no one looked at."""
    given = {v for values in arguments for value in values.values() for v in _variables(value)}
    return [
        index
        for index, term in enumerate(context.int_terms)
        if (term[1].endswith(("_free", "_count")) if index in constrained else index not in given)
    ]


def _variables(value: Any) -> Iterator[int]:
    """The integer unknowns in an argument."""
    if value.__class__ is IntValue:
        yield from (variable for variable, _ in value.linear[0])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _variables(item)
    elif isinstance(value, Struct):
        for item in vars(value).values():
            yield from _variables(item)


@cache
def _anything(number: int) -> Frozen:
    return (Anything, Anything(number))


_ANYTHING = _anything(0)


@cache
def _initial(sort: str, number: int) -> OpaqueValue:
    """One object each, so that equal states are soon found to be equal."""
    return OpaqueValue(sort, f"initial.{number}")


class _Parts(NamedTuple):
    """The attributes of a state or record: name, what stands there if no one has looked (None if that is a value of its
    own each time), and type."""

    names: tuple[str, ...]
    parts: tuple[tuple[str, Frozen | None, Type], ...]

    @classmethod
    def of(cls, types: Mapping[str, Type]) -> _Parts:
        return cls(tuple(types), tuple([(name, _unasked(type_), type_) for name, type_ in types.items()]))


@lru_cache(maxsize=1 << 10)
def _parts_of_struct(struct: Any) -> _Parts:
    return _Parts.of(struct_fields(struct))


@lru_cache(maxsize=1 << 4)
def _parts_of_state(interface: Any) -> _Parts:
    return _Parts.of(interface.state_types())


def _unasked(type_: Type) -> Frozen | None:
    """The frozen form of a value that no one has looked at, if that is always the same."""
    if isinstance(type_, SortType):
        return _ANYTHING if type_.sort is Time else type_.constant
    if isinstance(type_, IntType):
        return _anything(type_.zero())
    if isinstance(type_, BoolType):
        return TRUE if type_.usual else FALSE
    if isinstance(type_, MapType | SeqType | EnumType | OptionalType):
        return freeze(type_.zero())
    return None


def _place(key: Frozen) -> tuple[Any, ...]:
    """Where a key stands among others of its map."""
    if isinstance(key, OpaqueValue):
        return (len(key.label), key.label)
    return tuple([_place(part) for part in key[1:]]) if isinstance(key, tuple) else (key,)


def sorts_of(interface: type[Interface]) -> dict[str, type[Sort]]:
    """Every sort of a model's state and arguments by name, in the order of the text."""
    found: dict[str, type[Sort]] = {}

    def visit(type_: Type) -> None:
        if isinstance(type_, SortType):
            found.setdefault(type_.sort.__name__, type_.sort)
        elif isinstance(type_, MapType):
            visit(type_.key)
            visit(type_.value)
        elif isinstance(type_, SeqType | OptionalType):
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
