"""Unknown states: what stands behind a model's attributes while it is explored.

A map of unknown content is lazy. The first access to a key decides whether it equals a key touched before; if not, an
initial entry with an unknown presence and an unknown value comes into being. Initial entries (`MapContent`) are shared by
all orders of the calls; what an order writes lies in its own view (`SymbolicMap`). Only touched keys can differ between
two views, so comparing those is comparing the states. No quantifier is needed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from commutant.errors import UsageError
from commutant.lang.types import (
    BoolType,
    IntType,
    MapType,
    Seq,
    SeqType,
    SortType,
    Struct,
    StructType,
    TupleType,
    Type,
    struct_fields,
)
from commutant.symbolic.context import Infeasible, Literal, Term, current
from commutant.symbolic.values import BoolValue, IntValue, SortValue

EntryHook = Callable[[Any, Any], Any]
"""Asked for the key and value of each initial entry that is present; false excludes the state."""


def unknown(type_: Type, name: str, arguments: tuple[Term, ...] = (), hook: EntryHook | None = None) -> Any:
    """A value of the type of which nothing is known, called `name` (applied to the keys that lead to it)."""
    context = current()
    term: Term = ("apply", name, arguments) if arguments else ("constant", name)
    if isinstance(type_, SortType):
        return SortValue(context.new_sort_value(type_.sort.__name__, term), type_.sort.__name__)
    if isinstance(type_, BoolType):
        return BoolValue(context.new_bool(term))
    if isinstance(type_, IntType):
        return IntValue.variable(context.new_int(term, type_.low, type_.high))
    if isinstance(type_, TupleType):
        return tuple(unknown(item, f"{name}_{i}", arguments) for i, item in enumerate(type_.items))
    if isinstance(type_, StructType):
        struct = object.__new__(type_.struct)
        for field, field_type in struct_fields(type_.struct).items():
            setattr(struct, field, unknown(field_type, f"{name}_{field}", arguments))
        return struct
    if isinstance(type_, MapType):
        return SymbolicMap(MapContent(type_, name, arguments, hook))
    assert isinstance(type_, SeqType)
    return _unknown_sequence(type_, name, arguments)


def _unknown_sequence(type_: SeqType, name: str, arguments: tuple[Term, ...]) -> Seq[Any]:
    """A sequence whose length is decided now, one branch per length; its items are unknown."""
    length = unknown(IntType(0, type_.capacity), f"{name}_length", arguments)
    items: Seq[Any] = Seq()
    while len(items) < type_.capacity and length > len(items):
        items.append(unknown(type_.item, f"{name}_{len(items)}", arguments))
    return items


def term_of(value: Any) -> Term:
    """The term that a value stands for; keys and arguments are made of these."""
    if isinstance(value, SortValue):
        return current().sort_terms[value.index]
    if isinstance(value, BoolValue):
        return current().bool_terms[value.index]
    if isinstance(value, IntValue):
        return ("linear", value.linear)
    if isinstance(value, tuple):
        return ("tuple", tuple(term_of(item) for item in value))
    return ("value", value)


class Entry:
    """A touched key of a map's initial content. Its value comes into being when first asked for."""

    __slots__ = ("content", "key", "known", "presence", "_value")

    def __init__(self, content: MapContent, key: Any, presence: BoolValue | bool) -> None:
        self.content = content
        self.key = key
        self.presence = presence
        self.known = False
        self._value: Any = None

    @property
    def arguments(self) -> tuple[Term, ...]:
        """The keys that lead to this entry's value, outermost map first."""
        term = term_of(self.key)
        return (*self.content.arguments, *(term[1] if term[0] == "tuple" else (term,)))

    @property
    def value(self) -> Any:
        """The initial value; meaningful where the entry is present."""
        if not self.known:
            self.known = True
            type_ = self.content.type.value
            name = self.content.name
            if not isinstance(type_, StructType | MapType | SeqType | TupleType):
                name += "_value"
            self._value = unknown(type_, name, self.arguments)
        return self._value


