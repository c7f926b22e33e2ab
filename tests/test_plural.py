"""Counts in words, and that they are used: a text that writes a noun after a number by itself is wrong for one."""

from __future__ import annotations

import re
from pathlib import Path

import commutant
from commutant.support.plural import plural

NOUNS = "acquire|call|class|difference|finding|instruction|lock|path|sequence|step|test|thread|trial"
ALWAYS_PLURAL = re.compile(rf"\{{[^{{}}]+:,\}} (?:{NOUNS})e?s\b")


def test_plural() -> None:
    assert [plural(1, "test"), plural(0, "test"), plural(1234, "entry", "entries")] == [
        "1 test",
        "0 tests",
        "1,234 entries",
    ]


def test_no_text_says_one_tests() -> None:
    """`1 sequences, 1 calls`, `1 acquires of 1 locks in 1 classes; 1 threads`: many texts said so."""
    sources = Path(commutant.__file__).parent.rglob("*.py")
    found = [f"{source.name}: {text}" for source in sources for text in ALWAYS_PLURAL.findall(source.read_text())]
    assert not found
