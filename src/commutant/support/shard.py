"""A part of work that several machines share: every nth of its pieces, by number alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from commutant.support.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shard:
    """The shard with this number, from 1, of `count`: of the pieces, every `count`th from its own on."""

    number: int
    count: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """`2/3`: the second of three; raises UsageError.

        >>> Shard.read("2/3").of("abcde")
        'be'
        """
        number, _, count = text.partition("/")
        if not (number.isascii() and number.isdigit() and count.isascii() and count.isdigit() and len(text) < 20):
            raise UsageError(f"expected a shard as 1/3, the first of three, got {text!r:.40}")
        shard = cls(int(number), int(count))
        if not 1 <= shard.number <= shard.count:
            raise UsageError(f"expected a shard from 1/{count} to {count}/{count}, got {text!r}")
        return shard

    def __str__(self) -> str:
        """As `read` takes it."""
        return f"{self.number}/{self.count}"

    def of(self, pieces: Sequence[T]) -> Sequence[T]:
        """The pieces of this shard, in their order."""
        return pieces[self.number - 1 :: self.count]

    def require_piece(self, piece_count: int, what: str) -> None:
        """Raises UsageError if there are fewer pieces than shards: one would have nothing to do."""
        if self.count > piece_count:
            raise UsageError(f"shard {self} of {what}: expected at most as many shards, each has one at least")
