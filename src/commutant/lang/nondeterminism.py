"""What a specification leaves open: `choose` and `unused`.

A model that asks for a choice does not know who answers. The symbolic engine answers with an unknown that is the same
in every order of the calls; a concrete run answers with a value; the test generator enumerates all answers. What
runs a model installs an `Oracle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar, overload

from commutant._native import SymbolicMap
from commutant.lang.types import (
    BoolType,
    EnumType,
    IntType,
    MapType,
    OpaqueValue,
    OptionalType,
    SeqType,
    Sort,
    SortType,
    StructType,
    Time,
    TimeValue,
    TupleType,
    Type,
    describe_type,
    struct_fields,
)
from commutant.support import UsageError

T = TypeVar("T")
S = TypeVar("S", bound=Sort)


class Oracle(Protocol):
    """Answers a model's open questions."""

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """A value of the type for which `allowed` holds."""

    def unused(self, type_: SortType) -> Any:
        """A value of the sort that occurs nowhere in the state."""

    def now(self) -> Any:
        """The time at which the call under way runs."""


class ConcreteOracle:
    """Answers on concrete runs: the first allowed value of a bounded type, and numbers never handed out before."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """The smallest allowed value; LookupError if no value is allowed or the type is not bounded."""
        for value in finite_values(type_):
            if allowed(value):
                return value
        raise LookupError("choose: no value of the type is allowed here")

    def unused(self, type_: SortType) -> OpaqueValue:
        """A new value."""
        self._next += 1
        return OpaqueValue(type_.sort.__name__, f"new.{self._next}")

    def now(self) -> TimeValue:
        """A time later than any before."""
        self._next += 1
        return TimeValue(self._next)


_described: Callable[[Any, str], Type] = cache(describe_type)

_oracle: ContextVar[Oracle | None] = ContextVar("commutant_oracle", default=None)
_default_oracle: Oracle = ConcreteOracle()


class answered_by:
    """Installs an oracle for the models that run inside the `with` block."""

    __slots__ = ("_before", "_oracle")

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def __enter__(self) -> None:
        self._before = _oracle.set(self._oracle)

    def __exit__(self, *exception: object) -> None:
        _oracle.reset(self._before)


@overload
def choose(among: type[T], allowed: Callable[[T], Any] = ...) -> T: ...


@overload
def choose(among: Iterable[T], allowed: Callable[[T], Any] = ...) -> T: ...


def choose(among: Any, allowed: Callable[[Any], Any] = lambda _: True) -> Any:
    """A value that the specification leaves to the implementation, among those for which `allowed` holds.

    `among` is a type, or a map, set or sequence of the state: then it is one of its keys or items. Calls commute where
    a choice exists that is the same value and allowed in every order (docs/reference/models.md). Raises UsageError
    where there is nothing to choose from.
    """
    oracle = _oracle.get() or _default_oracle
    if not isinstance(among, SymbolicMap | dict | list):
        return oracle.choose(_described(among, "choose"), allowed)
    if not among:
        raise UsageError("choose() from nothing: expected a test before, such as `if self.entries`")
    if isinstance(among, SymbolicMap):
        return oracle.choose(among.content.type.key, lambda key: key in among and allowed(key))
    if isinstance(among, dict):
        return oracle.choose(AmongType(tuple(among)), allowed)
    return among[oracle.choose(IntType(0, len(among) - 1), lambda place: allowed(among[place]))]


def unused(sort: type[S]) -> S:
    """Any value of an opaque sort that is in use nowhere: a new inode number, a new pipe.

    It differs from every value of the initial state and from those handed out before it in the same order of the calls.
    """
    described = _described(sort, "unused")
    assert isinstance(described, SortType), "unused() takes a Sort"
    value: S = (_oracle.get() or _default_oracle).unused(described)
    return value


def now() -> Time:
    """The time at which the calls under test run: later than every time in the initial state, and the same for all of
    them, since clocks are coarse and no caller may count on an order finer than theirs."""
    value: Time = (_oracle.get() or _default_oracle).now()
    return value


@dataclass(frozen=True)
class AmongType(Type):
    """One of these values, which a concrete state holds."""

    values: tuple[Any, ...]


def finite_values(type_: Type, state: Any = None) -> list[Any]:
    """All values of a bool, an enumeration or a bounded int, or those of a sort that occur in a state; LookupError for
    a type with too many."""
    if isinstance(type_, AmongType):
        return list(type_.values)
    if isinstance(type_, EnumType):
        return list(type_.members)
    if isinstance(type_, SortType) and state is not None:
        found: dict[Any, None] = {}
        for name, part in type(state).state_types().items():
            found.update(dict.fromkeys(_of_sort(getattr(state, name), part, type_.sort)))
        return list(found)
    if isinstance(type_, BoolType):
        return [False, True]
    if isinstance(type_, IntType) and type_.low is not None and type_.high is not None:
        return list(range(type_.low, type_.high + 1))
    raise LookupError("choose: on concrete runs the type must be bool, an Enum, a Sort, or an int with a Range")


def _of_sort(value: Any, type_: Type, sort: type[Sort]) -> Iterator[Any]:
    """The values of a sort that a part of a concrete state holds."""
    if isinstance(type_, SortType):
        if type_.sort is sort and value is not None:
            yield value
    elif isinstance(type_, MapType):
        for key, item in value.items():
            yield from _of_sort(key, type_.key, sort)
            yield from _of_sort(item, type_.value, sort)
    elif isinstance(type_, SeqType):
        for item in value:
            yield from _of_sort(item, type_.item, sort)
    elif isinstance(type_, TupleType):
        for item, part in zip(value, type_.items, strict=True):
            yield from _of_sort(item, part, sort)
    elif isinstance(type_, StructType):
        for name, part in struct_fields(type_.struct).items():
            yield from _of_sort(getattr(value, name), part, sort)
    elif isinstance(type_, OptionalType) and value is not None:
        yield from _of_sort(value, type_.item, sort)
