"""The document of `diff --format json`: two runs or two corpora compared, each declared once."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta

from commutant.compare.corpora import CorpusComparison, SetOfTests
from commutant.compare.runs import ChangedSet, ChangedTest, RunComparison
from commutant.compare.sides import ComparedCorpus, ComparedRun
from commutant.compare.suppressions import Suppression, Suppressions
from commutant.corpus import SetOfCalls
from commutant.documents import Count, Document, Part
from commutant.report import GroupEntry, NamedCount, by_weight, group_entries


class ChangedSetEntry(Part, frozen=True, kw_only=True):
    """The tests of one set of calls that both runs judged; `before` and `after` are not conflict-free in BASE and NEW.

    Of variables, `causes` are behind the tests that became worse, `reliefs` behind those that became better; `gained`
    are those that tests share in NEW alone, `lost` in BASE alone. `shared_before` and `shared_after` sum up the
    variables that each test shares.
    """

    calls: SetOfCalls
    tests: Count
    before: Count
    after: Count
    worse: Count
    better: Count
    causes: tuple[NamedCount, ...]
    reliefs: tuple[NamedCount, ...]
    shared_before: Count
    shared_after: Count
    gained: tuple[NamedCount, ...]
    lost: tuple[NamedCount, ...]


class SuppressionEntry(Part, frozen=True):
    """An entry of the suppression file; `expires` is the last day on which it counts."""

    about: str
    reason: str
    expires: datetime.date


class SuppressionEntries(Part, frozen=True):
    """Entries of the suppression file that can go: those that are over, and those that mean no finding."""

    expired: tuple[SuppressionEntry, ...]
    unused: tuple[SuppressionEntry, ...]


class RunComparisonDocument(Document, frozen=True, kw_only=True):
    """Two runs, compared over the tests that both judged."""

    kind: Literal["runs"] = "runs"
    base: ComparedRun
    new: ComparedRun
    common: Annotated[Count, Meta(description="Tests that both runs judged.")]
    only_base: Count
    only_new: Count
    worse: tuple[ChangedTest, ...]
    better: tuple[ChangedTest, ...]
    sets: tuple[ChangedSetEntry, ...]
    appeared: tuple[GroupEntry, ...]
    went: tuple[GroupEntry, ...]
    moved: tuple[GroupEntry, ...]
    stayed: tuple[GroupEntry, ...]
    suppressions: SuppressionEntries


class CorpusComparisonDocument(Document, frozen=True, kw_only=True):
    """Two corpora, compared by the ids of their tests."""

    kind: Literal["corpora"] = "corpora"
    base: ComparedCorpus
    new: ComparedCorpus
    common: Count
    added: Count
    removed: Count
    sets: tuple[SetOfTests, ...]


def run_comparison_document(
    comparison: RunComparison, base: ComparedRun, new: ComparedRun, suppressions: Suppressions
) -> RunComparisonDocument:
    """Everything that the comparison of two runs found."""
    return RunComparisonDocument(
        base=base,
        new=new,
        common=comparison.common,
        only_base=comparison.only_base,
        only_new=comparison.only_new,
        worse=tuple(comparison.worse),
        better=tuple(comparison.better),
        sets=tuple(map(_set, comparison.sets)),
        appeared=group_entries(by_weight(comparison.appeared)),
        went=group_entries(by_weight(comparison.went)),
        moved=group_entries(by_weight(comparison.moved)),
        stayed=group_entries(by_weight(comparison.stayed)),
        suppressions=SuppressionEntries(_suppressions(suppressions.expired), _suppressions(suppressions.unused)),
    )


def corpus_comparison_document(
    comparison: CorpusComparison, base: ComparedCorpus, new: ComparedCorpus
) -> CorpusComparisonDocument:
    """Everything that the comparison of two corpora found."""
    return CorpusComparisonDocument(
        base=base,
        new=new,
        common=comparison.common,
        added=comparison.added,
        removed=comparison.removed,
        sets=tuple(comparison.sets),
    )


def _set(one: ChangedSet) -> ChangedSetEntry:
    return ChangedSetEntry(
        calls=one.calls,
        tests=one.tests,
        before=one.before,
        after=one.after,
        worse=one.worse,
        better=one.better,
        causes=_counted(one.causes),
        reliefs=_counted(one.reliefs),
        shared_before=one.shared_before,
        shared_after=one.shared_after,
        gained=_counted(one.gained),
        lost=_counted(one.lost),
    )


def _counted(names: Counter[str]) -> tuple[NamedCount, ...]:
    return tuple(NamedCount(name, tests) for name, tests in names.most_common())


def _suppressions(entries: Iterable[Suppression]) -> tuple[SuppressionEntry, ...]:
    return tuple(SuppressionEntry(entry.title, entry.reason, entry.expires) for entry in entries)
