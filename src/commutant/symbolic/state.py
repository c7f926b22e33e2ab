"""Unknown states: what stands behind a model's attributes while it is explored.

An unknown value comes into being when somebody asks for it, and so does a copy of one: most of a state is never looked
at. Maps of unknown content are lazy too (`maps`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, TypeVar

from commutant._native import clone as clone
from commutant.lang import (
    BoolType,
    EnumType,
    IntType,
    Map,
    MapType,
    OptionalType,
    Record,
    Seq,
    SeqType,
    SortType,
    Struct,
    StructType,
    TupleType,
    Type,
    container_fields,
    held_as,
    struct_fields,
)
from commutant.support import UsageError
from commutant.symbolic.engine import (
    OF_ANOTHER_RUN,
    BoolValue,
    Entry,
    IntValue,
    MapContent,
    SortValue,
    SymbolicMap,
    Term,
    current,
)

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
    hook_of: Callable[[R, str], EntryHook | None] | None = None,
) -> R:
    """A record of the class of which nothing is known; `hook_of` gives the hooks of the maps in it by record and
    name; the record may still be in the making then."""

    def origin(record: R, name: str) -> Any:
        type_ = types.get(name)
        if type_ is None:
            raise AttributeError(f"{class_.__name__!r} object has no attribute {name!r}")
        hook = None if hook_of is None else hook_of(record, name)
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


class CallsUnderWay:
    """The calls that are explored together: what is `Only` unknown with certain calls asks for them."""

    names: ClassVar[frozenset[str]] = frozenset()


def _unknown_bool(type_: BoolType, name: str, place: Entry | None, _: EntryHook | None) -> BoolValue | bool:
    context = current()
    if type_.only is not None and CallsUnderWay.names.isdisjoint(type_.only.unless):
        return type_.only.value
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


def _unknown_optional(type_: OptionalType, name: str, place: Entry | None, _: EntryHook | None) -> Any:
    """A value or None; which is decided now."""
    return unknown(type_.item, name, place) if unknown(BoolType(), f"{name}_given", place) else None


def _unknown_member(type_: EnumType, name: str, place: Entry | None, _: EntryHook | None) -> Enum:
    """A member of an enumeration; which is decided now."""
    *others, last = type_.members
    number = unknown(IntType(0, len(others)), name, place)
    return next((member for position, member in enumerate(others) if number == position), last)


_MAKERS: dict[type[Type], Callable[..., Any]] = {
    SortType: _unknown_sort_value,
    BoolType: _unknown_bool,
    IntType: _unknown_integer,
    TupleType: _unknown_tuple,
    StructType: _unknown_struct,
    MapType: _unknown_map,
    SeqType: _unknown_sequence,
    OptionalType: _unknown_optional,
    EnumType: _unknown_member,
}


def term_of(value: Any) -> Term:
    """The term that a value stands for; keys and arguments are made of these."""
    if isinstance(value, SortValue):
        return _term_at(current().sort_terms, value.index)
    if isinstance(value, BoolValue):
        return _term_at(current().bool_terms, value.index)
    if isinstance(value, IntValue):
        return ("linear", value.linear)
    if isinstance(value, tuple):
        return ("tuple", tuple(term_of(item) for item in value))
    return ("value", value)


def _term_at(terms: Sequence[Term], index: int) -> Term:
    if index >= len(terms):
        raise UsageError(OF_ANOTHER_RUN)
    return terms[index]


def arguments_of(place: Entry | None, key: Any) -> tuple[Term, ...]:
    """The keys that lead to the value under a key of a map, outermost map first; `place` is the entry that the map is
    the value of."""
    term = term_of(key)
    outer = () if place is None else place.arguments
    return (*outer, *(term[1] if term[0] == "tuple" else (term,)))


def names_parts(type_: Type) -> bool:
    """Whether parts of an unknown value of this type have names of their own."""
    return type_.__class__ in (StructType, SeqType, TupleType)


def accepted(value: Any, content: MapContent) -> Any:
    """A value that a call stores under a key, as the map holds it; UsageError if it does not fit."""
    type_ = content.type.value
    adopted = adopt(value, type_, content.name)
    if not fits(adopted, type_):
        raise UsageError(f"{content.name} has values of type {shown(type_)}, got {value!r}")
    if isinstance(adopted, Struct):
        held = adopted._held
        adopted._held = True
        if held:
            current().may_share = True
    elif isinstance(value, SymbolicMap | list):
        current().may_share = True
    return adopted


def copied(value: Any) -> Any:
    """A copy of a part of a state that is its own at once: the original may change."""
    if isinstance(value, SymbolicMap):
        return value.copy()
    if isinstance(value, Seq):
        return Seq(map(copied, value))
    if isinstance(value, Struct):
        other = clone(value)
        for name in struct_fields(type(value)):
            setattr(other, name, copied(getattr(other, name)))
        return other
    return value


def check_not_shared(attributes: dict[str, Any]) -> None:
    """UsageError if one record, sequence or map has come to stand in two places of a state.

    A change through one place would show in the other, on ordinary values forever and here until the next call.
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
            parts = [cell.value for _, cell in value.cells if cell.present]
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
    if isinstance(type_, OptionalType):
        return value is None or fits(value, type_.item)
    if isinstance(type_, EnumType):
        return isinstance(value, type_.enum)
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
    if isinstance(type_, EnumType):
        return type_.enum
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
        return f"Set[{shown(type_.key)}]" if type_.is_set else f"Map[{shown(type_.key)}, {shown(type_.value)}]"
    if isinstance(type_, OptionalType):
        return f"{shown(type_.item)} | None"
    if isinstance(type_, EnumType):
        return type_.enum.__name__
    if isinstance(type_, SeqType):
        return f"Seq[{shown(type_.item)}]"
    return "bool" if isinstance(type_, BoolType) else "int"


def adopt(value: Any, type_: Type, name: str) -> Any:
    """A value that a call made, ready to be part of a state: maps in it can hold unknown keys from now on."""
    value = held_as(value, type_)
    if isinstance(value, Map) and isinstance(type_, MapType):
        view = SymbolicMap(MapContent(type_, name, None, None, empty=True))
        for key, item in value.items():
            view[key] = item
        return view
    if isinstance(value, Struct):
        held = vars(value)
        for field, field_type in container_fields(type(value)).items():
            if field in held:
                part = held[field]
                adopted = adopt(part, field_type, f"{name}_{field}")
                if adopted is not part:
                    setattr(value, field, adopted)
    return value
