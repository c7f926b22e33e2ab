"""Text that is safe to show: whatever a corpus or a kernel calls things, a reader sees it and nothing else happens.

Names come from files that others may have written. A control character could move a terminal's cursor, a line separator
could break a line of a report, a bidirectional override could show a name backwards, and a name of 10,000 characters
could drown a page. Such characters are shown as escapes, and long text is cut with its length said.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

LONGEST_TEXT = 400
"""Characters of one name, class or argument that a report shows."""

_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@lru_cache(maxsize=1 << 14)
def safe_text(text: str, limit: int = LONGEST_TEXT) -> str:
    """The text on one line, invisible and unassigned characters as escapes, cut after `limit` characters."""
    shown = text if len(text) <= limit else text[:limit]
    if not shown.isprintable():
        shown = shown.translate(_SAFE_FORMS)
    return shown if len(text) <= limit else f"{shown}… ({len(text):,} characters)"


def safe_lines(text: str, limit: int = LONGEST_TEXT) -> str:
    """The same for text that may have lines of its own: line feeds stay, every line is made safe."""
    return "\n".join(safe_text(line, limit) for line in text.split("\n"))


def percent(fraction: float) -> str:
    """A fraction in whole per cent, in which only nothing is 0 % and only everything is 100 %."""
    if 0 < fraction < 0.01:
        return "<1 %"
    if 0.99 < fraction < 1:
        return ">99 %"
    return f"{fraction:.0%}".replace("%", " %")


class _SafeForms(dict[int, str]):
    """How characters are shown, by their code; filled as they are met."""

    def __missing__(self, code: int) -> str:
        if unicodedata.category(chr(code)) not in _UNSAFE_CATEGORIES:
            form = chr(code)
        elif code < 0x100:
            form = f"\\x{code:02x}"
        else:
            form = f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        self[code] = form
        return form


_SAFE_FORMS = _SafeForms({ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"})
