"""What is made of objects that many tests share: made once for each.

Equal parts of the tests of a corpus are mostly one object (`commutant.testgen.reading`). They hold dictionaries, which
have no hash, so they are told apart by identity: for equal parts that are two objects the same is made twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Once(Generic[Made]):
    """A function of unchanging objects that calls `make` once for the same ones.

    It keeps the objects, so that no other takes the place, and with it the identity, of one.
    """

    def __init__(self, make: Callable[..., Made]) -> None:
        self._make = make
        self._known: dict[tuple[int, ...], tuple[Made, tuple[object, ...]]] = {}

    def __call__(self, *objects: object) -> Made:
        """What `make` gives, or gave, for these objects."""
        key = tuple(map(id, objects))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._make(*objects), objects
        return known[0]
