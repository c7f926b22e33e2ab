"""A comparison as a JSON document (docs/schemas/diff.schema.json)."""

from __future__ import annotations

from collections import Counter

from commutant.compare.corpora import CorpusComparison
from commutant.compare.runs import ChangedSet, ChangedTest, RunComparison
from commutant.compare.sides import Side
from commutant.compare.suppressions import Suppression, Suppressions
from commutant.report import by_weight, group_json

SCHEMA_VERSION = 1


def run_comparison_json(
    comparison: RunComparison, base: Side, new: Side, suppressions: Suppressions
) -> dict[str, object]:
    """Everything that the comparison of two runs found."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "runs",
        "base": dict(base.document),
        "new": dict(new.document),
        "common": comparison.common,
        "only_base": comparison.only_base,
        "only_new": comparison.only_new,
        "worse": [_test(test) for test in comparison.worse],
        "better": [_test(test) for test in comparison.better],
        "sets": [_set(one) for one in comparison.sets],
        "appeared": [group_json(group) for group in by_weight(comparison.appeared)],
        "went": [group_json(group) for group in by_weight(comparison.went)],
        "stayed": [group_json(group) for group in by_weight(comparison.stayed)],
        "suppressions": {
            "expired": [_suppression(entry) for entry in suppressions.expired],
            "unused": [_suppression(entry) for entry in suppressions.unused],
        },
    }


def corpus_comparison_json(comparison: CorpusComparison, base: Side, new: Side) -> dict[str, object]:
    """Everything that the comparison of two corpora found."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "corpora",
        "base": dict(base.document),
        "new": dict(new.document),
        "common": comparison.common,
        "added": comparison.added,
        "removed": comparison.removed,
        "sets": [
            {"calls": list(one.calls), "common": one.common, "added": one.added, "removed": one.removed}
            for one in comparison.sets
        ],
    }


def _test(test: ChangedTest) -> dict[str, object]:
    return {
        "test": test.test_id,
        "calls": list(test.calls),
        "before": test.before.value,
        "after": test.after.value,
        "variables": list(test.variables),
    }


def _set(one: ChangedSet) -> dict[str, object]:
    def counted(names: Counter[str]) -> list[dict[str, object]]:
        return [{"name": name, "tests": tests} for name, tests in names.most_common()]

    return {
        "calls": list(one.calls),
        "tests": one.tests,
        "before": one.before,
        "after": one.after,
        "worse": one.worse,
        "better": one.better,
        "causes": counted(one.causes),
        "reliefs": counted(one.reliefs),
        "shared_before": one.shared_before,
        "shared_after": one.shared_after,
        "gained": counted(one.gained),
        "lost": counted(one.lost),
    }


def _suppression(entry: Suppression) -> dict[str, object]:
    return {"about": entry.title, "reason": entry.reason, "expires": entry.expires.isoformat()}
