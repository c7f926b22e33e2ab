"""Two corpora side by side: which tests were added, which removed, which are in both, by id and per set of calls.

Ids come from what a test does, not from how it was found, so two versions of a model, two levels or two generators can
be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from commutant.corpus import Corpus, SetOfCalls
from commutant.documents import Count


class SetOfTests(msgspec.Struct):
    """The tests of one set of calls: how many are in both corpora, the ids of those in one alone."""

    calls: SetOfCalls
    common: Count = 0
    added: list[str] = []
    removed: list[str] = []


@dataclass(frozen=True, slots=True)
class CorpusComparison:
    """Two corpora compared; sets with most changes first."""

    sets: Sequence[SetOfTests]

    @property
    def common(self) -> int:
        """Tests in both."""
        return sum(one.common for one in self.sets)

    @property
    def added(self) -> int:
        """Tests that only NEW has."""
        return sum(len(one.added) for one in self.sets)

    @property
    def removed(self) -> int:
        """Tests that only BASE has."""
        return sum(len(one.removed) for one in self.sets)


def compare_corpora(base: Corpus, new: Corpus) -> CorpusComparison:
    """Compares two corpora by the ids of their tests."""
    sets: dict[tuple[str, ...], SetOfTests] = {}
    old = {test.id for test in base.tests}
    for test in new.tests:
        one = _set_of(sets, tuple(call.call for call in test.calls))
        if test.id in old:
            one.common += 1
        else:
            one.added.append(test.id)
    present = {test.id for test in new.tests}
    for test in base.tests:
        if test.id not in present:
            _set_of(sets, tuple(call.call for call in test.calls)).removed.append(test.id)
    return CorpusComparison(sorted(sets.values(), key=lambda one: (-len(one.added) - len(one.removed), one.calls)))


def _set_of(sets: dict[tuple[str, ...], SetOfTests], calls: tuple[str, ...]) -> SetOfTests:
    return sets.setdefault(calls, SetOfTests(calls))
