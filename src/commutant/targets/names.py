"""Names of another length than a corpus has: `n0` becomes a name of thirty letters, everywhere in a test and alike.

A kernel may treat long names otherwise: Linux keeps short ones within the directory entry, on another line than the end
of longer ones. The corpus and the ids of its tests stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

LENGTHS = range(4, 256)
"""What a name's length may be: longer than any of a corpus, and what a directory takes."""

_NAME = re.compile(r'"(n[0-9]{1,3})"')
_LETTERS = "-and-on-with-letters"


def renamed(length: int) -> Callable[[str], str]:
    """A function that gives all names in a part of a test, as JSON text, that length.

    >>> renamed(12)('{"name":"n0"}')
    '{"name":"n0-and-on-wi"}'
    """
    letters = _LETTERS * (length // len(_LETTERS) + 1)
    return lambda text: _NAME.sub(lambda found: f'"{(found[1] + letters)[:length]}"', text)
