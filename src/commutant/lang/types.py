"""The types of a model's state and arguments, and what an annotation means.

A model is annotated with ordinary Python types: `bool`, `int`, tuples, and the classes below. `describe_type` turns an
annotation into a `Type`, which is all that the symbolic engine and the test generator look at. On concrete runs a `Map`
is a dict and a `Seq` is a list, so that the same model runs on ordinary values.
"""

from __future__ import annotations

import copy
import itertools
import operator
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar
from weakref import WeakValueDictionary

from commutant._native import LazyRecord
from commutant.lang.errno import Errno, Signal
from commutant.lang.source_lines import errors_at, place_of_annotation, placed_error
from commutant.support import UsageError

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Sort:
    """An uninterpreted sort: values that can only be compared for equality (paper, section 5.1: `tuninterpreted`).

    Subclass it to declare one: `class Name(Sort): ...`. With `class Inum(Sort, opaque=True)` the implementation picks
    the values and a test compares them up to a bijection (inode numbers, pipe ids); otherwise the test picks them:
    strings such as `n0`, or, with `numbered=True`, the integers from 1 (page contents, page numbers of an address
    space). With `content=True` they say what is stored, not where: which of them are equal does not change what is
    accessed, and tests ask for it at the level `full` only. With `ordered=True` they can also be compared by `<`: the
    test picks integers, of which nothing but their order counts. `word` is what a value stands for in conditions: with
    `class Inum(Sort, opaque=True, word="file")` two names that lead to one value are "two names of one file", and with
    `class Key(Sort, word="key")` two arguments are "the same key".
    """

    opaque: ClassVar[bool] = False
    numbered: ClassVar[bool] = False
    content: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    word: ClassVar[str] = ""

    def __init_subclass__(
        cls,
        opaque: bool = False,
        numbered: bool = False,
        content: bool = False,
        ordered: bool = False,
        word: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.opaque = opaque
        cls.numbered = numbered
        cls.content = content
        cls.ordered = ordered
        cls.word = word


class OpaqueValue:
    """A concrete value of an opaque sort. Those of one sort and label are one object, so that comparing and looking up
    are left to Python itself: states are full of them."""

    __slots__ = ("__weakref__", "label", "sort")

    label: str
    sort: str

    _known: ClassVar[WeakValueDictionary[tuple[str, str], OpaqueValue]] = WeakValueDictionary()

    def __new__(cls, sort: str, label: str) -> Self:
        """The value, made if there is none yet."""
        value = cls._known.get((sort, label))
        if value is None:
            value = object.__new__(cls)
            value.sort, value.label = sort, label
            value = cls._known.setdefault((sort, label), value)
        return typing.cast("Self", value)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is the value itself, in another process the one that is there."""
        return OpaqueValue, (self.sort, self.label)

    def __repr__(self) -> str:
        return f"{self.sort}:{self.label}"


class Process(Sort):
    """The process that makes a call. A parameter of this sort is no argument: it places the call."""


class Time(Sort):
    """A point in time, as a file's time stamps hold it: see `now`. Tests compare times by order only."""


class TimeValue(int):
    """A concrete time: a tick of the clock."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of an integer, both inclusive; None is no bound: `Annotated[int, Range(0, 7)]`."""

    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Usually:
    """The side that a test gives a flag on which nothing depends: `Annotated[bool, Usually(True)]`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Only:
    """A flag of the state or of a call that is unknown only in sets with one of these calls, and has the value in
    others: `Annotated[bool, Only(False, unless=("symlink",))]`. What it shows there is then left to those sets."""

    value: bool
    unless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A value of a numbered sort that is the same in every state: `zero: Annotated[Data, Constant(0)]`."""

    value: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest length of a sequence: `Annotated[Seq[Item], Capacity(3)]`."""

    items: int


@dataclass(frozen=True, slots=True)
class Word:
    """What a sequence, set or map is called where conditions speak of how full it is, so that a queue is empty:
    `items: Annotated[Seq[Item], Word("queue")]`."""

    text: str


class Map(dict[K, V], Generic[K, V]):
    """A finite map of any size: `Map[Name, Inum]`. Concrete runs use it as the dict that it is."""

    def copy(self) -> Self:
        """A map of its own that holds what this one does now, whatever either becomes."""
        return copy.deepcopy(self)

    def lowest_absent(self, *prefix: Any) -> int:
        """The smallest number from 0 that is no key; with a prefix, no last part of a key `(*prefix, number)`."""
        return next(n for n in itertools.count() if ((*prefix, n) if prefix else n) not in self)

    def touched(self) -> list[tuple[K, V]]:
        """The entries that calls may have touched and that are present; on concrete runs all."""
        return list(self.items())

    def equal_where(
        self,
        other: Map[K, V],
        relevant: Callable[[K], Any],
        default: Any = None,
        same: Callable[[Any, Any], Any] = operator.eq,
    ) -> bool:
        """Whether both hold the same under every relevant key, an absent key holding `default`.

        `same` compares two values; where a key is absent in one and there is no default, they differ.
        """
        return all(
            not relevant(key) or same_or_absent(self.get(key, default), other.get(key, default), same)
            for key in [*self, *(key for key in other if key not in self)]
        )


class Set(Map[K, tuple[()]], Generic[K]):
    """A finite set of any size: `Set[Name]`, a map to nothing. Concrete runs iterate over what is in it."""

    def add(self, key: K) -> None:
        """Puts a key in; nothing happens if it is there."""
        self[key] = ()

    def remove(self, key: K) -> None:
        """Takes a key out that is there; KeyError if it is not."""
        del self[key]

    def discard(self, key: K) -> None:
        """Takes a key out if it is there."""
        self.pop(key, None)


def same_or_absent(left: Any, right: Any, same: Callable[[Any, Any], Any]) -> bool:
    """Whether two values of a map are the same; None stands for an absent one."""
    if left is None or right is None:
        return left is right
    return left is right or bool(same(left, right))


class Seq(list[T], Generic[T]):
    """A sequence of bounded length (2 unless annotated with `Capacity`). Concrete runs use it as the list that it
    is; symbolic ones may index it by an unknown number, which is then decided."""

    def __getitem__(self, place: Any) -> Any:
        return super().__getitem__(_known(place, len(self)))

    def __setitem__(self, place: Any, value: Any) -> None:
        super().__setitem__(_known(place, len(self)), value)


def _known(place: Any, length: int) -> Any:
    """A place in a sequence of this length as a number, where it is unknown."""
    if isinstance(place, int | slice):
        return place
    for number in range(-length, length):
        if place == number:
            return number
    raise IndexError("sequence index out of range")


class Record(LazyRecord):
    """Named values. Each may come into being when it is first asked for, from an origin or from a record that this one
    is a copy of.

    The symbolic engine makes unknown records and copies so, since most of what they hold is never looked at. What a
    copy holds itself (`vars`) is what was asked of it or changed in it.
    """

    __slots__ = ("__dict__", "__weakref__")

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies by way of `pickle`: what the record holds, without a search for methods that it has not."""
        return _record_of, (type(self), self.__dict__)


def _record_of(kind: type[Record], held: dict[str, Any]) -> Record:
    record = Record.__new__(kind)
    record.__dict__ = held
    return record


class Struct(Record):
    """A record with annotated fields; compared field by field. `Inode(nlink=1)`; fields left out get a zero value."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **fields: Any) -> None:
        declared = struct_fields(type(self))
        if fields.keys() != declared.keys():
            unknown = fields.keys() - declared.keys()
            if unknown:
                raise TypeError(f"{type(self).__name__} has no field {min(unknown)!r}")
            fields = {name: fields[name] if name in fields else type_.zero() for name, type_ in declared.items()}
        for name, type_ in container_fields(type(self)).items():
            fields[name] = held_as(fields[name], type_)
        vars(self).update(fields)

    def relevant(self) -> Iterable[str]:
        """The fields that a caller could ever tell apart, given the others; a struct with variants overrides this."""
        return struct_fields(type(self))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = tuple(self.relevant()), tuple(other.relevant())
        return mine == theirs and self._equals_in(other, mine)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in struct_fields(type(self)))
        return f"{type(self).__name__}({fields})"


class Type:
    """What an annotation means; one subclass per kind."""

    def zero(self) -> Any:
        """The value that a concrete state starts with where its author gives none."""
        raise AssertionError(f"{type(self).__name__} says no zero")


@dataclass(frozen=True, slots=True)
class SortType(Type):
    """A value of an uninterpreted sort; `constant` is the value that it has in every state, if it has one."""

    sort: type[Sort]
    constant: int | None = None

    def zero(self) -> int | None:
        """The constant, or None: no value of a sort is special."""
        return self.constant


@dataclass(frozen=True, slots=True)
class BoolType(Type):
    """A truth value; `usual` is the side that a test takes where nothing depends on it. `only`: where it is unknown."""

    usual: bool = False
    only: Only | None = None

    def zero(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True, slots=True)
class IntType(Type):
    """An integer, unbounded where a bound is None."""

    low: int | None = None
    high: int | None = None

    def zero(self) -> int:
        """0, or the lowest value."""
        return 0 if self.low is None else self.low


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """A tuple with items of fixed types (as a key: a directory and a name)."""

    items: tuple[Type, ...]

    def zero(self) -> tuple[Any, ...]:
        """The zero of each item."""
        return tuple(item.zero() for item in self.items)


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """A `Struct`."""

    struct: type[Struct]

    def zero(self) -> Struct:
        """The struct with the zero of each field."""
        return self.struct()


@dataclass(frozen=True, slots=True)
class MapType(Type):
    """A `Map`, or a `Set`: a map to nothing."""

    key: Type
    value: Type
    is_set: bool = False
    word: str = field(default="", compare=False)

    def zero(self) -> Map[Any, Any]:
        """The empty map or set."""
        return Set() if self.is_set else Map()


@dataclass(frozen=True, slots=True)
class SeqType(Type):
    """A `Seq` of at most `capacity` items."""

    item: Type
    capacity: int
    word: str = field(default="", compare=False)

    def zero(self) -> Seq[Any]:
        """The empty sequence."""
        return Seq()


@dataclass(frozen=True, slots=True)
class OptionalType(Type):
    """A value of a type, or None."""

    item: Type

    def zero(self) -> None:
        """None."""


@dataclass(frozen=True, slots=True)
class EnumType(Type):
    """A member of an enumeration."""

    enum: type[Enum]

    @property
    def members(self) -> tuple[Enum, ...]:
        """All members, in the order of the text."""
        return tuple(self.enum)

    def zero(self) -> Enum:
        """The first member."""
        return self.members[0]


def held_as(value: Any, type_: Type) -> Any:
    """A value as a state holds it: an empty `dict` or `set` literal stands for the empty map or set."""
    if isinstance(type_, MapType) and type(value) in (dict, set) and not value:
        return type_.zero()
    return value


DEFAULT_CAPACITY = 2
MAX_CAPACITY = 1_000
"""Each length of a sequence is a path of its own: no one waits for more."""

_LARGEST = (1 << 63) - 1


def describe_type(annotation: Any, where: str) -> Type:
    """The `Type` that an annotation means; `where` names the attribute or parameter in the error.

    Raises UsageError for an annotation that a model cannot use.
    """
    bounds: tuple[Any, ...] = ()
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *rest = typing.get_args(annotation)
        bounds = tuple(rest)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    word = next((b.text for b in bounds if isinstance(b, Word)), "")
    if annotation is bool:
        only = next((b for b in bounds if isinstance(b, Only)), None)
        usual = next((b.value for b in bounds if isinstance(b, Usually)), only.value if only else False)
        return BoolType(usual, only)
    if annotation is int:
        return _bounded(next((b for b in bounds if isinstance(b, Range)), Range(None, None)), where)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return StructType(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum) and annotation not in (Errno, Signal):
        if not len(annotation):
            raise UsageError(f"{where}: {annotation.__name__} has no members: expected an enumeration of at least one")
        return EnumType(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Sort) and annotation.ordered:
        return IntType()
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        item = describe_type(next(one for one in arguments if one is not type(None)), where)
        if not isinstance(item, SortType | IntType | BoolType | EnumType):
            raise UsageError(f"{where}: expected a sort, an int, a bool or an enumeration with None")
        return OptionalType(item)
    if origin is Set and len(arguments) == 1:
        key = describe_type(arguments[0], f"an item of {where}")
        if not _is_key(key):
            raise UsageError(
                f"{where}: a set holds values of a sort, ints, bools or tuples of these, not {arguments[0]!r}"
            )
        return MapType(key, TupleType(()), is_set=True, word=word)
    if isinstance(annotation, type) and issubclass(annotation, Sort):
        return SortType(annotation, next((b.value for b in bounds if isinstance(b, Constant)), None))
    if origin is Map and len(arguments) == 2:
        key = describe_type(arguments[0], f"the key of {where}")
        if not _is_key(key):
            raise UsageError(
                f"{where}: a map's key is a sort, an int, a bool or a tuple of these, not {arguments[0]!r}"
            )
        return MapType(key, describe_type(arguments[1], f"the value of {where}"), word=word)
    if origin is Seq and len(arguments) == 1:
        capacity = next((b.items for b in bounds if isinstance(b, Capacity)), DEFAULT_CAPACITY)
        if not _is_number(capacity) or not 0 <= capacity <= MAX_CAPACITY:
            raise UsageError(f"{where}: expected a capacity from 0 to {MAX_CAPACITY}, got {capacity!r}")
        return SeqType(describe_type(arguments[0], f"an item of {where}"), capacity, word)
    if origin is tuple and arguments and Ellipsis not in arguments:
        return TupleType(tuple(describe_type(item, f"an item of {where}") for item in arguments))
    raise UsageError(
        f"{where}: expected bool, int, a tuple, or a Sort, Struct, Map[...], Set[...] or Seq[...] of commutant.lang, "
        f"an Enum, or a simple one of these or None; got the annotation {_show(annotation)}"
    )


def check_type(type_: Type, where: str, inside: tuple[type[Struct], ...] = (), *, maps: bool = True) -> None:
    """UsageError for a type without an end (a struct that contains itself) and, if asked so, for one with a map in
    it."""
    if isinstance(type_, StructType):
        if type_.struct in inside:
            raise UsageError(f"{where}: {type_.struct.__name__} contains itself: expected a type that does not")
        for name, field in struct_fields(type_.struct).items():
            with errors_at(partial(place_of_annotation, type_.struct, name)):
                check_type(field, f"{type_.struct.__name__}.{name}", (*inside, type_.struct), maps=maps)
    elif isinstance(type_, MapType):
        if not maps:
            raise UsageError(
                f"{where}: a call takes no Map: expected bool, int, a sort, or a tuple, Struct or Seq of these"
            )
        check_type(type_.value, where, inside, maps=maps)
    elif isinstance(type_, SeqType):
        check_type(type_.item, where, inside, maps=maps)
    elif isinstance(type_, TupleType):
        for item in type_.items:
            check_type(item, where, inside, maps=maps)


def types_within(type_: Type) -> Iterator[Type]:
    """The type itself and those that it is made of, in the order of the text."""
    yield type_
    if isinstance(type_, TupleType):
        parts: Iterable[Type] = type_.items
    elif isinstance(type_, StructType):
        parts = struct_fields(type_.struct).values()
    elif isinstance(type_, MapType):
        parts = (type_.key, type_.value)
    elif isinstance(type_, SeqType | OptionalType):
        parts = (type_.item,)
    else:
        parts = ()
    for part in parts:
        yield from types_within(part)


def struct_fields(struct: type[Struct]) -> dict[str, Type]:
    """The fields of a struct in the order of the text, with their types."""
    cached: dict[str, Type] | None = struct.__dict__.get("_commutant_fields")
    if cached is None:
        cached = annotated_types(struct)
        for name in cached:
            if name in struct.__dict__:
                raise placed_error(
                    place_of_annotation(struct, name),
                    f"{struct.__name__}.{name}: a field has no default: expected the annotation alone",
                )
        struct._commutant_fields = cached  # type: ignore[attr-defined]
    return cached


def container_fields(struct: type[Struct]) -> dict[str, Type]:
    """Those of its fields that hold other values: maps, sets and structs."""
    cached: dict[str, Type] | None = struct.__dict__.get("_commutant_containers")
    if cached is None:
        cached = {
            name: type_ for name, type_ in struct_fields(struct).items() if isinstance(type_, MapType | StructType)
        }
        struct._commutant_containers = cached  # type: ignore[attr-defined]
    return cached


def annotated_types(owner: type, left_out: Collection[str] = ()) -> dict[str, Type]:
    """The types of the annotated attributes of a class and its bases, in the order of the text; UsageError, with file
    and line, for one that a model cannot use."""
    found = {}
    for name, hint in resolve_hints(owner).items():
        if name not in left_out:
            with errors_at(partial(place_of_annotation, owner, name)):
                found[name] = describe_type(hint, f"{owner.__name__}.{name}")
    return found


def resolve_hints(owner: Any) -> dict[str, Any]:
    """The annotations of a class or function with names resolved; UsageError if one does not resolve."""
    try:
        hints = typing.get_type_hints(owner, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        name = getattr(owner, "__qualname__", repr(owner))
        raise UsageError(f"{name}: an annotation cannot be resolved: {error}") from None
    return {
        name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar and hint is not ClassVar
    }


def _bounded(limits: Range, where: str) -> IntType:
    """The integers within bounds that the engine can compute with."""
    low, high = limits.low, limits.high
    given = [bound for bound in (low, high) if bound is not None]
    if not all(_is_number(bound) and -_LARGEST - 1 <= bound <= _LARGEST for bound in given):
        raise UsageError(f"{where}: expected bounds from -2^63 to 2^63 - 1, or None; got Range({low!r}, {high!r})")
    if low is not None and high is not None and low > high:
        raise UsageError(f"{where}: expected the lower bound first, got Range({low!r}, {high!r}), which holds nothing")
    return IntType(low, high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_key(key: Type) -> bool:
    if isinstance(key, TupleType):
        return all(_is_key(item) for item in key.items)
    return isinstance(key, SortType | IntType | BoolType)


def _show(annotation: Any) -> str:
    if isinstance(annotation, type | types.GenericAlias):
        return getattr(annotation, "__qualname__", repr(annotation))
    return repr(annotation)
