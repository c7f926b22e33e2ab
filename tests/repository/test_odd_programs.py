"""Each case of the page of odd programs names tests that there are."""

from __future__ import annotations

import re

import pytest

from tests.repository.tree import ROOT

PAGE = ROOT / "docs" / "notes" / "odd-programs.md"
CRATE = ROOT / "crates" / "file-system" / "scalefs-program"


def cases(page: str) -> dict[str, list[str]]:
    """By case the tests that run it."""
    rows = re.findall(r"(?m)^\| (.+?) \| .+ \| (.+?) \|$", page)
    return {what: re.findall(r"`(\w+)`", tests) for what, tests in rows if what not in ("what", "---")}


def missing(page: str) -> list[str]:
    """Cases without a test, and tests that are not there."""
    sources = "".join(source.read_text(encoding="utf-8") for source in sorted(CRATE.rglob("*.rs")))
    there = set(re.findall(r"#\[test\]\s+(?:#.*\s+)?fn (\w+)", sources))
    untested = [what for what, tests in cases(page).items() if not tests]
    return untested + [test for tests in cases(page).values() for test in tests if test not in there]


def test_each_case_has_tests_that_are_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(cases(page)) > 30
    assert missing(page) == []


@pytest.mark.parametrize("row", ["| a case | comes | none |", "| a case | comes | `no_such_test` |"])
def test_a_case_without_a_test_is_found(row: str) -> None:
    assert missing(PAGE.read_text(encoding="utf-8") + row + "\n")
