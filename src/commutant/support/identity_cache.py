"""Caches by identity: what is made of objects that many tests share is made once for each object.

Equal parts of the tests of a corpus are mostly one object (`commutant.corpus.reading`). They hold dictionaries, which
have no hash, so they are distinguished by identity: for equal parts that are two objects the same is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class IdentityCache(Generic[Made]):
    """A function of unchanging objects that calls `make` once for the same ones.

    It keeps its arguments alive, so that no identity is reused. With `limit`, it is cleared after this many entries:
    for objects that no one else keeps.
    """

    def __init__(self, make: Callable[..., Made], limit: int | None = None) -> None:
        self._make = make
        self._limit = limit
        self._known: dict[tuple[int, ...], tuple[Made, tuple[object, ...]]] = {}

    def __call__(self, *objects: object) -> Made:
        """What `make` gives, or gave, for these objects."""
        key = tuple(map(id, objects))
        known = self._known.get(key)
        if known is None:
            if len(self._known) == self._limit:
                self._known.clear()
            known = self._known[key] = self._make(*objects), objects
        return known[0]


def map_unique(make: Callable[..., Made], *columns: Sequence[Any]) -> list[Made]:
    """What `make` gives for each row of the columns; called once for rows of the same objects, in their order.

    For many rows this takes a quarter of the time of calling an `IdentityCache` for each.
    """
    identities = [list(map(id, column)) for column in columns]
    keys: list[Any] = identities[0] if len(columns) == 1 else list(zip(*identities, strict=True))
    rows = dict(zip(keys, zip(*columns, strict=True), strict=True))
    made = {key: make(*row) for key, row in rows.items()}
    return [made[key] for key in keys]
