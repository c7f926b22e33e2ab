"""What was meant: the known word that is most like one that is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to stand after a message about an unknown word; empty where nothing is like it.

    >>> did_you_mean("chekc", ["check", "show"])
    "; did you mean 'check'?"
    """
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
