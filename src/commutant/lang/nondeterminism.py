"""What a specification leaves open: `choose` and `unused`.

A model that asks for a choice does not know who answers. The symbolic engine answers with an unknown that is the same
in every order of the calls; a concrete run answers with a value; the test generator enumerates all answers. Whoever
runs a model installs an `Oracle`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, Protocol, TypeVar

from commutant.lang.types import BoolType, IntType, OpaqueValue, Sort, SortType, Time, TimeValue, Type, describe_type

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


def choose(annotation: type[T], allowed: Callable[[T], Any] = lambda _: True) -> T:
    """A value that the specification leaves to the implementation, among those for which `allowed` holds.

    Calls commute where a choice exists that is the same value and allowed in every order (docs/models.md).
    """
    value: T = (_oracle.get() or _default_oracle).choose(_described(annotation, "choose"), allowed)
    return value


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


def finite_values(type_: Type) -> list[Any]:
    """All values of a bool or bounded int; LookupError for a type with too many."""
    if isinstance(type_, BoolType):
        return [False, True]
    if isinstance(type_, IntType) and type_.low is not None and type_.high is not None:
        return list(range(type_.low, type_.high + 1))
    raise LookupError("choose: on concrete runs the type must be bool or an int with a Range")
