"""A pool of values, as slabs offer it: each is put in a place that the pool picks, and found and taken out by that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commutant.lang import Errno, Interface, Invocation, Map, Sort, call, invoke, unused


class Place(Sort, opaque=True, word="place"):
    """Where a value is: the pool picks it."""


class Value(Sort, word="value"):
    """What is put in."""


class Pool(Interface):
    """Values by their places."""

    values: Map[Place, Value]

    @call
    def insert(self, value: Value) -> Place:
        """Puts a value in."""
        place = unused(Place)
        self.values[place] = value
        return place

    @call
    def get(self, place: Place) -> Errno | Value:
        """The value at a place."""
        return self.values.get(place, Errno.ENOENT)

    @call
    def remove(self, place: Place) -> bool:
        """Takes a value out; tells whether it was there."""
        if place not in self.values:
            return False
        del self.values[place]
        return True

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Asks for every place that is taken."""
        for place in self.values:
            yield invoke("get", place=place)
