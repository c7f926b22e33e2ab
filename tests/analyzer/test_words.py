"""Conditions in a model's own words: what it calls its sorts and what it keeps."""

from __future__ import annotations

from typing import Annotated

import pytest

from commutant.analyzer import analyze
from commutant.lang import Capacity, Errno, Interface, Map, Seq, Set, Sort, Word, call, load_interface


class Door(Sort, word="door"):
    """Where people wait."""


class Guest(Sort, word="guest"):
    """Who waits."""


class Room(Sort, opaque=True, word="room"):
    """Where a door leads, which others decide."""


class Hotel(Interface):
    """Lines of guests, doors that lead to rooms."""

    line: Annotated[Seq[Guest], Capacity(2), Word("line")]
    keys: Annotated[Set[Door], Word("key board")]
    lines: Map[Door, Annotated[Seq[Guest], Capacity(2), Word("line")]]
    doors: Map[Door, Room]

    @call
    def come(self, guest: Guest) -> None:
        self.line.append(guest)

    @call
    def go(self) -> Errno | Guest:
        return self.line.pop(0) if self.line else Errno.EAGAIN

    @call
    def hang(self, door: Door) -> bool:
        if len(self.keys) >= 2:
            return False
        self.keys.add(door)
        return True

    @call
    def count(self) -> int:
        return len(self.keys)

    @call
    def next_at(self, door: Door) -> Errno | Guest:
        if door not in self.lines:
            return Errno.ENOENT
        return self.lines[door].pop(0) if self.lines[door] else Errno.EAGAIN

    @call
    def enter(self, door: Door, other: Door) -> Errno | bool:
        if door not in self.doors or other not in self.doors:
            return Errno.ENOENT
        if self.doors[door] == self.doors[other]:
            self.doors[door] = self.doors[other]
            return True
        del self.doors[door]
        return False


def said(*calls: str) -> str:
    """All conditions of a pair."""
    return "\n".join(analyze(Hotel, calls).sets[0].conditions)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (("come", "come"), "guest.0 and guest.1 are the same guest"),
        (("come", "go"), "the line is not empty"),
        (("go", "go"), "the line is empty"),
        (("go", "go"), "line[0] and line[1] are the same guest; the line holds more than 1"),
        (("hang", "count"), "the key board holds more than 1"),
        (("next_at", "next_at"), "door.0 and door.1 are different doors"),
        (("next_at", "next_at"), "the line lines[door.0] is empty"),
        (("enter", "enter"), "are two doors of one room"),
    ],
)
def test_conditions_are_said_in_the_words_of_the_model(calls: tuple[str, str], expected: str) -> None:
    assert expected in said(*calls)


def test_what_is_full_is_said_whichever_way_the_engine_asked() -> None:
    """A length is compared from either side; each way says the same of the same numbers."""
    text = said("come", "come") + said("go", "come") + said("hang", "hang")
    assert "len(" not in text and "holds at most 0" not in text and "holds more than 0" not in text


def test_models_that_ship_have_words() -> None:
    text = "\n".join(
        sentence
        for name in ("queue", "map", "stack")
        for one in analyze(load_interface(name)).sets
        for sentence in one.conditions
    )
    for words in ("the queue is empty", "the stack is empty", "are the same item", "are different keys"):
        assert words in text
    assert "len(" not in text
