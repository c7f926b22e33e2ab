"""A store of values by key, as embedded databases offer it: put and delete tell nothing, a swap needs the old value."""

from __future__ import annotations

from commutant.interfaces.libraries.map import Key, RelaxedMap, Value
from commutant.lang import call


class KeyValueStore(RelaxedMap):
    """Keys with a value each; `remove` is what stores call delete."""

    interface_name = "kv"

    @call
    def compare_and_swap(self, key: Key, old: Value, new: Value) -> bool:
        """Gives the key a new value if it has the old one; tells whether it did."""
        if key not in self.entries or self.entries[key] != old:
            return False
        self.entries[key] = new
        return True
