"""Names of another length than a corpus has: `n0` becomes a name of thirty letters, everywhere in a test and alike.

A kernel may treat long names otherwise: Linux keeps short ones within the directory entry, on another line than the end
of longer ones. The corpus and the ids of its tests stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from commutant.targets.options import Option, number

_SHORTEST, _LONGEST = 4, 255
"""Longer than any name of a corpus, and as long as a directory takes."""

_NUMBER = number(_SHORTEST, _LONGEST)


def _read(text: str) -> int:
    if text == "long":
        return _LONGEST
    try:
        return int(_NUMBER.read(text))
    except ValueError:
        raise ValueError(f"`long` ({_LONGEST} letters), or a number from {_SHORTEST} to {_LONGEST}") from None


LENGTH = Option("long|N", _read)
"""How long the names of tests are."""

_NAME = re.compile(r'"(n[0-9]{1,3})"')
_LETTERS = "-and-on-with-letters"


def renamed(length: int) -> Callable[[str], str]:
    """A function that gives all names in a part of a test, as JSON text, that length.

    >>> renamed(12)('{"name":"n0"}')
    '{"name":"n0-and-on-wi"}'
    """
    letters = _LETTERS * (length // len(_LETTERS) + 1)
    return lambda text: _NAME.sub(lambda found: f'"{(found[1] + letters)[:length]}"', text)
