"""A change of one place, as far as it decides who shares a line: where its bytes go, or who no longer touches them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from commutant.support import UsageError

LONGEST_PLACE = 200


class Way(Enum):
    """What is done to a place; the value is the flag that asks for it."""

    MOVE = "move"
    SPREAD = "spread"
    DROP_WRITE = "drop-write"
    DROP_READ = "drop-read"
    DROP = "drop"
    SPLIT = "split"

    @property
    def words(self) -> str:
        """What one does, with `{}` for the place."""
        return _WORDS[self]


_WORDS = {
    Way.MOVE: "move {} to a line of its own",
    Way.SPREAD: "spread the entries of {}, each on a line of its own",
    Way.DROP_WRITE: "do not write {} where that changes nothing",
    Way.DROP_READ: "do not read {} where it is not needed",
    Way.DROP: "do not use {}",
    Way.SPLIT: "split {} per core",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: a way, and the member, part or variable that it is made to (`files_struct.fd_array`)."""

    way: Way
    place: str

    def __str__(self) -> str:
        """The change in words."""
        return self.way.words.format(self.place)


def read_change(way: Way, text: str) -> Change:
    """The change that a flag asks for; raises UsageError if the text cannot name a place."""
    place = text.strip().removeprefix("struct ").replace("[]", "")
    if way is not Way.DROP and "." not in place:
        raise UsageError(f"--{way.value} {text!r:.80}: expected TYPE.FIELD, such as files_struct.fd_array")
    if not place or len(place) > LONGEST_PLACE or any(not part for part in place.split(".")):
        raise UsageError(f"--{way.value} {text!r:.80}: expected TYPE.FIELD or a variable, such as init_ucounts")
    return Change(way, place)
