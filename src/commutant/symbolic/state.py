"""Unknown states: what stands behind a model's attributes while it is explored.

An unknown value comes into being when somebody asks for it, and so does a copy of one: most of a state is never looked
at. A map of unknown content is lazy too. The first access to a key decides whether it equals a key touched before; if
not, an initial entry with an unknown presence and an unknown value comes into being. Initial entries (`MapContent`) are
shared by all orders of the calls; what an order writes lies in its own view (`SymbolicMap`), on top of the view that it
is a copy of. Only touched keys can differ between two views, so comparing those is comparing the states. No quantifier
is needed anywhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from commutant.errors import UsageError
from commutant.lang.types import (
    BoolType,
    IntType,
    Map,
    MapType,
    Record,
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

R = TypeVar("R", bound=Record)

EntryHook = Callable[[Any, Any], Any]
"""Asked for the key and value of each initial entry that is present; false excludes the state."""


def unknown(type_: Type, name: str, place: Entry | None = None, hook: EntryHook | None = None) -> Any:
    """A value of the type of which nothing is known, called `name`; in a map it is part of the entry `place`."""
    return _MAKERS[type_.__class__](type_, name, place, hook)


def unknown_record(
    class_: type[R],
    types: Mapping[str, Type],
    prefix: str = "",
    place: Entry | None = None,
    hook_of: Callable[[str], EntryHook | None] | None = None,
) -> R:
    """A record of the class of which nothing is known; `hook_of` gives the hooks of the maps in it by their names."""

    def origin(record: R, name: str) -> Any:
        type_ = types.get(name)
        if type_ is None:
            raise AttributeError(f"{class_.__name__!r} object has no attribute {name!r}")
        hook = None if hook_of is None else hook_of(name)
        current().undo_pop(record.__dict__, name)
        return _MAKERS[type_.__class__](type_, prefix + name, place, hook)

    return class_.from_origin(origin)


def _term(name: str, place: Entry | None) -> Term:
    return ("constant", name) if place is None else ("apply", name, place)


def _unknown_sort_value(type_: SortType, name: str, place: Entry | None, _: EntryHook | None) -> SortValue:
    context = current()
    sort = type_.sort
    index = context.new_sort_value(sort.__name__, _term(name, place))
    if sort.content:
        context.content_sorts.add(sort.__name__)
    if type_.constant is not None:
        context.put(context.constants, index, type_.constant)
    return SortValue(index, sort.__name__)


def _unknown_bool(type_: BoolType, name: str, place: Entry | None, _: EntryHook | None) -> BoolValue:
    context = current()
    index = context.new_bool(_term(name, place))
    if type_.usual:
        context.put(context.bool_usual, index, True)
    return BoolValue(index)


def _unknown_integer(type_: IntType, name: str, place: Entry | None, _: EntryHook | None) -> IntValue | int:
    if type_.low is not None and type_.low == type_.high:
        return type_.low
    return IntValue.variable(current().new_int(_term(name, place), type_.low, type_.high))


def _unknown_tuple(type_: TupleType, name: str, place: Entry | None, _: EntryHook | None) -> tuple[Any, ...]:
    return tuple(unknown(item, f"{name}_{i}", place) for i, item in enumerate(type_.items))


def _unknown_struct(type_: StructType, name: str, place: Entry | None, _: EntryHook | None) -> Struct:
    return unknown_record(type_.struct, struct_fields(type_.struct), f"{name}_", place)


def _unknown_map(type_: MapType, name: str, place: Entry | None, hook: EntryHook | None) -> SymbolicMap:
    return SymbolicMap(MapContent(type_, name, place, hook))


def _unknown_sequence(type_: SeqType, name: str, place: Entry | None, _: EntryHook | None) -> Seq[Any]:
    """A sequence whose length is decided now, one branch per length; its items are unknown."""
    length = unknown(IntType(0, type_.capacity), f"{name}_length", place)
    items: Seq[Any] = Seq()
    while len(items) < type_.capacity and length > len(items):
        items.append(unknown(type_.item, f"{name}_{len(items)}", place))
    return items


_MAKERS: dict[type[Type], Callable[..., Any]] = {
    SortType: _unknown_sort_value,
    BoolType: _unknown_bool,
    IntType: _unknown_integer,
    TupleType: _unknown_tuple,
    StructType: _unknown_struct,
    MapType: _unknown_map,
    SeqType: _unknown_sequence,
}


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
    """A touched key of a map's initial content. Its value comes into being when first asked for.

    `presence` is what its presence depends on, `present` what is known of it (None: open).
    """

    __slots__ = ("_arguments", "_value", "content", "key", "known", "presence", "present")

    def __init__(self, content: MapContent, key: Any) -> None:
        self.content = content
        self.key = key
        self.presence: BoolValue | bool = False
        self.present: bool | None = False
        self.known = False
        self._value: Any = None
        self._arguments: tuple[Term, ...] | None = None

    @property
    def arguments(self) -> tuple[Term, ...]:
        """The keys that lead to this entry's value, outermost map first."""
        if self._arguments is None:
            place = self.content.place
            term = term_of(self.key)
            outer = () if place is None else place.arguments
            self._arguments = (*outer, *(term[1] if term[0] == "tuple" else (term,)))
        return self._arguments

    @property
    def value(self) -> Any:
        """The initial value; meaningful where the entry is present."""
        if not self.known:
            self.known = True
            current().undo_with(self._forget)
            type_ = self.content.type.value
            name = self.content.name
            if type_.__class__ not in (StructType, SeqType, TupleType):
                name += "_value"
            self._value = unknown(type_, name, self)
        return self._value

    def _forget(self) -> None:
        self.known = False

    def found(self, present: bool) -> None:
        """Notes whether the entry is present."""
        self.present = present
        current().undo_with(setattr, self, "present", None)


