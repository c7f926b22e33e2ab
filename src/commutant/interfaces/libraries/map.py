"""A map from keys to values, as hash maps offer it: get, put, remove.

In `map`, `put` tells whether the key was new and `remove` whether it was there, as most libraries have it. In
`map-relaxed` they tell nothing: two that meet at one key then need to know less of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Errno, Interface, Invocation, Map, Range, Sort, Word, call, choose, invoke

_MOST_KEYS = 8
"""More than any test has."""

Told = Annotated[int, Range(0, _MOST_KEYS)]


class Key(Sort, word="key"):
    """A key."""


class Value(Sort, word="value"):
    """A value."""


class MapOfValues(Interface):
    """Keys with a value each."""

    interface_name = "map"

    entries: Annotated[Map[Key, Value], Word("map")]

    @call
    def get(self, key: Key) -> Errno | Value:
        """The key's value."""
        return self.entries.get(key, Errno.ENOENT)

    @call
    def put(self, key: Key, value: Value) -> bool:
        """Gives the key this value; tells whether the key was new."""
        is_new = key not in self.entries
        self.entries[key] = value
        return is_new

    @call
    def remove(self, key: Key) -> bool:
        """Removes the key; tells whether it was there."""
        if key not in self.entries:
            return False
        del self.entries[key]
        return True

    def setup(self) -> Iterable[Invocation]:
        """Puts every key."""
        for key, value in self.entries.items():
            yield invoke("put", key=key, value=value)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Asks for every key of the test."""
        for key in values[Key]:
            yield invoke("get", key=key)


class RelaxedMap(MapOfValues):
    """The map that promises less."""

    interface_name = "map-relaxed"

    @call
    def put(self, key: Key, value: Value) -> None:  # type: ignore[override]
        """Gives the key this value."""
        self.entries[key] = value

    @call
    def remove(self, key: Key) -> None:  # type: ignore[override]
        """Removes the key, if it is there."""
        if key in self.entries:
            del self.entries[key]


class CountedMap(MapOfValues):
    """The map that also tells how many keys it has."""

    interface_name = "map-len"

    @call
    def len(self) -> int:
        """How many keys there are."""
        return len(self.entries)


class RoughlyCountedMap(MapOfValues):
    """The map that tells about how many keys it has: it may be off by as many as there are other calls at a time."""

    interface_name = "map-len-relaxed"

    @call
    def len(self) -> int:
        """About how many keys there are: any number that was or will be right while calls are made."""
        count = len(self.entries)
        told: int = choose(Told, lambda told: count - 1 <= told and told <= count + 1)
        return told
