"""A map whose keys have an order, as skip lists and trees offer it: `first` and `next` go through it.

In `ordered-map`, `put` tells whether the key was new and `remove` whether it was there. A walk asks for one key after
the other, so that what a call must know is the key that it is at and the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Capacity, Errno, Interface, Invocation, Seq, Sort, Word, call, invoke, well_formed

_MOST_ENTRIES = 2
_KEYS = range(-5, 6)
"""Keys of tests are small numbers: those of a few entries, and of two calls with at most two each."""


class Key(Sort, ordered=True):
    """A key: walks go by its order."""


class Value(Sort, content=True, word="value"):
    """A value."""


class OrderedEntries(Interface):
    """Keys in ascending order, each with the value at its place, and what every interface over them has."""

    keys: Annotated[Seq[Key], Capacity(_MOST_ENTRIES), Word("map")]
    values: Annotated[Seq[Value], Capacity(_MOST_ENTRIES)]

    @well_formed
    def keys_ascend(self) -> bool:
        """No state has its keys in another order, or one without a value."""
        if len(self.keys) != len(self.values):
            return False
        return all(self.keys[n] < self.keys[n + 1] for n in range(len(self.keys) - 1))

    @call
    def get(self, key: Key) -> Errno | Value:
        """The key's value."""
        for place in range(len(self.keys)):
            if self.keys[place] == key:
                value: Value = self.values[place]
                return value
        return Errno.ENOENT

    def store(self, key: Key, value: Value) -> bool:
        """Gives the key this value; whether it was new."""
        for place in range(len(self.keys)):
            if self.keys[place] == key:
                self.values[place] = value
                return False
        place = len([known for known in self.keys if known < key])  # type: ignore[operator]
        self.keys.insert(place, key)
        self.values.insert(place, value)
        return True

    def take_out(self, key: Key) -> bool:
        """Removes the key; whether it was there."""
        for place in range(len(self.keys)):
            if self.keys[place] == key:
                self.keys.pop(place)
                self.values.pop(place)
                return True
        return False

    def setup(self) -> Iterable[Invocation]:
        """Puts every key."""
        for key, value in zip(self.keys, self.values, strict=True):
            yield invoke("put", key=key, value=value)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Asks for every key that a test may have."""
        for key in _KEYS:
            yield invoke("get", key=key)


class OrderedMap(OrderedEntries):
    """Keys with a value each, in order."""

    interface_name = "ordered-map"

    @call
    def put(self, key: Key, value: Value) -> bool:
        """Gives the key this value; tells whether the key was new."""
        return self.store(key, value)

    @call
    def remove(self, key: Key) -> bool:
        """Removes the key; tells whether it was there."""
        return self.take_out(key)

    @call
    def first(self) -> Errno | Key:
        """The smallest key."""
        return self.keys[0] if self.keys else Errno.ENOENT

    @call
    def next(self, key: Key) -> Errno | Key:
        """The smallest key above this one, which need not be there."""
        for known in self.keys:
            if key < known:  # type: ignore[operator]
                return known
        return Errno.ENOENT
