"""One object for equal JSON objects, so that 100,000 tests take a few hundred MiB of memory and not gigabytes.

Tests say the same small things over and over: `{"errno": "ENOENT"}`, the arguments of a call, a descriptor as an
observation lists it. No one changes them once they are read.
"""

from __future__ import annotations

from typing import Any

MAX_SHARED_OBJECTS = 1 << 18
"""Beyond this many distinct ones nothing is kept for sharing, whatever a file holds."""


class EqualObjects:
    """A hook for `json` (`object_pairs_hook`): makes one object of equal ones, within one file."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], dict[str, Any]] = {}

    def one(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object with these keys and values: the one made before, if there is one."""
        if len(pairs) == 1 and pairs[0][0] == "seq" and type(pairs[0][1]) is list:
            key = ("seq", *map(_identity, pairs[0][1]))
        else:
            key = tuple([(name, _identity(value)) for name, value in pairs])
        try:
            known = self._known.get(key)
        except TypeError:  # a list in it: as long as a test, and hardly ever equal to another
            return dict(pairs)
        if known is None:
            known = dict(pairs)
            if len(self._known) < MAX_SHARED_OBJECTS:
                self._known[key] = known
        return known


def _identity(value: Any) -> tuple[object, object]:
    """What distinguishes JSON values. Objects are distinguished by identity: all that a key names are kept alive by the
    object under it.
    """
    kind = type(value)
    return kind, id(value) if kind is dict else value
