"""Interfaces that the language was not made for, each a few lines: what a user of a library might write first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Annotated, Any

from commutant.lang import (
    Capacity,
    Errno,
    Interface,
    Invocation,
    Map,
    Range,
    Seq,
    Set,
    Sort,
    Struct,
    call,
    choose,
    invoke,
    unused,
    well_formed,
)


class Key(Sort):
    """A key, picked by the test."""


class Item(Sort):
    """What is put into containers."""


class Thread(Sort):
    """Who holds a lock."""


class Block(Sort, opaque=True):
    """A handle of an allocator."""


Amount = Annotated[int, Range(0, 3)]
"""A small number."""


class Queue(Interface):
    """First in, first out, without a bound."""

    items: Annotated[Seq[Item], Capacity(2)]

    @call
    def put(self, item: Item) -> None:
        self.items.append(item)

    @call
    def get(self) -> Errno | Item:
        return self.items.pop(0) if self.items else Errno.EAGAIN


class BoundedQueue(Interface):
    """First in, first out, of at most two."""

    items: Annotated[Seq[Item], Capacity(2)]

    @call
    def put(self, item: Item) -> Errno | int:
        if len(self.items) == 2:
            return Errno.EAGAIN
        self.items.append(item)
        return 0

    @call
    def get(self) -> Errno | Item:
        return self.items.pop(0) if self.items else Errno.EAGAIN

    @call
    def full(self) -> bool:
        return len(self.items) == 2


class Bag(Interface):
    """How often each item is in."""

    counts: Map[Item, Annotated[int, Range(1, 3)]]

    @call
    def put(self, item: Item) -> None:
        self.counts[item] = self.counts.get(item, 0) + 1

    @call
    def take(self, item: Item) -> Errno | int:
        if item not in self.counts:
            return Errno.ENOENT
        if self.counts[item] == 1:
            del self.counts[item]
        else:
            self.counts[item] -= 1
        return 0

    @call
    def count(self, item: Item) -> int:
        return self.counts.get(item, 0)


class ReferenceCount(Interface):
    """An object that goes with its last reference."""

    references: Amount

    @call
    def acquire(self) -> Errno | int:
        if self.references == 0:
            return Errno.ENOENT
        self.references += 1
        return 0

    @call
    def release(self) -> Errno | bool:
        if self.references == 0:
            return Errno.ENOENT
        self.references -= 1
        return self.references == 0

    @call
    def create(self) -> None:
        if self.references == 0:
            self.references = 1


class Bank(Interface):
    """Accounts that are never overdrawn."""

    accounts: Map[Key, Amount]

    @call
    def open(self, account: Key) -> Errno | int:
        if account in self.accounts:
            return Errno.EEXIST
        self.accounts[account] = 0
        return 0

    @call
    def deposit(self, account: Key, amount: Amount) -> Errno | int:
        if account not in self.accounts:
            return Errno.ENOENT
        self.accounts[account] += amount
        return 0

    @call
    def withdraw(self, account: Key, amount: Amount) -> Errno | int:
        if account not in self.accounts:
            return Errno.ENOENT
        if self.accounts[account] < amount:
            return Errno.ERANGE
        self.accounts[account] -= amount
        return 0

    @call
    def transfer(self, source: Key, target: Key, amount: Amount) -> Errno | int:
        if source not in self.accounts or target not in self.accounts:
            return Errno.ENOENT
        if self.accounts[source] < amount:
            return Errno.ERANGE
        self.accounts[source] -= amount
        self.accounts[target] += amount
        return 0


class LruCache(Interface):
    """Two keys, the one used last after the other; a third drives out the first."""

    order: Annotated[Seq[Key], Capacity(2)]

    @well_formed
    def nothing_repeats(self) -> bool:
        return all(self.order[i] != self.order[j] for i in range(len(self.order)) for j in range(i))

    @call
    def use(self, key: Key) -> bool:
        hit = any(key == other for other in self.order)
        rest = [other for other in self.order if other != key]
        if len(rest) == 2:
            rest = rest[1:]
        self.order = Seq([*rest, key])
        return hit

    @call
    def has(self, key: Key) -> bool:
        return any(key == other for other in self.order)


class TryLock(Interface):
    """Locks that are taken or not, by owner."""

    owners: Map[Key, Thread]

    @call
    def acquire(self, lock: Key, thread: Thread) -> bool:
        if lock in self.owners:
            return False
        self.owners[lock] = thread
        return True

    @call
    def release(self, lock: Key, thread: Thread) -> Errno | int:
        if lock not in self.owners or self.owners[lock] != thread:
            return Errno.EPERM
        del self.owners[lock]
        return 0

    @call
    def is_held(self, lock: Key) -> bool:
        return lock in self.owners


class Store(Interface):
    """A key-value store with compare-and-swap."""

    entries: Map[Key, Amount]

    @call
    def put(self, key: Key, value: Amount) -> None:
        self.entries[key] = value

    @call
    def get(self, key: Key) -> Errno | int:
        return self.entries.get(key, Errno.ENOENT)

    @call
    def swap(self, key: Key, old: Amount, new: Amount) -> Errno | bool:
        if key not in self.entries:
            return Errno.ENOENT
        if self.entries[key] != old:
            return False
        self.entries[key] = new
        return True

    @call
    def delete(self, key: Key) -> Errno | int:
        if key not in self.entries:
            return Errno.ENOENT
        del self.entries[key]
        return 0


class Allocator(Interface):
    """Blocks by handle."""

    blocks: Map[Block, Amount]

    @call
    def alloc(self, size: Amount) -> Block:
        block = unused(Block)
        self.blocks[block] = size
        return block

    @call
    def free(self, block: Block) -> Errno | int:
        if block not in self.blocks:
            return Errno.EINVAL
        del self.blocks[block]
        return 0

    @call
    def resize(self, block: Block, size: Amount) -> Errno | int:
        if block not in self.blocks:
            return Errno.EINVAL
        self.blocks[block] = size
        return 0

    @call
    def size(self, block: Block) -> Errno | int:
        return self.blocks.get(block, Errno.EINVAL)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        for block in self.blocks:
            yield invoke("size", block=block)


class Meeting(Struct):
    """From `start` to before `end`."""

    start: Amount
    end: Annotated[int, Range(1, 4)]


class Calendar(Interface):
    """Meetings that do not meet."""

    meetings: Annotated[Seq[Meeting], Capacity(2)]

    @well_formed
    def meetings_do_not_meet(self) -> bool:
        if any(one.start >= one.end for one in self.meetings):
            return False
        return len(self.meetings) < 2 or self.meetings[0].end <= self.meetings[1].start

    @call
    def book(self, start: Amount, end: Annotated[int, Range(1, 4)]) -> Errno | int:
        if start >= end:
            return Errno.EINVAL
        if any(one.start < end and start < one.end for one in self.meetings):
            return Errno.EBUSY
        place = len([one for one in self.meetings if one.start < start])
        self.meetings.insert(place, Meeting(start=start, end=end))
        return 0

    @call
    def busy(self, time: Amount) -> bool:
        return any(one.start <= time and time < one.end for one in self.meetings)


class Register(Interface):
    """Consensus by a register: the first proposal wins, and all get it."""

    is_decided: bool
    decision: Item

    @call
    def propose(self, value: Item) -> Item:
        if not self.is_decided:
            self.is_decided = True
            self.decision = value
        return self.decision

    @call
    def learn(self) -> Errno | Item:
        return self.decision if self.is_decided else Errno.EAGAIN

    def equivalent(self, other: Any) -> Any:
        if not self.is_decided and not other.is_decided:
            return True
        return self.is_decided and other.is_decided and self.decision == other.decision


class Consensus(Interface):
    """Consensus by slot: each decided once."""

    slots: Map[Key, Item]

    @call
    def propose(self, slot: Key, value: Item) -> Item:
        if slot not in self.slots:
            self.slots[slot] = value
        return self.slots[slot]

    @call
    def read(self, slot: Key) -> Errno | Item:
        return self.slots.get(slot, Errno.EAGAIN)


class Cursor(Interface):
    """One offset: the smallest interface of which a call can change something, and not."""

    offset: Amount

    @call
    def seek(self, to: Amount) -> None:
        self.offset = to

    @call
    def look(self) -> int:
        return self.offset


class Tickets(Interface):
    """Any of four numbers that no one has."""

    drawn: Map[Amount, bool]

    @call
    def draw(self) -> int:
        number = choose(Annotated[int, Range(0, 3)], lambda one: one not in self.drawn)
        self.drawn[number] = True
        return number

    @call
    def give_back(self, number: Amount) -> Errno | int:
        if number not in self.drawn:
            return Errno.EINVAL
        del self.drawn[number]
        return 0


class Mode(Enum):
    """How a lock may be held."""

    FREE = auto()
    SHARED = auto()
    EXCLUSIVE = auto()


class SharedLock(Interface):
    """A lock that several readers hold, or one writer."""

    mode: Mode
    readers: Set[Thread]

    @well_formed
    def readers_share(self) -> bool:
        return bool(self.readers) == (self.mode == Mode.SHARED)

    @call
    def read_lock(self, thread: Thread) -> Errno | int:
        if self.mode == Mode.EXCLUSIVE:
            return Errno.EBUSY
        self.mode = Mode.SHARED
        self.readers.add(thread)
        return 0

    @call
    def write_lock(self) -> Errno | int:
        if self.mode != Mode.FREE:
            return Errno.EBUSY
        self.mode = Mode.EXCLUSIVE
        return 0

    @call
    def unlock(self, thread: Thread) -> Mode:
        before = self.mode
        if before == Mode.EXCLUSIVE:
            self.mode = Mode.FREE
        elif before == Mode.SHARED:
            self.readers.discard(thread)
            if not self.readers:
                self.mode = Mode.FREE
        return before


class Owned(Interface):
    """A lock with an owner, or none."""

    owner: Thread | None

    @call
    def acquire(self, thread: Thread) -> bool:
        if self.owner is None:
            self.owner = thread
            return True
        return False

    @call
    def release(self, thread: Thread) -> Errno | int:
        if self.owner != thread:
            return Errno.EPERM
        self.owner = None
        return 0


class BoundedStore(Interface):
    """A set of keys of which there are at most two."""

    keys: Set[Key]

    @well_formed
    def there_are_at_most_two(self) -> bool:
        return len(self.keys) <= 2

    @call
    def put(self, key: Key) -> Errno | bool:
        if key in self.keys:
            return False
        if len(self.keys) >= 2:
            return Errno.ENOSPC
        self.keys.add(key)
        return True

    @call
    def delete(self, key: Key) -> bool:
        there = key in self.keys
        self.keys.discard(key)
        return there

    @call
    def count(self) -> int:
        return len(self.keys)

    @call
    def any(self) -> Errno | Key:
        return choose(self.keys) if self.keys else Errno.ENOENT


class Snapshots(Interface):
    """A set of keys, and a copy of it as it once was."""

    now: Set[Key]
    then: Map[Thread, Set[Key]]

    @call
    def add(self, key: Key) -> None:
        self.now.add(key)

    @call
    def save(self, name: Thread) -> None:
        self.then[name] = self.now.copy()

    @call
    def was_there(self, name: Thread, key: Key) -> Errno | bool:
        return key in self.then[name] if name in self.then else Errno.ENOENT


class Place(Sort, ordered=True):
    """A key with an order."""


class Intervals(Interface):
    """Numbers from a first to a last one, by order."""

    first: Place
    last: Place

    @call
    def widen(self, to: Place) -> bool:
        if to < self.first:
            self.first = to
            return True
        if to > self.last:
            self.last = to
            return True
        return False

    @call
    def holds(self, place: Place) -> bool:
        return self.first <= place and place <= self.last


class Wheel(Interface):
    """A counter of which callers see the slot and the lap."""

    ticks: Annotated[int, Range(0, 7)]

    @call
    def tick(self, by: Amount) -> None:
        self.ticks += by

    @call
    def slot(self) -> int:
        return self.ticks % 4

    @call
    def lap(self) -> int:
        return self.ticks // 4

    @call
    def is_odd(self) -> bool:
        return self.ticks & 1 == 1


class Ring(Interface):
    """Two places that are written in turn, by a number that is unknown."""

    places: tuple[Item, Item]
    turn: Annotated[int, Range(0, 1)]

    @call
    def write(self, item: Item) -> None:
        places = Seq(self.places)
        places[self.turn] = item
        self.places = (places[0], places[1])
        self.turn = 1 - self.turn

    @call
    def read(self, turn: Annotated[int, Range(0, 1)]) -> Item:
        return Seq(self.places)[turn]


class Note(Struct):
    """Something said under a key."""

    key: Key
    item: Item


class Journal(Interface):
    """Notes, the newest first: a new one moves all others."""

    notes: Annotated[Seq[Note], Capacity(2)]

    @call
    def write(self, key: Key, item: Item) -> None:
        self.notes.insert(0, Note(key=key, item=item))

    @call
    def place_of(self, key: Key, item: Item) -> int:
        for place, note in enumerate(self.notes):
            if note.key == key and note.item == item:
                return place
        return -1

    @call
    def strike(self) -> bool:
        if self.notes:
            self.notes.pop(0)
            return True
        return False


MODELS: tuple[type[Interface], ...] = (
    Queue,
    BoundedQueue,
    Bag,
    ReferenceCount,
    Bank,
    LruCache,
    TryLock,
    Store,
    Allocator,
    Calendar,
    Register,
    Consensus,
    Cursor,
    Tickets,
    SharedLock,
    Owned,
    BoundedStore,
    Snapshots,
    Intervals,
    Wheel,
    Ring,
    Journal,
)
