"""A store of values by key, as embedded databases offer it: put and remove tell nothing, a swap needs the old value, a
scan reads what lies between two keys."""

from __future__ import annotations

from typing import Annotated

from commutant.interfaces.libraries.ordered_map import Key, OrderedEntries, Value
from commutant.lang import Capacity, Seq, Word, call


class KeyValueStore(OrderedEntries):
    """Keys with a value each; `remove` is what stores call delete."""

    interface_name = "kv"

    keys: Annotated[Seq[Key], Capacity(1), Word("store")]
    values: Annotated[Seq[Value], Capacity(1)]

    @call
    def put(self, key: Key, value: Value) -> None:
        """Gives the key this value."""
        self.store(key, value)

    @call
    def remove(self, key: Key) -> None:
        """Removes the key, if it is there."""
        self.take_out(key)

    @call
    def compare_and_swap(self, key: Key, old: Value, new: Value) -> bool:
        """Gives the key a new value if it has the old one; tells whether it did."""
        if self.get(key) != old:
            return False
        self.store(key, new)
        return True

    @call
    def scan(self, low: Key, high: Key) -> Seq[Value]:
        """The values of the keys from one key to another, both inclusive, by ascending key."""
        places = range(len(self.keys))
        return Seq(self.values[place] for place in places if low <= self.keys[place] and self.keys[place] <= high)
