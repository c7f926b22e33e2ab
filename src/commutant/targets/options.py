"""One grammar for the options of a target argument: each key is declared once, with what it takes and what it means.

    OPTIONS = {"cores": number(2, 255), "fs": one_of("tmpfs", "ext4")}
    read_options("scalefs:cores=16", {"cores": "16"}, OPTIONS)  ->  {"cores": 16}

A key means the same in every verb: `linux:cpus=8` is a guest with eight virtual CPUs for work, whether tests run on it
(`check`) or a workload whose locks are recorded (`locks`). Ignoring rules (`rules`) are options of every traced target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commutant.support import UsageError

CPUS_KEY = "cpus"
CPU_LIMIT = 32
"""The most virtual CPUs of a guest that do work; one more may serve them."""

_LONGEST_NUMBER = 20


@dataclass(frozen=True, slots=True)
class Option:
    """What one key takes: a word for its value in messages, and a function that reads it or raises ValueError with
    what was expected instead."""

    metavariable: str
    read: Callable[[str], Any]


def number(low: int, high: int) -> Option:
    """A decimal number from `low` to `high`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER and low <= int(text) <= high):
            raise ValueError(f"a number from {low} to {high}")
        return int(text)

    return Option("N", read)


def one_of(*words: str) -> Option:
    """One of these words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return Option("|".join(words), read)


def existing_file(what: str) -> Option:
    """The path of a file; `what` says in messages which."""

    def read(text: str) -> Path:
        path = Path(text)
        if not path.is_file():
            raise ValueError(f"{what}; there is no such file")
        return path

    return Option("PATH", read)


def text_of(allowed: re.Pattern[str], wanted: str, metavariable: str) -> Option:
    """A text that the pattern matches as a whole; `wanted` says in messages what that is."""

    def read(text: str) -> str:
        if not allowed.fullmatch(text):
            raise ValueError(wanted)
        return text

    return Option(metavariable, read)


def cpus(low: int = 1) -> Option:
    """`cpus=N`: how many virtual CPUs of a guest do work."""
    return number(low, CPU_LIMIT)


def read_options(argument: str, given: Mapping[str, str], known: Mapping[str, Option], *also: str) -> dict[str, Any]:
    """The given options with their values read; `also` is what the target takes besides, for messages.

    Raises UsageError for a key that is not known or a value that is refused.
    """
    read = {}
    for key, text in given.items():
        if key not in known:
            expected = ", ".join([*(f"{name}={option.metavariable}" for name, option in known.items()), *also])
            raise UsageError(f"target {argument!r}: unknown option {key!r}; expected {expected}")
        try:
            read[key] = known[key].read(text)
        except ValueError as error:
            raise UsageError(f"target {argument!r}: {key}={text!s:.80}: expected {error}") from None
    return read
