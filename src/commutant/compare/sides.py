"""What stands for a run or corpus in a comparison: its path, what it is, and its counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from commutant.corpus import Corpus
from commutant.report import RunReport, read_sets, total_counts
from commutant.support import percent, plural, safe_text


@dataclass(frozen=True, slots=True)
class Side:
    """BASE or NEW: `title` and `counts` for people, `document` for JSON."""

    title: str
    counts: str
    document: Mapping[str, object]


def side_of_run(path: str, run: RunReport, complete: bool) -> Side:
    """A run; raises UsageError if its summary is none."""
    total = total_counts(read_sets(run.summary))
    keys = ("interface", "target", "level", "tests", "conflict_free", "conflicting", "unstable", "wrong_result")
    return Side(
        title=safe_text(f"{path}, {run.summary.get('interface')} on {run.summary.get('target')}"),
        counts=f"{total.not_conflict_free:,} of {plural(total.judged, 'test')} not conflict-free "
        f"({percent(total.fraction)})" + ("" if complete else ", interrupted"),
        document={
            "path": path,
            "complete": complete,
            **{key: run.summary.get(key) for key in (*keys, "skipped", "crashed")},
        },
    )


def side_of_corpus(path: str, corpus: Corpus) -> Side:
    """A corpus."""
    return Side(
        title=safe_text(f"{path}, {corpus.interface} at level {corpus.level}"),
        counts=f"{plural(len(corpus.tests), 'test')} of model {corpus.model_hash}",
        document={
            "path": path,
            "interface": corpus.interface,
            "level": corpus.level,
            "model": corpus.model_hash,
            "tests": len(corpus.tests),
        },
    )
