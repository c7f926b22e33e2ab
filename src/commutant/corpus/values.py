"""Values of test cases: what they are, and the checks of those that anybody may have written.

Checked by hand rather than by their declarations, because 30,000 tests have to be read in about a second; a test
compares what is accepted here with docs/schemas/corpus.schema.json. The limits keep a hostile file from making a huge
set-up, a file name that leaves the test's directory, or a text that plays with the terminal. For speed, the place of a
mistake is put together only when there is one, on the way out (`Malformed.within`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from commutant.documents import Part, schema_keywords

MAX_OUTCOMES = 1024
MAX_NAME_BYTES = 255
MAX_TEXT_CHARACTERS = 4096
MAX_VALUE_DEPTH = 8
MAX_ARGUMENTS = 32
MIN_INTEGER = -(1 << 63)
MAX_INTEGER = (1 << 64) - 1

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_ERRNO = re.compile(r"E[A-Z0-9]{1,30}", re.ASCII)
_SIGNAL = re.compile(r"SIG[A-Z0-9]{1,28}", re.ASCII)

Identifier = Annotated[str, Meta(pattern=f"^{_IDENTIFIER.pattern}$")]
Integer = Annotated[int, Meta(extra_json_schema={"minimum": MIN_INTEGER, "maximum": MAX_INTEGER})]
Number = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": MAX_INTEGER})]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_NAME_BYTES,
        pattern="^[^/\\u0000]+$",
        description="A name that the target picks freely: at most 255 bytes, printable, not . or ..",
        extra_json_schema={"not": {"enum": [".", ".."]}},
    ),
]


@schema_keywords(
    oneOf=[{"required": [tag]} for tag in ("errno", "signal", "sort", "time", "struct", "seq")],
    dependentRequired={"sort": ["id"], "id": ["sort"]},
)
class TaggedValue(Part, frozen=True, omit_defaults=True):
    """A value that says what it is: an object with one of these members, but that a sort has a number."""

    errno: Annotated[str, Meta(pattern=f"^{_ERRNO.pattern}$")] | UnsetType = UNSET
    signal: Annotated[str, Meta(pattern=f"^{_SIGNAL.pattern}$")] | UnsetType = UNSET
    sort: Identifier | UnsetType = UNSET
    id: Number | UnsetType = UNSET
    time: Integer | UnsetType = UNSET
    struct: Annotated[dict[Identifier, Value], Meta(max_length=MAX_ARGUMENTS)] | UnsetType = UNSET
    seq: Annotated[list[Value], Meta(max_length=MAX_OUTCOMES)] | UnsetType = UNSET


if TYPE_CHECKING:
    Value = object
    """A JSON value of "Values" in docs/reference/test-cases.md."""
else:  # tests hold plain values, and the declaration gives their schema
    Value = None | bool | Integer | Name | TaggedValue

Arguments = Annotated[Mapping[Identifier, Value], Meta(max_length=MAX_ARGUMENTS)]
"""Values by the names of a call's parameters."""


class Malformed(ValueError):
    """What in a line is not as it must be: the place within the line, what was expected and what stands there."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self._problem = problem
        self._place = place

    def within(self, place: str) -> Malformed:
        """The same mistake, seen from the object around it."""
        between = "." if self._place and not self._place.startswith("[") else ""
        return Malformed(self._problem, f"{place}{between}{self._place}")

    def __str__(self) -> str:
        return f"{self._place}: {self._problem}" if self._place else self._problem


def show(value: object) -> str:
    """A foreign value in a message: short, on one line and in plain characters."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_object(value: Any, keys: frozenset[str]) -> dict[str, Any]:
    """The object; Malformed unless it has exactly these keys."""
    if type(value) is not dict:
        raise Malformed(f"expected an object, got {show(value)}")
    if value.keys() != keys:
        missing, unknown = sorted(keys - value.keys()), sorted(value.keys() - keys)
        raise Malformed(f"the key {missing[0]!r} is missing" if missing else f"the key {show(unknown[0])} is not known")
    return value


