"""Pieces of work whose results are kept: what was done before is not done again, also by a run that was stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from commutant.support import ResultCache

W = TypeVar("W")
R = TypeVar("R")


@dataclass(frozen=True)
class KeptResults(Generic[W, R]):
    """Results of pieces of one kind in a cache, if there is one: each under a key of its own, so that equal pieces of
    other runs have it too. `decode` gives None for what `encode` did not write."""

    cache: ResultCache | None
    kind: str
    key: Callable[[W], Mapping[str, object]]
    encode: Callable[[R], bytes]
    decode: Callable[[W, bytes], R | None]

    def complete(self, pieces: Sequence[W], work: Callable[[Sequence[W], Callable[[int, R], None]], object]) -> list[R]:
        """What comes of all pieces. `work` is given those that are missing, and what it calls with the number of each
        among them and its result, which is kept at once; it is not called if none is missing."""
        results: dict[int, R] = {}
        for number, piece in enumerate(pieces):
            found = self._found(piece)
            if found is not None:
                results[number] = found
        missing = [number for number in range(len(pieces)) if number not in results]

        def take(place: int, result: R) -> None:
            number = missing[place]
            results[number] = result
            if self.cache is not None:
                self.cache.put(self.kind, self.key(pieces[number]), self.encode(result))

        if missing:
            work([pieces[number] for number in missing], take)
        return [results[number] for number in range(len(pieces))]

    def _found(self, piece: W) -> R | None:
        if self.cache is None:
            return None
        kept = self.cache.get(self.kind, self.key(piece))
        return None if kept is None else self.decode(piece, kept)
