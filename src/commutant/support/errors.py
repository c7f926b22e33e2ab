"""Errors that a user can cause or meet: one line each, with the exit code of the command line.

A message says what was expected, what came, where, and what to do. Anything else that escapes is a defect of ours.
"""

from __future__ import annotations


class CommutantError(Exception):
    """Base of all errors shown to a user as one line; `exit_code` is what the command line returns."""

    exit_code = 3


def text_of(error: BaseException) -> str:
    """What an exception of anybody's code says, on one line; some cannot even be asked."""
    try:
        return " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - anybody's code
        return "(its text cannot be made)"


class UsageError(CommutantError):
    """Bad use or bad input: an unknown name, a damaged file, a model that cannot be analysed (exit code 2)."""

    exit_code = 2
    is_placed = False
    """Whether it says in which line of a model it is."""


class RunError(CommutantError):
    """The run itself failed: an emulator that died, a guest that panicked, a full disk (exit code 3)."""

    exit_code = 3
