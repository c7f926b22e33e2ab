"""Unknown states: what stands behind a model's attributes while it is explored.

A map of unknown content is lazy. The first access to a key decides whether it equals a key touched before; if not, an
initial entry with an unknown presence and an unknown value comes into being. Initial entries (`MapContent`) are shared
by all orders of the calls; what an order writes lies in its own view (`SymbolicMap`). Only touched keys can differ
between two views, so comparing those is comparing the states. No quantifier is needed anywhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from commutant.errors import UsageError
from commutant.lang.types import (
    BoolType,
    IntType,
    Map,
    MapType,
    Seq,
    SeqType,
    SortType,
    Struct,
    StructType,
    TupleType,
    Type,
    same_or_absent,
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
        index = context.new_sort_value(type_.sort.__name__, term)
        if type_.sort.content:
            context.content_sorts.add(type_.sort.__name__)
        if type_.constant is not None:
            context.constants[index] = type_.constant
        return SortValue(index, type_.sort.__name__)
    if isinstance(type_, BoolType):
        index = context.new_bool(term)
        if type_.usual:
            context.bool_usual[index] = True
        return BoolValue(index)
    if isinstance(type_, IntType):
        index = context.new_int(term, type_.low, type_.high)
        return IntValue.variable(index)
    if isinstance(type_, TupleType):
        return tuple(unknown(item, f"{name}_{i}", arguments) for i, item in enumerate(type_.items))
    if isinstance(type_, StructType):
        fields = struct_fields(type_.struct)
        return type_.struct.from_origin(lambda field: unknown(fields[field], f"{name}_{field}", arguments))
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

    __slots__ = ("_arguments", "_value", "content", "key", "known", "presence")

    def __init__(self, content: MapContent, key: Any, presence: BoolValue | bool) -> None:
        self.content = content
        self.key = key
        self.presence = presence
        self.known = False
        self._value: Any = None
        self._arguments: tuple[Term, ...] | None = None

    @property
    def arguments(self) -> tuple[Term, ...]:
        """The keys that lead to this entry's value, outermost map first."""
        if self._arguments is None:
            term = term_of(self.key)
            self._arguments = (*self.content.arguments, *(term[1] if term[0] == "tuple" else (term,)))
        return self._arguments

    @property
    def value(self) -> Any:
        """The initial value; meaningful where the entry is present."""
        if not self.known:
            self.known = True
            type_ = self.content.type.value
            name = self.content.name
            if not isinstance(type_, StructType | SeqType | TupleType):
                name += "_value"
            self._value = unknown(type_, name, self.arguments)
        return self._value


