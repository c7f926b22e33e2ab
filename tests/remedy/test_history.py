"""Histories: every variable is counted in every run, and its fate follows from the ends of its row."""

from __future__ import annotations

import html5lib
from hypothesis import given
from hypothesis import strategies as st

from commutant.remedy import history, history_page
from commutant.remedy.history import VariableHistory
from tests.remedy.test_prove import judged

runs = st.lists(st.lists(st.sets(st.sampled_from("abc")), min_size=6, max_size=6), min_size=2, max_size=4)


@given(shown=runs)
def test_counts_are_those_of_the_tests(shown: list[list[set[str]]]) -> None:
    told = history([[judged(number, *sorted(names)) for number, names in enumerate(run)] for run in shown])
    assert told.tests == 6
    assert told.shared == tuple(sum(bool(names) for names in run) for run in shown)
    counts = {cause.name: cause.tests for cause in told.causes}
    for name in "abc":
        expected = tuple(sum(name in names for names in run) for run in shown)
        assert counts.get(f"struct dentry.{name}", (0,) * len(shown)) == expected
    assert len(told.moved) == len(shown) - 1


def test_the_fate_of_a_variable() -> None:
    fates = {
        (0, 30): "came",
        (30, 0): "went",
        (100, 95): "same",
        (100, 40): "fewer",
        (40, 100): "more",
        (2, 30): "came",
    }
    assert {ends: VariableHistory("x", ends).fate for ends in fates} == fates


def test_a_changed_name_is_moved() -> None:
    told = history([[judged(0, "a")], [judged(0, "b")]])
    assert told.moved == ({("struct dentry.a", "struct dentry.b"): 1},)


def test_only_tests_of_all_runs_count() -> None:
    told = history([[judged(0, "a"), judged(1, "a")], [judged(1, "a")]])
    assert (told.tests, told.shared) == (1, (1, 1))


def test_the_page_has_each_run_with_what_came_and_escapes_names() -> None:
    told = history([[judged(0, "a"), judged(1, "<b>")], [judged(0, "c"), judged(1, "<b>")]])
    page = history_page(told, ["6.1", "6.12 <x>"], 20)
    assert '<section id="run-2">' in page and "6.12 &lt;x&gt;" in page
    assert "struct dentry.a</td><td>is now struct dentry.c" in page
    assert "struct dentry.&lt;b&gt;" in page and "<b>" not in page.replace("<b>1</b>", "").replace(
        "<b>2</b>", ""
    ).replace("<b>not conflict-free</b>", "")
    html5lib.HTMLParser(strict=True).parse(page)
