"""What stands for a run or corpus in a comparison: its path, what it is, and its counts."""

from __future__ import annotations

import msgspec

from commutant.campaign import Counts
from commutant.corpus import Corpus, Level
from commutant.documents import Count, Part
from commutant.report import RunReport
from commutant.support import UsageError, percent, plural, safe_text


class ComparedRun(Counts, frozen=True, kw_only=True):
    """BASE or NEW, a run."""

    path: str
    complete: bool
    interface: str
    target: str
    level: Level

    @property
    def title(self) -> str:
        """What it is, for people."""
        return safe_text(f"{self.path}, {self.interface} on {self.target}")

    @property
    def counts(self) -> str:
        """How many tests are not conflict-free."""
        shared = self.conflicting + self.unstable
        judged = self.conflict_free + shared
        share = percent(shared / judged if judged else 0.0)
        return f"{shared:,} of {plural(judged, 'test')} not conflict-free ({share})" + (
            "" if self.complete else ", interrupted"
        )


class ComparedCorpus(Part, frozen=True):
    """BASE or NEW, a corpus."""

    path: str
    interface: str
    level: Level
    model: str
    tests: Count

    @property
    def title(self) -> str:
        """What it is, for people."""
        return safe_text(f"{self.path}, {self.interface} at level {self.level}")

    @property
    def counts(self) -> str:
        """How many tests it has, and of which version of the model."""
        return f"{plural(self.tests, 'test')} of model {self.model}"


Side = ComparedRun | ComparedCorpus


def side_of_run(path: str, run: RunReport, complete: bool) -> ComparedRun:
    """A run; raises UsageError if its summary is none."""
    try:
        return msgspec.convert({**run.summary, "path": path, "complete": complete}, ComparedRun)
    except msgspec.ValidationError as error:
        raise UsageError(f"expected a summary.json: {error}") from None


def side_of_corpus(path: str, corpus: Corpus) -> ComparedCorpus:
    """A corpus."""
    return ComparedCorpus(path, corpus.interface, corpus.level, corpus.model_hash, len(corpus.tests))
