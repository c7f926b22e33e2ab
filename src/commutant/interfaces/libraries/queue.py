"""What is put in and taken out again: a queue (the oldest item comes first) and a stack (the newest does).

Taking from an empty one is a try that fails with EAGAIN. Bounded variants and blocking calls are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Capacity, Errno, Interface, Invocation, Seq, Sort, Word, call, choose, invoke

_MOST_ITEMS = 2
_MOST_CALLS = 4


class Item(Sort, word="item"):
    """What is put in."""


class Queue(Interface):
    """Items in the order in which they came."""

    items: Annotated[Seq[Item], Capacity(_MOST_ITEMS), Word("queue")]

    @call
    def push(self, item: Item) -> None:
        """Adds an item at the end."""
        self.items.append(item)

    @call
    def pop(self) -> Errno | Item:
        """Takes the oldest item."""
        return self.items.pop(0) if self.items else Errno.EAGAIN

    def setup(self) -> Iterable[Invocation]:
        """Pushes every item."""
        for item in self.items:
            yield invoke("push", item=item)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Takes all that there can be."""
        for _ in range(_MOST_ITEMS + _MOST_CALLS):
            yield invoke("pop")


class Stack(Queue):
    """Items of which the newest comes first."""

    items: Annotated[Seq[Item], Capacity(_MOST_ITEMS), Word("stack")]

    @call
    def pop(self) -> Errno | Item:
        """Takes the newest item."""
        return self.items.pop() if self.items else Errno.EAGAIN


class UnorderedQueue(Queue):
    """Items of which any may come next: a bag that several work on."""

    interface_name = "queue-unordered"

    @call
    def pop(self) -> Errno | Item:
        """Takes an item."""
        if not self.items:
            return Errno.EAGAIN
        item = choose(self.items)
        self.items.remove(item)
        return item

    def equivalent(self, other: Any) -> Any:
        """Whether the same items are in, in whatever order."""
        if len(self.items) != len(other.items):
            return False
        return all(self.items.count(item) == other.items.count(item) for item in self.items)