class MapContent:
    """The initial content of a map, as far as it has been touched; shared by all views. `empty`: there is none."""

    __slots__ = ("_numbers", "empty", "entries", "holes", "hook", "name", "place", "type")

    def __init__(
        self, type_: MapType, name: str, place: Entry | None, hook: EntryHook | None, *, empty: bool = False
    ) -> None:
        self.type = type_
        self.empty = empty
        self.name = name
        self.place = place
        self.hook = hook
        self.entries: list[Entry] = []
        self.holes: list[tuple[tuple[Any, ...], list[int]]] = []
        self._numbers: dict[Any, int] = {}

    def find(self, key: Any) -> int:
        """The number of the entry with this key, which is made if there is none."""
        identity = _identity(key)
        number = self._numbers.get(identity)
        if number is None:
            number = self._search(key)
            current().put(self._numbers, identity, number)
        return number

    def _search(self, key: Any) -> int:
        for number, entry in enumerate(self.entries):
            if entry.key == key:
                return number
        if not fits(key, self.type.key):
            raise UsageError(f"{self.name} has keys of type {shown(self.type.key)}, got {key!r}")
        entry = Entry(self, key)
        if not self.empty and not _is_fresh(key):
            entry.presence = BoolValue(current().new_bool(("apply", f"{self.name}_has", entry)))
            entry.present = None
        return self._add(entry)

    def _add(self, entry: Entry) -> int:
        current().undo_with(self.entries.pop)
        self.entries.append(entry)
        return len(self.entries) - 1

    def initially_has(self, number: int) -> bool:
        """Whether the entry is present in the initial state (decided now if open)."""
        entry = self.entries[number]
        present = entry.present
        if present is None:
            present = bool(entry.presence)
            entry.found(present)
            if present:
                self._became_present(entry)
            else:
                self._became_absent(entry)
        return present

    def initially_requires(self, number: int) -> None:
        """Excludes initial states in which the entry is absent."""
        entry = self.entries[number]
        if entry.present is None:
            assert isinstance(entry.presence, BoolValue)
            current().restrict(Literal("bool", entry.presence.index, None))
            entry.found(True)
            self._became_present(entry)
        elif not entry.present:
            raise Infeasible

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
            current().undo_with(self.holes.pop)
            self.holes.append((prefix, numbers))
        while len(numbers) <= position:
            number = self._new_hole(prefix, numbers)
            current().undo_with(numbers.pop)
            numbers.append(number)
        return numbers[position]

    def _new_hole(self, prefix: tuple[Any, ...], before: list[int]) -> int:
        context = current()
        outer = () if self.place is None else self.place.arguments
        arguments = (*outer, *(term_of(part) for part in prefix), ("value", len(before)))
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
        key = (*prefix, lowest) if prefix else lowest
        number = self._add(Entry(self, key))
        context.put(self._numbers, _identity(key), number)
        return number


def split_key(key: Any) -> tuple[tuple[Any, ...], Any]:
    """A key as its prefix and its last part."""
    return (key[:-1], key[-1]) if isinstance(key, tuple) else ((), key)


def _require(linear: Any) -> None:
    """Excludes states in which `linear <= 0` does not hold."""
    if isinstance(linear, IntValue):
        current().restrict(Literal("<=", linear.linear, None))
    elif linear > 0:
        raise Infeasible


def _identity(key: Any) -> Any:
    """What two keys share that are the same without any decision."""
    class_ = key.__class__
    if class_ is tuple:
        return tuple([_identity(item) for item in key])
    if class_ is SortValue:
        return key.index
    if class_ is IntValue:
        return key.linear
    return (key.index,) if class_ is BoolValue else (class_, key)


def _is_fresh(key: Any) -> bool:
    if key.__class__ is tuple:
        return any(map(_is_fresh, key))
    return key.__class__ is SortValue and current().is_fresh(key.index)