class MapContent:
    """The initial content of a map, as far as it has been touched; shared by all views. `empty`: there is none."""

    __slots__ = ("arguments", "empty", "entries", "holes", "hook", "name", "type")

    def __init__(
        self, type_: MapType, name: str, arguments: tuple[Term, ...], hook: EntryHook | None, *, empty: bool = False
    ) -> None:
        self.type = type_
        self.empty = empty
        self.name = name
        self.arguments = arguments
        self.hook = hook
        self.entries: list[Entry] = []
        self.holes: list[tuple[tuple[Any, ...], list[int]]] = []

    def find(self, key: Any) -> int:
        """The number of the entry with this key, which is made if there is none."""
        entries = self.entries
        for number, entry in enumerate(entries):
            if entry.key is key:
                return number
        for number, entry in enumerate(entries):
            if entry.key == key:
                return number
        if not fits(key, self.type.key):
            raise UsageError(f"{self.name} has keys of type {shown(self.type.key)}, got {key!r}")
        entry = Entry(self, key, False)
        entries.append(entry)
        if not self.empty and not _is_fresh(key):
            entry.presence = BoolValue(current().new_bool(("apply", f"{self.name}_has", entry.arguments)))
        return len(entries) - 1

    def initially_has(self, number: int) -> bool:
        """Whether the entry is present in the initial state (decided now if open)."""
        entry = self.entries[number]
        before = (
            entry.presence
            if isinstance(entry.presence, bool)
            else current().implied(Literal("bool", entry.presence.index, None))
        )
        present = bool(entry.presence)
        if before is None:
            if present:
                self._became_present(entry)
            else:
                self._became_absent(entry)
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

    def _became_absent(self, entry: Entry) -> None:
        """Holes are the lowest absent numbers, so an absent key that is none of them lies above."""
        for prefix, numbers in self.holes:
            if numbers and split_key(entry.key)[0] == prefix and not self.is_negative(split_key(entry.key)[1]):
                _require(split_key(self.entries[numbers[-1]].key)[1] + 1 - split_key(entry.key)[1])

    def is_negative(self, number: Any) -> bool:
        """Whether the last part of a key is below 0, where no hole is; not asked where the key's type excludes it."""
        type_ = self.type.key.items[-1] if isinstance(self.type.key, TupleType) else self.type.key
        known = isinstance(type_, IntType) and type_.low is not None and type_.low >= 0
        return not known and bool(number < 0)

    def hole(self, prefix: tuple[Any, ...], position: int) -> int:
        """The entry of the number that, of those absent in the initial state, is the lowest but `position`."""
        for known, found in self.holes:
            if known == prefix:
                numbers = found
                break
        else:
            numbers = []
            self.holes.append((prefix, numbers))
        while len(numbers) <= position:
            numbers.append(self._new_hole(prefix, numbers))
        return numbers[position]

    def _new_hole(self, prefix: tuple[Any, ...], before: list[int]) -> int:
        context = current()
        arguments = (*self.arguments, *(term_of(part) for part in prefix), ("value", len(before)))
        lowest = IntValue.variable(context.new_int(("apply", f"{self.name}_free", arguments), 0, None))
        if before:
            _require(split_key(self.entries[before[-1]].key)[1] + 1 - lowest)
        for number, entry in enumerate(self.entries):
            if number in before or _is_fresh(entry.key):
                continue
            known, key = split_key(entry.key)
            if known != prefix:
                continue
            if self.initially_has(number):
                if key == lowest:
                    raise Infeasible
            elif self.is_negative(key):
                continue
            elif key == lowest:
                return number
            else:
                _require(lowest + 1 - key)
        self.entries.append(Entry(self, (*prefix, lowest) if prefix else lowest, False))
        return len(self.entries) - 1


def split_key(key: Any) -> tuple[tuple[Any, ...], Any]:
    """A key as its prefix and its last part."""
    return (key[:-1], key[-1]) if isinstance(key, tuple) else ((), key)


def _require(linear: Any) -> None:
    """Excludes states in which `linear <= 0` does not hold."""
    if isinstance(linear, IntValue):
        current().restrict(Literal("<=", linear.linear, None))
    elif linear > 0:
        raise Infeasible