def check_list(value: Any, low: int, high: int, place: str = "") -> list[Any]:
    """The list; Malformed unless it has this many items."""
    if type(value) is not list or not low <= len(value) <= high:
        got = f"{len(value)} items" if type(value) is list else show(value)
        wanted = f"{low}" if low == high else f"{low} to {high}"
        raise Malformed(f"expected a list of {wanted} items, got {got}", place)
    return value


def check_integer(value: Any, low: int, high: int, place: str = "") -> int:
    """The integer; Malformed unless it lies between these."""
    if type(value) is not int or not low <= value <= high:
        raise Malformed(f"expected an integer from {low} to {high}, got {show(value)}", place)
    return value


def check_identifier(value: Any, place: str = "") -> str:
    """The name of a call, a parameter or a sort; raises Malformed."""
    if type(value) is not str or not _is_identifier(value):
        raise Malformed(f"expected a name of letters, digits and underscores, got {show(value)}", place)
    return value


@lru_cache(maxsize=1024)
def _is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None


@lru_cache(maxsize=256)
def _is_errno(text: str) -> bool:
    return _ERRNO.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _is_name(text: str) -> bool:
    """Whether a text may be a value of a sort that the target names freely, such as a file name."""
    return (
        text.isprintable()
        and "/" not in text
        and text not in ("", ".", "..")
        and len(text) <= MAX_NAME_BYTES
        and len(text.encode()) <= MAX_NAME_BYTES
    )


def check_text(value: Any, place: str, high: int = MAX_TEXT_CHARACTERS) -> str:
    """The printable text; Malformed for a longer one."""
    if type(value) is not str or len(value) > high or not value.isprintable():
        raise Malformed(f"expected a printable text of at most {high} characters, got {show(value)}", place)
    return value


def check_value(value: Any, depth: int = 0) -> None:
    """Checks a value of "Values" in docs/reference/test-cases.md."""
    kind = type(value)
    if kind is int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise Malformed(f"expected an integer of 64 bits, got {show(value)}")
    elif value is None or kind is bool:
        return
    elif kind is dict and depth < MAX_VALUE_DEPTH:
        _tagged(value, depth)
    elif kind is str:
        if len(value) > MAX_NAME_BYTES or not _is_name(value):
            raise Malformed(
                f"expected a name of 1 to {MAX_NAME_BYTES} printable bytes without '/', not '.' or '..', "
                f"got {show(value)}"
            )
    else:
        raise Malformed(f"expected a value, got {show(value)}")


def _tagged(value: dict[str, Any], depth: int) -> None:
    if len(value) == 2 and "sort" in value and "id" in value:
        check_identifier(value["sort"], "sort")
        check_integer(value["id"], 0, MAX_INTEGER, "id")
        return
    tag, inner = next(iter(value.items())) if len(value) == 1 else ("", None)
    if tag == "errno":
        if type(inner) is not str or not _is_errno(inner):
            raise Malformed(f"expected the name of an error such as ENOENT, got {show(inner)}", "errno")
    elif tag == "signal":
        if type(inner) is not str or _SIGNAL.fullmatch(inner) is None:
            raise Malformed(f"expected the name of a signal such as SIGSEGV, got {show(inner)}", "signal")
    elif tag == "struct":
        check_arguments(inner, depth + 1, "struct")
    elif tag == "time":
        check_integer(inner, MIN_INTEGER, MAX_INTEGER, "time")
    elif tag == "seq":
        for item in check_list(inner, 0, MAX_OUTCOMES):
            check_value(item, depth + 1)
    else:
        raise Malformed(f"expected an errno, signal, sort, time, struct or seq, got {show(value)}")


def check_arguments(value: Any, depth: int = 0, place: str = "args") -> dict[str, Any]:
    """Checks values by name: the fields of a struct, or the arguments of a call."""
    if type(value) is not dict or len(value) > MAX_ARGUMENTS:
        raise Malformed(f"expected an object with at most {MAX_ARGUMENTS} keys, got {show(value)}", place)
    name = ""
    try:
        for name, item in value.items():
            check_identifier(name)
            check_value(item, depth)
    except Malformed as error:
        raise error.within(f"{place}.{name if _is_identifier(name) else show(name)}") from None
    return value