class Cell(NamedTuple):
    """What a view holds under a key by itself: a value that was `assigned`, or a copy of one, which may have been
    changed since."""

    present: bool
    value: Any
    assigned: bool


_NO_CELL = Cell(False, None, True)
_DELETED = Cell(False, None, True)


class SymbolicMap:
    """One order's view of a map: the view that it is a copy of (`source`; none for the initial content), and what was
    looked at and written since.

    `cells` is what it holds by itself, `looked` the entries that it was asked about, `emptied` whether it was cleared
    since it was copied and `cleared` whether it ever was. `scans` are the prefixes under which the lowest absent number
    was asked for, and `counted` of how many entries all were looked at, if so.
    """

    __slots__ = ("cells", "cleared", "content", "counted", "emptied", "looked", "scans", "source")

    def __init__(self, content: MapContent, source: SymbolicMap | None = None) -> None:
        self.content = content
        self.source = source
        self.cells: dict[int, Cell] = {}
        self.looked: set[int] = set()
        self.cleared: bool = source is not None and source.cleared
        self.emptied = False
        self.scans: list[tuple[Any, ...]] = []
        self.counted: int | None = None

    def initial(self) -> SymbolicMap:
        """A view of the initial content."""
        return SymbolicMap(self.content)

    def copy(self) -> SymbolicMap:
        """A view that starts from this one and changes alone; this one must not change any more."""
        return SymbolicMap(self.content, self)

    def clear(self) -> None:
        """Removes every entry, touched or not."""
        self.cleared = self.emptied = True
        self.cells.clear()

    def _cell(self, number: int) -> Cell | None:
        """What this view or one before it holds under the key; None if that is what the initial content holds."""
        view: SymbolicMap | None = self
        while view is not None:
            cell = view.cells.get(number)
            if cell is not None:
                return cell
            if view.emptied:
                return _NO_CELL
            view = view.source
        return None

    def _all_cells(self) -> dict[int, Cell]:
        """What this view and those before it hold, by the number of the entry."""
        found: dict[int, Cell] = {}
        view: SymbolicMap | None = self
        while view is not None:
            found = {**view.cells, **found}
            view = None if view.emptied else view.source
        return found

    def _held_apart_from(self, other: SymbolicMap) -> list[int]:
        """The entries of which one of two views holds something that the other has not from a common source."""
        mine, theirs = self._sources(), other._sources()
        while mine and theirs and mine[-1] is theirs[-1]:
            del mine[-1], theirs[-1]
        return sorted({number for view in (*mine, *theirs) for number in view.cells})

    def _sources(self) -> list[SymbolicMap]:
        """This view and those that it is a copy of, the initial content last."""
        views = [self]
        while views[-1].source is not None:
            views.append(views[-1].source)
        return views

    def lowest_absent(self, *prefix: Any) -> Any:
        """The smallest number from 0 that is no key; with a prefix, no last part of a key `(*prefix, number)`.

        The numbers that are free in the initial state are unknowns L0 < L1 < ..., made on demand; the answer is the
        first that is still free, or a lower number that was removed since. Exact, without a bound on the numbers.
        """
        if self.cleared:
            raise UsageError(f"{self.content.name}: lowest_absent() after clear() cannot be analysed")
        self.scans.append(prefix)
        position = 0
        while self._has(number := self.content.hole(prefix, position)):
            position += 1
        lowest = split_key(self.content.entries[number].key)[1]
        for other, cell in sorted(self._all_cells().items()):
            entry = self.content.entries[other]
            known, key = split_key(entry.key)
            was_present = not cell.present and entry.presence is not False and known == prefix
            if was_present and self.content.initially_has(other) and key < lowest and not self.content.is_negative(key):
                lowest = key
        return lowest

    def touched(self) -> list[tuple[Any, Any]]:
        """The entries that calls have touched and that are present."""
        found, number = [], 0
        while number < len(self.content.entries):
            if self._has(number):
                found.append((self.content.entries[number].key, self.value(number)))
            number += 1
        self.counted = number
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
        everywhere = self.cleared != other.cleared
        held_apart = self._held_apart_from(other)
        number = 0
        while number < len(self.content.entries):
            differs = (everywhere or number in held_apart) and not self._shares(number, other)
            if differs and relevant(self.content.entries[number].key):
                mine = self.value(number) if self._has(number) else default
                theirs = other.value(number) if other._has(number) else default
                if not same_or_absent(mine, theirs, same):
                    return False
            number += 1
        self.counted = other.counted = number
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
        keys = [self.content.entries[number].key for number in sorted(self._all_cells())]
        keys += [other.content.entries[number].key for number in sorted(other._all_cells())]
        return all(
            not relevant(key) or same_or_absent(self.get(key, default), other.get(key, default), same) for key in keys
        )

    @property
    def _is_new(self) -> bool:
        return self.cleared or self.content.empty

    def _has(self, number: int) -> bool:
        self.looked.add(number)
        cell = self._cell(number)
        return self.content.initially_has(number) if cell is None else cell.present

    def value(self, number: int) -> Any:
        """The value of an entry, ready to be changed in this view; meaningful where it is present."""
        self.looked.add(number)
        cell = self._cell(number)
        value = self.content.entries[number].value if cell is None else cell.value
        if value.__class__ not in _SHARED and number not in self.cells:
            value = clone(value)
            current().put(self.cells, number, Cell(True, value, False))
        return value

    def __contains__(self, key: Any) -> bool:
        return self._has(self.content.find(key))

    def __getitem__(self, key: Any) -> Any:
        """The value; a key whose initial presence is still open is taken to be present (other states are excluded)."""
        number = self.content.find(key)
        cell = self._cell(number)
        if cell is _NO_CELL:
            raise KeyError(f"{self.content.name} was cleared")
        if cell is None:
            if self.content.entries[number].present is False:
                raise KeyError(f"{self.content.name} has no such key")
            self.content.initially_requires(number)
        elif not cell.present:
            raise KeyError(f"{self.content.name} has no such key")
        return self.value(number)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value, or the default where the key is absent."""
        number = self.content.find(key)
        return self.value(number) if self._has(number) else default

    def __setitem__(self, key: Any, value: Any) -> None:
        type_ = self.content.type.value
        adopted = adopt(value, type_, self.content.name)
        if not fits(adopted, type_):
            raise UsageError(f"{self.content.name} has values of type {shown(type_)}, got {value!r}")
        if isinstance(adopted, Struct):
            held = adopted._held
            adopted._held = True
            if held:
                current().may_share = True
        elif isinstance(value, SymbolicMap | list):
            current().may_share = True
        self.assign(self.content.find(key), Cell(True, adopted, True))

    def assign(self, number: int, cell: Cell) -> None:
        """Puts a cell in the place of an entry."""
        self.looked.add(number)
        self.cells[number] = cell

    def __delitem__(self, key: Any) -> None:
        self[key]  # raises KeyError where the key is known to be absent
        self.assign(self.content.find(key), _DELETED)

    def pop(self, key: Any, *default: Any) -> Any:
        """Removes the key and returns its value."""
        number = self.content.find(key)
        if default and not self._has(number):
            return default[0]
        value = self[key]
        self.assign(number, _DELETED)
        return value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SymbolicMap):
            return False
        if self.content is not other.content:
            return self._equal_where_new(other, lambda _: True)
        if self.source is other.source is not None and not (self.cells or other.cells or self.emptied or other.emptied):
            return True
        if self.cleared != other.cleared:
            raise UsageError(
                f"{self.content.name} was cleared in one order and not in the other: compare with equal_where() in "
                "the struct's relevant() or the model's equivalent()"
            )
        for number in self._held_apart_from(other):
            mine, theirs = self._has(number), other._has(number)
            if mine != theirs:
                return False
            if mine and not self._shares(number, other) and not self.value(number) == other.value(number):
                return False
        return True

    def _shares(self, number: int, other: SymbolicMap) -> bool:
        """Whether two views that have an entry hold the very same value."""
        mine, theirs = self._cell(number), other._cell(number)
        return mine is theirs or (mine is not None and theirs is not None and mine.value is theirs.value)

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
            parts = [cell.value for cell in value.cells.values() if cell.present]
        elif isinstance(value, Struct):
            parts = list(vars(value).values())
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


def is_scalar(type_: Type) -> bool:
    """Whether a value of the type cannot be changed, only replaced."""
    return isinstance(type_, SortType | BoolType | IntType)


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
        view = SymbolicMap(MapContent(type_, name, None, None, empty=True))
        for key, item in value.items():
            view[key] = item
        return view
    if isinstance(value, Struct):
        types = struct_fields(type(value))
        for field, part in vars(value).items():
            if isinstance(part, Map | Struct):
                setattr(value, field, adopt(part, types[field], f"{name}_{field}"))
    return value


_SHARED = frozenset({SortValue, BoolValue, IntValue, bool, int, tuple, type(None)})


def _cloned(copy: Record, name: str) -> Any:
    """A value of a copy, when it is first asked for."""
    source = copy._source
    assert source is not None
    return clone(source._seen(name))


def clone(value: Any) -> Any:
    """A copy of a part of a state that can change without the original, which must not change any more; unknown scalars
    are shared."""
    class_ = value.__class__
    if class_ in _SHARED:
        return value
    if class_ is SymbolicMap:
        return SymbolicMap(value.content, value)
    if isinstance(value, Record):
        return value.from_origin(_cloned, value)
    if isinstance(value, Seq):
        return Seq(clone(item) for item in value)
    return value
