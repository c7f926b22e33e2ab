"""Names from files are shown harmlessly: no control character, no line break, no endless text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.support.text import LONGEST_TEXT, percent, safe_lines, safe_text
from tests.report.invented import HOSTILE_NAMES


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("n0", "n0"),
        ("naïve ≠ ∥", "naïve ≠ ∥"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("line\u2028break", r"line\u2028break"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("", ""),
    ],
)
def test_invisible_characters_become_escapes(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_long_text_is_cut_and_says_so() -> None:
    assert safe_text("x" * 10_000) == "x" * LONGEST_TEXT + "… (10,000 characters)"
    assert safe_text("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT


@given(st.text(st.characters(codec=None)))
def test_safe_text_is_one_printable_line(text: str) -> None:
    shown = safe_text(text)
    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), max_size=LONGEST_TEXT))
def test_plain_text_stays(text: str) -> None:
    assert safe_text(text) == text


def test_lines_stay_lines_and_each_is_safe() -> None:
    assert safe_lines("one\n\x1b[2Jtwo") == "one\n\\x1b[2Jtwo"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_short_printable_lines(name: str) -> None:
    shown = safe_text(name)
    assert shown.isprintable()
    assert len(shown) < 11 * LONGEST_TEXT


def test_percent_keeps_none_and_all_apart_from_nearly() -> None:
    assert [percent(f) for f in (0, 0.0001, 0.01, 0.5, 0.994, 1)] == ["0 %", "<1 %", "1 %", "50 %", ">99 %", "100 %"]