class SymbolicMap:
    """One order's view of a map: the initial content and what this order has written."""

    __slots__ = ("cleared", "content", "written")

    def __init__(self, content: MapContent) -> None:
        self.content = content
        self.cleared = False
        self.written: dict[int, tuple[bool, Any]] = {}

    def initial(self) -> SymbolicMap:
        """A view of the initial content."""
        return SymbolicMap(self.content)

    def copy(self) -> SymbolicMap:
        """A view that starts from this one and changes alone."""
        view = SymbolicMap(self.content)
        view.cleared = self.cleared
        view.written = {number: (present, clone(value)) for number, (present, value) in self.written.items()}
        return view

    def clear(self) -> None:
        """Removes every entry, touched or not."""
        self.cleared = True
        self.written.clear()

    def lowest_absent(self, *prefix: Any) -> Any:
        """The smallest number from 0 that is no key; with a prefix, no last part of a key `(*prefix, number)`.

        The numbers that are free in the initial state are unknowns L0 < L1 < ..., made on demand; the answer is the
        first that is still free, or a lower number that was removed since. Exact, without a bound on the numbers.
        """
        if self.cleared:
            raise UsageError(f"{self.content.name}: lowest_absent() after clear() cannot be analysed")
        position = 0
        while self._has(number := self.content.hole(prefix, position)):
            position += 1
        lowest = split_key(self.content.entries[number].key)[1]
        for other, (present, _) in sorted(self.written.items()):
            entry = self.content.entries[other]
            known, key = split_key(entry.key)
            was_present = not present and entry.presence is not False and known == prefix
            if was_present and self.content.initially_has(other) and key < lowest and not self.content.is_negative(key):
                lowest = key
        return lowest

    def touched(self) -> list[tuple[Any, Any]]:
        """The entries that calls have touched and that are present."""
        found, number = [], 0
        while number < len(self.content.entries):
            if self._has(number):
                found.append((self.content.entries[number].key, self._value(number)))
            number += 1
        return found

    def equal_where(
        self,
        other: SymbolicMap,
        relevant: Callable[[Any], Any],
        default: Any = None,
        same: Callable[[Any, Any], Any] = operator.eq,
    ) -> bool:
        """Whether both hold the same under every relevant key, an absent key holding `default`; `same` compares values.

        Untouched keys hold the same in both unless one was cleared; of those the caller knows that none is relevant.
        """
        if self.content is not other.content:
            return self._equal_where_new(other, relevant, default, same)
        number = 0
        while number < len(self.content.entries):
            changed = number in self.written or number in other.written or self.cleared != other.cleared
            if changed and relevant(self.content.entries[number].key):
                mine = self._peek(number) if self._has(number) else default
                theirs = other._peek(number) if other._has(number) else default
                if not same_or_absent(mine, theirs, same):
                    return False
            number += 1
        return True

    def _equal_where_new(
        self,
        other: SymbolicMap,
        relevant: Callable[[Any], Any],
        default: Any = None,
        same: Callable[[Any, Any], Any] = operator.eq,
    ) -> bool:
        """The same for two maps that calls have made: all that they hold was written."""
        if not (self._is_new and other._is_new):
            raise UsageError(
                f"two different maps were compared ({self.content.name} and {other.content.name}): "
                "a map can only be compared with another state's view of itself"
            )
        keys = [self.content.entries[number].key for number in sorted(self.written)]
        keys += [other.content.entries[number].key for number in sorted(other.written)]
        return all(
            not relevant(key) or same_or_absent(self.get(key, default), other.get(key, default), same) for key in keys
        )

    @property
    def _is_new(self) -> bool:
        return self.cleared or self.content.empty

    def _has(self, number: int) -> bool:
        written = self.written.get(number)
        if written is not None:
            return written[0]
        return not self.cleared and self.content.initially_has(number)

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
        if written is None and self.cleared:
            raise KeyError(f"{self.content.name} was cleared")
        if written is None:
            entry = self.content.entries[number]
            absent = entry.presence is False or (
                isinstance(entry.presence, BoolValue)
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
        type_ = self.content.type.value
        adopted = adopt(value, type_, self.content.name)
        if not fits(adopted, type_):
            raise UsageError(f"{self.content.name} has values of type {shown(type_)}, got {value!r}")
        if isinstance(adopted, Struct):
            held = adopted.__dict__.get("_held", False)
            adopted.__dict__["_held"] = True
            if held:
                current().may_share = True
        elif isinstance(value, SymbolicMap | list):
            current().may_share = True
        self.written[self.content.find(key)] = (True, adopted)

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
            return self._equal_where_new(other, lambda _: True)
        if self.cleared != other.cleared:
            raise UsageError(
                f"{self.content.name} was cleared in one order and not in the other: compare with equal_where() in "
                "the struct's relevant() or the model's equivalent()"
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

    keys = values = items = __iter__


def check_not_shared(attributes: dict[str, Any]) -> None:
    """UsageError if one record, sequence or map has come to stand in two places of a state.

    A change through one place would show in the other, on ordinary values for ever and here until the next call.
    """
    seen: dict[int, str] = {}
    pending = [(name, value) for name, value in attributes.items() if isinstance(value, SymbolicMap | Struct | list)]
    while pending:
        name, value = pending.pop()
        if id(value) in seen:
            raise UsageError(
                f"one {type(value).__name__} stands in two places of the state ({seen[id(value)]} and {name}), so that "
                "a change of one would change the other: expected a new one with the same content"
            )
        seen[id(value)] = name
        if isinstance(value, SymbolicMap):
            parts = [item for present, item in value.written.values() if present]
        elif isinstance(value, Struct):
            parts = [part for field, part in value.__dict__.items() if field != "_source"]
        else:
            parts = list(value)
        pending += [(name, part) for part in parts if isinstance(part, Struct | SymbolicMap | list)]


def fits(value: Any, type_: Type) -> bool:
    """Whether a value may stand where the type is expected; of a struct or sequence the parts are not looked at."""
    if isinstance(type_, SortType):
        return isinstance(value, SortValue) and value.sort == type_.sort.__name__
    if isinstance(type_, BoolType):
        return isinstance(value, bool | BoolValue)
    if isinstance(type_, IntType):
        return isinstance(value, IntValue) or (isinstance(value, int) and not isinstance(value, bool))
    if isinstance(type_, TupleType):
        return isinstance(value, tuple) and len(value) == len(type_.items) and all(map(fits, value, type_.items))
    if isinstance(type_, StructType):
        return isinstance(value, type_.struct)
    return isinstance(value, SymbolicMap if isinstance(type_, MapType) else list)


def may_share(type_: Type, depth: int = 0) -> bool:
    """Whether a call can put a record or sequence of this type into a second place without storing it under a key."""
    if isinstance(type_, StructType):
        return depth != 1 or any(may_share(field, 2) for field in struct_fields(type_.struct).values())
    if isinstance(type_, MapType):
        return may_share(type_.value, 1)
    return isinstance(type_, SeqType)


def usual_class(type_: Type) -> type:
    """The class that an unknown value of the type has; others may fit too."""
    if isinstance(type_, SortType):
        return SortValue
    if isinstance(type_, BoolType):
        return BoolValue
    if isinstance(type_, IntType):
        return IntValue
    if isinstance(type_, StructType):
        return type_.struct
    return SymbolicMap if isinstance(type_, MapType) else Seq if isinstance(type_, SeqType) else tuple


def shown(type_: Type) -> str:
    """A type as its annotation is written."""
    if isinstance(type_, SortType):
        return type_.sort.__name__
    if isinstance(type_, StructType):
        return type_.struct.__name__
    if isinstance(type_, TupleType):
        return f"tuple[{', '.join(map(shown, type_.items))}]"
    if isinstance(type_, MapType):
        return f"Map[{shown(type_.key)}, {shown(type_.value)}]"
    if isinstance(type_, SeqType):
        return f"Seq[{shown(type_.item)}]"
    return "bool" if isinstance(type_, BoolType) else "int"


def adopt(value: Any, type_: Type, name: str) -> Any:
    """A value that a call made, ready to be part of a state: maps in it can hold unknown keys from now on."""
    if isinstance(value, Map) and isinstance(type_, MapType):
        view = SymbolicMap(MapContent(type_, name, (), None, empty=True))
        for key, item in value.items():
            view[key] = item
        return view
    if isinstance(value, Struct):
        for field, field_type in struct_fields(type(value)).items():
            part = getattr(value, field)
            if isinstance(part, Map | Struct):
                setattr(value, field, adopt(part, field_type, f"{name}_{field}"))
    return value


def clone(value: Any) -> Any:
    """A copy of a part of a state that can change without the original, which must not change any more; unknown scalars
    are shared."""
    if isinstance(value, SymbolicMap):
        return value.copy()
    if isinstance(value, Struct):
        source = value
        return type(value).from_origin(lambda field: clone(getattr(source, field)), source)
    if isinstance(value, Seq):
        return Seq(clone(item) for item in value)
    return value


def _is_fresh(key: Any) -> bool:
    if isinstance(key, tuple):
        return any(_is_fresh(item) for item in key)
    return isinstance(key, SortValue) and key.index in current().fresh
