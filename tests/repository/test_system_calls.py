"""The page of system calls says of each what the shim's code does with it."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.repository.tree import ROOT

PAGE = ROOT / "docs" / "reference" / "system-calls.md"
DISPATCH = ROOT / "crates" / "file-system" / "scalefs-program" / "shim" / "src" / "dispatch.rs"
NUMBERS = {*range(335), *range(424, 467)} | {335}
"""All that Linux has on x86-64 up to the last on the page."""


def listed(page: str) -> dict[str, list[int]]:
    """By heading: the numbers of calls that stand with their names below it."""
    lists: dict[str, list[int]] = {}
    for part in re.split(r"(?m)^## ", page)[1:]:
        heading, _, text = part.partition("\n")
        blocks = re.findall(r"(?s)```\n(.*?)```", text)
        found = [number for block in blocks for number in re.findall(r"(?:^|,\s)(\d+)\s[a-z_]\w*", block)]
        lists[heading] = [int(number) for number in found]
    return lists


def classes() -> dict[str, set[int]]:
    """The lists of calls in the code that are looked at."""
    code = DISPATCH.read_text(encoding="utf-8")
    lists = re.findall(r"const (BY_DESCRIPTOR|LOOKED_AT): \[u16; \d+\] = \[([^\]]*)\]", code)
    return {name: {int(number) for number in re.findall(r"\d+", numbers)} for name, numbers in lists}


def test_each_call_stands_in_one_list() -> None:
    lists = listed(PAGE.read_text(encoding="utf-8"))
    assert set(lists) >= {"Served", "Translated", "Refused where they are ours", "Refused always", "Passed on"}
    counts = Counter(number for numbers in lists.values() for number in numbers)
    assert not NUMBERS - set(counts), "missing"
    assert not [number for number, count in counts.items() if count > 1], "in two lists"


def test_what_is_passed_on_is_what_the_code_does_not_look_at() -> None:
    lists, looked_at = listed(PAGE.read_text(encoding="utf-8")), classes()
    assert set(looked_at) == {"BY_DESCRIPTOR", "LOOKED_AT"}
    known = looked_at["BY_DESCRIPTOR"] | looked_at["LOOKED_AT"]
    assert not looked_at["BY_DESCRIPTOR"] & looked_at["LOOKED_AT"]
    assert not known & set(lists["Passed on"])
    assert known == {number for heading, numbers in lists.items() if heading != "Passed on" for number in numbers}


@pytest.mark.parametrize("change", [("0 read, ", ""), ("## Passed on\n```\n", "## Passed on\n```\n1 write, ")])
def test_a_call_that_is_missing_or_stands_twice_is_found(change: tuple[str, str]) -> None:
    lists = listed(PAGE.read_text(encoding="utf-8").replace(*change, 1))
    counts = Counter(number for numbers in lists.values() for number in numbers)
    assert NUMBERS - set(counts) or max(counts.values()) > 1
