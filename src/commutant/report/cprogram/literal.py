"""Text in C: string literals and comments that hold any characters and still mean what they say.

The compiler's warnings count too (`-Wall -Wextra -Werror`): trigraphs, comment marks within comments and characters
that turn the direction of writing never reach it.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from functools import lru_cache

from commutant.report.text import safe_text

_PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_COMMENT_WIDTH = 112
_ASCII_FORMS = str.maketrans({"≠": "!=", "≤": "<=", "≥": ">=", "∥": "||", "→": "->", "…": "..."})


@lru_cache(maxsize=1 << 14)
def string_literal(text: str) -> str:
    """The text as a C string literal of its UTF-8 bytes."""
    return '"' + "".join(_literal_byte(byte) for byte in text.encode("utf-8", "backslashreplace")) + '"'


@lru_cache(maxsize=1 << 14)
def comment_lines(text: str) -> tuple[str, ...]:
    """The text as lines of the inside of a `/* */` comment, each behind ` * `."""
    shown = safe_text(text)
    if not shown.isascii():
        shown = shown.translate(_ASCII_FORMS).encode("ascii", "backslashreplace").decode()
    shown = shown.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
    fits = len(shown) <= _COMMENT_WIDTH
    lines = [shown] if fits else textwrap.wrap(shown, _COMMENT_WIDTH, break_long_words=True)
    return tuple(f" * {line}".rstrip() + "\n" for line in lines)


def file_name(name: str) -> str:
    """The name that a program gives a file: the test's own where that is plain, else one made from its hash.

    Names in tests are values of a sort that whoever runs the test names freely; only which are equal matters.
    """
    if _PLAIN_FILE_NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"name-{digest[:12]}"


def _literal_byte(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':
        return "\\" + character
    if character == "\n":
        return "\\n"
    return character if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