class MapContent:
    """The initial content of a map, as far as it has been touched; shared by all views."""

    __slots__ = ("arguments", "entries", "hook", "name", "type")

    def __init__(self, type_: MapType, name: str, arguments: tuple[Term, ...], hook: EntryHook | None) -> None:
        self.type = type_
        self.name = name
        self.arguments = arguments
        self.hook = hook
        self.entries: list[Entry] = []

    def find(self, key: Any) -> int:
        """The number of the entry with this key, which is made if there is none."""
        entries = self.entries
        for number, entry in enumerate(entries):
            if entry.key is key:
                return number
        for number, entry in enumerate(entries):
            if entry.key == key:
                return number
        entry = Entry(self, key, False)
        entries.append(entry)
        if not _is_fresh(key):
            entry.presence = BoolValue(current().new_bool(("apply", f"{self.name}_has", entry.arguments)))
        return len(entries) - 1

    def initially_has(self, number: int) -> bool:
        """Whether the entry is present in the initial state (decided now if open)."""
        entry = self.entries[number]
        before = entry.presence if isinstance(entry.presence, bool) else current().implied(
            Literal("bool", entry.presence.index, None)
        )
        present = bool(entry.presence)
        if present and before is None:
            self._became_present(entry)
        return present

    def initially_requires(self, number: int) -> None:
        """Excludes initial states in which the entry is absent."""
        entry = self.entries[number]
        if isinstance(entry.presence, bool):
            if not entry.presence:
                raise Infeasible
            return
        literal = Literal("bool", entry.presence.index, None)
        before = current().implied(literal)
        current().restrict(literal)
        if before is None:
            self._became_present(entry)

    def _became_present(self, entry: Entry) -> None:
        if self.hook is None:
            return
        context = current()
        outer, context.in_restriction = context.in_restriction, True
        try:
            if not self.hook(entry.key, entry.value):
                raise Infeasible
        finally:
            context.in_restriction = outer


class SymbolicMap:
    """One order's view of a map: the initial content and what this order has written."""

    __slots__ = ("content", "written")

    def __init__(self, content: MapContent) -> None:
        self.content = content
        self.written: dict[int, tuple[bool, Any]] = {}

    def initial(self) -> SymbolicMap:
        """A view of the initial content."""
        return SymbolicMap(self.content)

    def copy(self) -> SymbolicMap:
        """A view that starts from this one and changes alone."""
        view = SymbolicMap(self.content)
        view.written = {number: (present, clone(value)) for number, (present, value) in self.written.items()}
        return view

    def _has(self, number: int) -> bool:
        written = self.written.get(number)
        return written[0] if written is not None else self.content.initially_has(number)

    def _value(self, number: int) -> Any:
        written = self.written.get(number)
        if written is not None:
            return written[1]
        value = self.content.entries[number].value
        if isinstance(value, Struct | SymbolicMap | Seq):
            value = clone(value)
            self.written[number] = (True, value)
        return value

    def __contains__(self, key: Any) -> bool:
        return self._has(self.content.find(key))

    def __getitem__(self, key: Any) -> Any:
        """The value; a key whose initial presence is still open is taken to be present (other states are excluded)."""
        number = self.content.find(key)
        written = self.written.get(number)
        if written is None:
            entry = self.content.entries[number]
            absent = (
                entry.presence is False
                or isinstance(entry.presence, BoolValue)
                and current().implied(Literal("bool", entry.presence.index, None)) is False
            )
            if absent:
                raise KeyError(f"{self.content.name} has no such key")
            self.content.initially_requires(number)
        elif not written[0]:
            raise KeyError(f"{self.content.name} has no such key")
        return self._value(number)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value, or the default where the key is absent."""
        number = self.content.find(key)
        return self._value(number) if self._has(number) else default

    def __setitem__(self, key: Any, value: Any) -> None:
        self.written[self.content.find(key)] = (True, value)

    def __delitem__(self, key: Any) -> None:
        self[key]  # raises KeyError where the key is known to be absent
        self.written[self.content.find(key)] = (False, None)

    def pop(self, key: Any, *default: Any) -> Any:
        """Removes the key and returns its value."""
        number = self.content.find(key)
        if default and not self._has(number):
            return default[0]
        value = self[key]
        self.written[number] = (False, None)
        return value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SymbolicMap):
            return False
        if self.content is not other.content:
            raise UsageError(
                f"two different maps were compared ({self.content.name} and {other.content.name}): "
                "a map can only be compared with another state's view of itself"
            )
        for number in sorted(self.written.keys() | other.written.keys()):
            mine, theirs = self._has(number), other._has(number)
            if mine != theirs:
                return False
            if mine:
                left, right = self._peek(number), other._peek(number)
                if left is not right and not left == right:
                    return False
        return True

    def _peek(self, number: int) -> Any:
        written = self.written.get(number)
        return written[1] if written is not None else self.content.entries[number].value

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:
        raise UsageError(
            f"{self.content.name}: a map of unknown size was iterated over (or its length asked for) in a call: "
            "expected access by key"
        )

    def __len__(self) -> int:
        self.__iter__()
        raise AssertionError

    def __bool__(self) -> bool:
        self.__iter__()
        raise AssertionError

    keys = values = items = clear = __iter__


def clone(value: Any) -> Any:
    """A copy of a part of a state that can change without the original; unknown scalars are shared."""
    if isinstance(value, SymbolicMap):
        return value.copy()
    if isinstance(value, Struct):
        struct = object.__new__(type(value))
        for field in struct_fields(type(value)):
            setattr(struct, field, clone(getattr(value, field)))
        return struct
    if isinstance(value, Seq):
        return Seq(clone(item) for item in value)
    return value


def _is_fresh(key: Any) -> bool:
    if isinstance(key, tuple):
        return any(_is_fresh(item) for item in key)
    return isinstance(key, SortValue) and key.index in current().fresh
