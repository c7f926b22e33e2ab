"""A counter that anybody may add to, and a table of such counters by name, as libraries of metrics keep it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Interface, Invocation, Map, Range, Sort, call, invoke

Amount = Annotated[int, Range(1, 9)]


class Counter(Interface):
    """One counter. Adding tells nothing, so two that add commute."""

    value: Annotated[int, Range(0, 9)]

    @call
    def add(self, amount: Amount) -> None:
        """Adds to it."""
        self.value += amount

    @call
    def read(self) -> int:
        """The sum of all that was added."""
        return self.value

    def setup(self) -> Iterable[Invocation]:
        """Adds what is there."""
        if self.value > 0:
            yield invoke("add", amount=self.value)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Reads it."""
        yield invoke("read")


class Name(Sort, word="counter"):
    """What a counter is called."""


class Metrics(Interface):
    """Counters by name; one that no one has added to is 0."""

    values: Map[Name, Amount]

    @call
    def add(self, name: Name, amount: Amount) -> None:
        """Adds to a counter."""
        self.values[name] = self.values.get(name, 0) + amount

    @call
    def read(self, name: Name) -> int:
        """A counter's sum."""
        return self.values.get(name, 0)

    def setup(self) -> Iterable[Invocation]:
        """Adds what is there."""
        for name, value in self.values.items():
            yield invoke("add", name=name, amount=value)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Reads every counter of the test."""
        for name in values[Name]:
            yield invoke("read", name=name)
