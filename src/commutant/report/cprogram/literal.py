"""Text in C: string literals and comments that hold any characters and still mean what they say.

The compiler's warnings count too (`-Wall -Wextra -Werror`): trigraphs, comment marks within comments and characters
that turn the direction of writing never reach it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from commutant.support import safe_text

_PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_COMMENT_WIDTH = 112
_ASCII_FORMS = {"≠": "!=", "≤": "<=", "≥": ">=", "∥": "||", "→": "->", "…": "..."}
_SPECIAL = re.compile(r'[^ -~]|["\\?]')


def string_literal(text: str) -> str:
    """The text as a C string literal of its UTF-8 bytes."""
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def comment_lines(text: str) -> list[str]:
    """The text as lines of the inside of a `/* */` comment, each after ` * `."""
    shown = safe_text(text)
    if not shown.isascii():
        for character, form in _ASCII_FORMS.items():
            shown = shown.replace(character, form)
        shown = shown.encode("ascii", "backslashreplace").decode()
    shown = shown.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
    return [f" * {line}".rstrip() + "\n" for line in _wrapped(shown)]


def _wrapped(text: str) -> Iterator[str]:
    """The text in lines of limited width, broken at spaces where there are some."""
    while len(text) > _COMMENT_WIDTH:
        end = text.rfind(" ", 1, _COMMENT_WIDTH + 1)
        yield text[: end if end > 0 else _COMMENT_WIDTH]
        text = text[end + 1 if end > 0 else _COMMENT_WIDTH :]
    yield text


def file_name(name: str) -> str:
    """The name that a program gives a file: the test's own where that is plain, else one made from its hash.

    Names in tests are values of a sort that anyone who runs the test names freely; only which are equal matters.
    """
    if _PLAIN_FILE_NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"name-{digest[:12]}"


def _escaped(special: re.Match[str]) -> str:
    return "".join(map(_literal_byte, special[0].encode("utf-8", "backslashreplace")))


def _literal_byte(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':
        return "\\" + character
    if character == "\n":
        return "\\n"
    return character if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
