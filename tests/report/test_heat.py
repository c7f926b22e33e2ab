"""The heat map's numbers and colours."""

from __future__ import annotations

from itertools import pairwise

import pytest

from commutant.report.data import SetCounts, read_sets, total_counts
from commutant.report.heat import COLOUR_STEPS, heat_map, level, sorted_sets
from commutant.report.palette import DARK, LIGHT, contrast, text_colour
from commutant.support.errors import UsageError
from tests.report.invented import NAMES, invented_run


def test_every_set_stands_in_one_cell_and_the_totals_count_each_pair_once_per_call() -> None:
    sets = read_sets(invented_run().summary)
    pairs = heat_map(sets)
    assert pairs is not None
    assert pairs.calls == NAMES
    assert sum(counts.tests for counts in pairs.cells.values()) == total_counts(sets).tests
    for index, total in enumerate(pairs.totals):
        assert total.tests == sum(counts.tests for cell, counts in pairs.cells.items() if index in cell)


def test_pairs_in_either_order_share_a_cell() -> None:
    pairs = heat_map([SetCounts(("a", "b"), conflict_free=1), SetCounts(("b", "a"), conflicting=2)])
    assert pairs is not None
    assert list(pairs.cells) == [(1, 0)]
    assert pairs.cells[1, 0].judged == 3


def test_other_sizes_have_no_map() -> None:
    assert heat_map([SetCounts(("a", "b", "c"))]) is None
    assert heat_map([]) is None


def test_fraction_is_of_the_judged_tests_alone() -> None:
    counts = SetCounts(("a",), conflict_free=3, conflicting=1, unstable=1, wrong_result=7, skipped=2, crashed=1)
    assert (counts.tests, counts.judged, counts.not_conflict_free, counts.failed) == (15, 5, 2, 8)
    assert counts.fraction == 0.4
    assert SetCounts(("a",), skipped=3).fraction == 0


@pytest.mark.parametrize(
    ("conflicting", "of", "step"), [(0, 5, 0), (1, 1000, 1), (1, 5, 2), (1, 2, 3), (4, 5, 5), (5, 5, 5), (0, 0, 0)]
)
def test_a_single_conflict_leaves_level_0(conflicting: int, of: int, step: int) -> None:
    assert level(SetCounts(("a", "b"), conflict_free=of - conflicting, conflicting=conflicting)) == step


def test_list_of_sets_begins_with_the_worst() -> None:
    sets = [SetCounts(("a",), 5, 1), SetCounts(("b",), 0, 3), SetCounts(("c",), 9, 3), SetCounts(("d",))]
    assert [counts.calls for counts in sorted_sets(sets)] == [("b",), ("c",), ("a",), ("d",)]


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ({}, "summary.json: Object missing required field `sets`"),
        ({"sets": [3]}, "$.sets[0]"),
        ({"sets": [{"calls": "open"}]}, "$.sets[0].calls"),
        ({"sets": [{"calls": ["open"], "crashed": -1}]}, "$.sets[0].crashed"),
        ({"sets": [{"calls": ["open"], "conflicting": True}]}, "got `bool` - at `$.sets[0].conflicting`"),
    ],
)
def test_a_document_that_is_no_summary_is_refused_in_one_line(summary: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read_sets(summary)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_numbers_are_readable_on_every_level(palette: tuple[str, ...]) -> None:
    assert len(palette) == COLOUR_STEPS
    for background in palette:
        assert contrast(text_colour(background), background) >= 4.5


def test_lightness_falls_or_rises_all_the_way_so_that_no_hue_is_needed() -> None:
    on_white = [contrast("#ffffff", colour) for colour in LIGHT]
    on_black = [contrast("#000000", colour) for colour in DARK]
    assert on_white == sorted(on_white)
    assert on_black == sorted(on_black)
    for scale in (on_white, on_black):
        assert all(later / earlier > 1.08 for earlier, later in pairwise(scale))
