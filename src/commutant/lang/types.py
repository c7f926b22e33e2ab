"""The types of a model's state and arguments, and what an annotation means.

A model is annotated with ordinary Python types: `bool`, `int`, tuples, and the classes below. `describe_type` turns an
annotation into a `Type`, which is all that the symbolic engine and the test generator look at. On concrete runs a `Map`
is a dict and a `Seq` is a list, so that the same model runs on ordinary values.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from commutant.errors import UsageError

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Sort:
    """An uninterpreted sort: values that can only be compared for equality (paper, section 5.1: `tuninterpreted`).

    Subclass it to declare one: `class Name(Sort): ...`. With `class Inum(Sort, opaque=True)` the implementation picks the
    values and a test compares them up to a bijection (inode numbers, pipe ids); otherwise the test picks them (names).
    """

    opaque: ClassVar[bool] = False

    def __init_subclass__(cls, opaque: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.opaque = opaque


@dataclass(frozen=True, slots=True)
class OpaqueValue:
    """A concrete value of an opaque sort: two are the same one if their labels are."""

    sort: str
    label: str

    def __repr__(self) -> str:
        return f"{self.sort}:{self.label}"


class Process(Sort):
    """The process that makes a call. A parameter of this sort is no argument: it places the call."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of an integer, both inclusive: `Annotated[int, Range(0, 7)]`."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest length of a sequence: `Annotated[Seq[Item], Capacity(3)]`."""

    items: int


class Map(dict[K, V], Generic[K, V]):
    """A finite map of any size: `Map[Name, Inum]`. Concrete runs use it as the dict that it is."""


class Seq(list[T], Generic[T]):
    """A sequence of bounded length (2 unless annotated with `Capacity`). Concrete runs use it as the list that it is."""


class Struct:
    """A record with annotated fields; compared field by field. `Inode(nlink=1)`; fields left out get a zero value."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **fields: Any) -> None:
        declared = struct_fields(type(self))
        unknown = fields.keys() - declared.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {sorted(unknown)[0]!r}")
        for name, field_type in declared.items():
            setattr(self, name, fields[name] if name in fields else field_type.zero())

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in struct_fields(type(self)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in struct_fields(type(self)))
        return f"{type(self).__name__}({fields})"


class Type:
    """What an annotation means; one subclass per kind."""

    def zero(self) -> Any:
        """The value that a concrete state starts with where its author gives none."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class SortType(Type):
    """A value of an uninterpreted sort."""

    sort: type[Sort]

    def zero(self) -> Any:
        raise TypeError(f"a value of sort {self.sort.__name__} must be given")


@dataclass(frozen=True, slots=True)
class BoolType(Type):
    """A truth value."""

    def zero(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class IntType(Type):
    """An integer, unbounded where a bound is None."""

    low: int | None = None
    high: int | None = None

    def zero(self) -> int:
        return 0 if self.low is None else self.low


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """A tuple with items of fixed types (as a key: a directory and a name)."""

    items: tuple[Type, ...]

    def zero(self) -> tuple[Any, ...]:
        return tuple(item.zero() for item in self.items)


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """A `Struct`."""

    struct: type[Struct]

    def zero(self) -> Struct:
        return self.struct()


@dataclass(frozen=True, slots=True)
class MapType(Type):
    """A `Map`."""

    key: Type
    value: Type

    def zero(self) -> Map[Any, Any]:
        return Map()


@dataclass(frozen=True, slots=True)
class SeqType(Type):
    """A `Seq` of at most `capacity` items."""

    item: Type
    capacity: int

    def zero(self) -> Seq[Any]:
        return Seq()


DEFAULT_CAPACITY = 2


def describe_type(annotation: Any, where: str) -> Type:
    """The `Type` that an annotation means; `where` names the attribute or parameter in the error.

    Raises UsageError for an annotation that a model cannot use.
    """
    bounds: tuple[Any, ...] = ()
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *rest = typing.get_args(annotation)
        bounds = tuple(rest)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is bool:
        return BoolType()
    if annotation is int:
        limits = [b for b in bounds if isinstance(b, Range)]
        return IntType(limits[0].low, limits[0].high) if limits else IntType()
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return StructType(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Sort):
        return SortType(annotation)
    if origin is Map and len(arguments) == 2:
        key = describe_type(arguments[0], f"the key of {where}")
        if not _is_key(key):
            raise UsageError(f"{where}: a map's key is a sort, an int, a bool or a tuple of these, not {arguments[0]!r}")
        return MapType(key, describe_type(arguments[1], f"the value of {where}"))
    if origin is Seq and len(arguments) == 1:
        capacity = next((b.items for b in bounds if isinstance(b, Capacity)), DEFAULT_CAPACITY)
        return SeqType(describe_type(arguments[0], f"an item of {where}"), capacity)
    if origin is tuple and arguments and Ellipsis not in arguments:
        return TupleType(tuple(describe_type(item, f"an item of {where}") for item in arguments))
    raise UsageError(
        f"{where}: expected bool, int, a tuple, or a Sort, Struct, Map[...] or Seq[...] of commutant.lang, "
        f"got the annotation {_show(annotation)}"
    )


def struct_fields(struct: type[Struct]) -> dict[str, Type]:
    """The fields of a struct in the order of the text, with their types."""
    cached = struct.__dict__.get("_commutant_fields")
    if cached is None:
        cached = {
            name: describe_type(hint, f"{struct.__name__}.{name}") for name, hint in resolve_hints(struct).items()
        }
        struct._commutant_fields = cached  # type: ignore[attr-defined]
    return typing.cast("dict[str, Type]", cached)


def resolve_hints(owner: Any) -> dict[str, Any]:
    """The annotations of a class or function with names resolved; UsageError if one does not resolve."""
    try:
        hints = typing.get_type_hints(owner, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        name = getattr(owner, "__qualname__", repr(owner))
        raise UsageError(f"{name}: an annotation cannot be resolved: {error}") from None
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar and hint is not ClassVar}


def _is_key(key: Type) -> bool:
    if isinstance(key, TupleType):
        return all(_is_key(item) for item in key.items)
    return isinstance(key, SortType | IntType | BoolType)


def _show(annotation: Any) -> str:
    if isinstance(annotation, type | types.GenericAlias):
        return getattr(annotation, "__qualname__", repr(annotation))
    return repr(annotation)
