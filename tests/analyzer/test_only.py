"""`Only`: a flag of the state that is unknown in sets with certain calls, and has its value in all others."""

from __future__ import annotations

from typing import Annotated

from commutant.analyzer import analyze
from commutant.lang import Interface, Map, Only, Sort, Struct, call
from commutant.testgen import generate


class Key(Sort):
    """A key."""


class Entry(Struct):
    """A locked or an open entry."""

    locked: Annotated[bool, Only(False, unless=("lock",))]


class Locks(Interface):
    """Entries that one call locks."""

    entries: Map[Key, Entry]

    @call
    def lock(self, key: Key) -> bool:
        """Locks an entry."""
        if key in self.entries:
            self.entries[key].locked = True
            return True
        return False

    @call
    def look(self, key: Key) -> int:
        """Whether an entry is there, and whether it is locked."""
        if key not in self.entries:
            return 0
        return 2 if self.entries[key].locked else 1

    @call
    def put(self, key: Key) -> None:
        """Adds an open entry."""
        self.entries[key] = Entry(locked=False)

    def setup(self):  # type: ignore[no-untyped-def]
        """Puts and locks what is there."""
        from commutant.lang import invoke

        for key, entry in self.entries.items():
            yield invoke("put", key=key)
            if entry.locked:
                yield invoke("lock", key=key)


def test_paths_through_the_other_value_are_in_sets_with_the_call_alone() -> None:
    paths = {one.calls: one.paths for one in analyze(Locks).sets}
    assert paths["look", "look"] == 4 + 2, "two keys, there or not, and one key"
    assert paths["lock", "look"] > paths["look", "look"]


def test_the_order_in_which_sets_are_explored_does_not_matter() -> None:
    alone = analyze(Locks, ["look", "look"]).sets[0].paths
    analyze(Locks, ["lock", "look"])
    assert analyze(Locks, ["look", "look"]).sets[0].paths == alone


def test_tests_have_the_value() -> None:
    text = " ".join(str(test) for test in generate(Locks, ["look", "put"]).tests)
    assert "'lock'" not in text
    assert any("'lock'" in str(step) for test in generate(Locks, ["look", "lock"]).tests for step in [test.setup])


class Doors(Interface):
    """Doors, of which two alone are opened without force."""

    open_doors: Map[Key, Entry]

    @call
    def push(self, key: Key, hard: Annotated[bool, Only(True, unless=("look",))]) -> int:
        """Opens a door; a locked one needs force."""
        if key not in self.open_doors and hard:
            self.open_doors[key] = Entry(locked=False)
            return 1
        return 0

    @call
    def look(self, key: Key) -> bool:
        """Whether a door is open."""
        return key in self.open_doors


def test_an_argument_has_its_value_in_sets_without_the_call() -> None:
    paths = {one.calls: one.paths for one in analyze(Doors).sets}
    assert paths["push", "push"] == 4 + 2, "two keys, there or not, and one key"
    assert paths["push", "look"] > paths["push", "push"]
