"""A change of one place, as far as it decides who shares a line: where its bytes go, or who no longer touches them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from commutant.remedy.places import path_of, places_of
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
    PART = "part"
    DROP_PREFETCH = "drop-prefetch"
    DIVIDE = "divide"

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
    Way.PART: "move {} together to a line of their own",
    Way.DROP_PREFETCH: "do not prefetch {} for writing",
    Way.DIVIDE: "divide the lock {}, with all that is touched under it",
}


_OF_VARIABLES = (Way.DROP, Way.DROP_PREFETCH, Way.SPREAD, Way.DIVIDE)
"""What may be done to a variable as a whole."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: a way, and the member, part or variable that it is made to (`files_struct.fd_array`); where a line is
    parted, the members of one type that leave it, with commas between them; where a lock is divided, the lock."""

    way: Way
    place: str

    def __str__(self) -> str:
        """The change in words."""
        if self.way is not Way.PART:
            return self.way.words.format(self.place)
        type_ = path_of(self.places[0])[0]
        names = [place.removeprefix(f"{type_}.") for place in self.places]
        named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        return self.way.words.format(f"{named} of {type_}")

    @property
    def places(self) -> tuple[str, ...]:
        """The places that it is made to: one, or those that leave a line together."""
        return tuple(places_of(self.place)) if self.way is Way.PART else (self.place,)


def read_change(way: Way, text: str) -> Change:
    """The change that a flag asks for; raises UsageError if the text cannot name a place."""
    if way is not Way.PART:
        return Change(way, _place(way, text))
    places = [_place(way, part) for part in places_of(text)]
    types = sorted({path_of(place)[0] for place in places})
    if len(types) > 1:
        raise UsageError(
            f"--{way.value} {text!r:.80}: lies in {len(types)} types ({', '.join(types)}); expected fields of one "
            "type, such as inode.i_rwsem,inode.i_lock"
        )
    if len(set(places)) < 2:
        raise UsageError(
            f"--{way.value} {text!r:.80}: expected two fields or more of one type; one alone moves by --move"
        )
    return Change(way, ",".join(dict.fromkeys(places)))


def _place(way: Way, text: str) -> str:
    """A place as a flag names it."""
    place = text.strip().removeprefix("struct ").replace("[]", "")
    if way not in _OF_VARIABLES and len(path_of(place)) < 2:
        raise UsageError(f"--{way.value} {text!r:.80}: expected TYPE.FIELD, such as files_struct.fd_array")
    if not place or len(place) > LONGEST_PLACE or any(not part for part in path_of(place)):
        raise UsageError(f"--{way.value} {text!r:.80}: expected TYPE.FIELD or a variable, such as init_ucounts")
    return place
