"""Two lists in the order of insertion, whose items move between them: each operation is one step.

`second` says which of the two lists a call means, `front` which of its ends. The library picks items; one stands in one
list at most, and can be taken out wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Capacity, Errno, Interface, Invocation, Seq, Sort, Word, call, invoke, unused, well_formed

_MOST_ITEMS = 2
_MOST_CALLS = 4


class Item(Sort, opaque=True, word="item"):
    """An item: the library picks it."""


class ListEnds(Interface):
    """Two lists of items."""

    interface_name = "lists-ends"

    one: Annotated[Seq[Item], Capacity(_MOST_ITEMS), Word("list")]
    two: Annotated[Seq[Item], Capacity(_MOST_ITEMS), Word("list")]

    @well_formed
    def an_item_stands_in_one_place(self) -> bool:
        """No state has an item twice."""
        for place in range(len(self.one)):
            if self.one[place] in self.one[:place]:
                return False
        for place in range(len(self.two)):
            if self.two[place] in self.one or self.two[place] in self.two[:place]:
                return False
        return True

    @call
    def push(self, second: bool, front: bool) -> Item:
        """Puts a new item at an end of a list."""
        items = self.two if second else self.one
        item = unused(Item)
        items.insert(0 if front else len(items), item)
        return item

    @call
    def pop(self, second: bool, front: bool) -> Errno | Item:
        """Takes the item at an end of a list."""
        items = self.two if second else self.one
        if not items:
            return Errno.EAGAIN
        return items.pop(0) if front else items.pop()

    @call
    def look(self, second: bool, front: bool) -> Errno | Item:
        """The item at an end of a list."""
        items = self.two if second else self.one
        if not items:
            return Errno.EAGAIN
        found: Item = items[0] if front else items[len(items) - 1]
        return found

    @call
    def take(self, second: bool, item: Item) -> bool:
        """Takes an item out of a list, wherever it stands there; tells whether it did."""
        items = self.two if second else self.one
        if item not in items:
            return False
        items.remove(item)
        return True

    @call
    def pass_on(self, second: bool, item: Item, front: bool) -> bool:
        """Moves an item of a list to an end of the other one; tells whether it stood in the list."""
        items, others = (self.two, self.one) if second else (self.one, self.two)
        if item not in items:
            return False
        items.remove(item)
        others.insert(0 if front else len(others), item)
        return True

    def setup(self) -> Iterable[Invocation]:
        """Pushes every item."""
        for second, items in ((False, self.one), (True, self.two)):
            for _ in items:
                yield invoke("push", second=second, front=False)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Takes all that there can be."""
        for second in (False, True):
            for _ in range(2 * _MOST_ITEMS + _MOST_CALLS):
                yield invoke("pop", second=second, front=True)
