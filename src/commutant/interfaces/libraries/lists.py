"""Two lists, or maps, whose items move between them: each operation is one step, a move as well.

`second` says which of the two lists a call means. Items have a key; a list has one item of a key at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Errno, Interface, Invocation, Map, Sort, Word, call, invoke


class Key(Sort, word="key"):
    """The key of an item."""


class Value(Sort, word="value"):
    """What tells items of one key apart."""


class Lists(Interface):
    """Two lists of items."""

    interface_name = "lists"

    one: Annotated[Map[Key, Value], Word("list")]
    two: Annotated[Map[Key, Value], Word("list")]

    @call
    def find(self, second: bool, key: Key) -> Errno | Value:
        """The item with this key in a list."""
        return (self.two if second else self.one).get(key, Errno.ENOENT)

    @call
    def insert(self, second: bool, key: Key, value: Value) -> bool:
        """Inserts a new item into a list, unless it has one with this key; tells whether it did."""
        items = self.two if second else self.one
        if key in items:
            return False
        items[key] = value
        return True

    @call
    def remove(self, second: bool, key: Key) -> bool:
        """Removes the item with this key from a list; tells whether it was there."""
        items = self.two if second else self.one
        if key not in items:
            return False
        del items[key]
        return True

    @call
    def move(self, second: bool, key: Key) -> Errno | int:
        """Moves the item with this key out of a list into the other one, unless that has one with this key."""
        items, others = (self.two, self.one) if second else (self.one, self.two)
        if key not in items:
            return Errno.ENOENT
        if key in others:
            return Errno.EEXIST
        others[key] = items[key]
        del items[key]
        return 0

    @call
    def swap(self, key: Key, other: Key) -> Errno | int:
        """Exchanges an item of the first list for one of the second, unless one of them would then have a key twice."""
        if key not in self.one or other not in self.two:
            return Errno.ENOENT
        if key != other and (key in self.two or other in self.one):
            return Errno.EEXIST
        mine, its = self.one[key], self.two[other]
        del self.one[key]
        del self.two[other]
        self.two[key] = mine
        self.one[other] = its
        return 0

    def setup(self) -> Iterable[Invocation]:
        """Inserts every item."""
        for second, items in ((False, self.one), (True, self.two)):
            for key, value in items.items():
                yield invoke("insert", second=second, key=key, value=value)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Asks both lists for every key of the test."""
        for key in values[Key]:
            for second in (False, True):
                yield invoke("find", second=second, key=key)
