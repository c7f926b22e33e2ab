"""Counts in words: `1 test` and `2 tests`, wherever text says how many there are."""

from __future__ import annotations


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """`1 test`, `2 tests`, `1,234 tests`; `nouns` is a plural that is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
