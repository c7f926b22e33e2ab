"""Comparing corpora: by id, per set of calls."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from commutant.compare import compare_corpora
from tests.campaign.fakes import make_corpus

CORPUS = make_corpus(8)
numbers = st.sets(st.integers(0, 7))


def part(numbers):
    return dataclasses.replace(CORPUS, tests=[CORPUS.tests[number] for number in sorted(numbers)])


@given(base=numbers, new=numbers)
def test_every_test_is_in_exactly_one_list(base, new):
    comparison = compare_corpora(part(base), part(new))
    ids = {number: CORPUS.tests[number].id for number in range(8)}
    assert {test for one in comparison.sets for test in one.added} == {ids[number] for number in new - base}
    assert {test for one in comparison.sets for test in one.removed} == {ids[number] for number in base - new}
    assert (comparison.common, comparison.added, comparison.removed) == (
        len(base & new),
        len(new - base),
        len(base - new),
    )
    for one in comparison.sets:
        assert all(test.startswith("-".join(one.calls)) for test in [*one.added, *one.removed])


def test_sets_with_most_changes_come_first():
    comparison = compare_corpora(part({0, 1}), part({0, 1, 3, 5, 7}))
    assert [(one.calls, len(one.added)) for one in comparison.sets] == [(("open", "open"), 3), (("link", "rename"), 0)]
