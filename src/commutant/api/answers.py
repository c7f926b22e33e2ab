"""What the functions of the front door return: the data of the rooms below, which prints well where it is shown.

In a terminal an answer is the text that the command prints; in a notebook it is the same with colours (`_repr_html_`);
`to_json()` is the document of docs/schemas. The data itself is one attribute away.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commutant.documents import builtins

if TYPE_CHECKING:
    from rich.console import Console

    from commutant.analyzer import Analysis
    from commutant.campaign import Summary
    from commutant.compare import Gated
    from commutant.compare.locks import LockComparisonDocument
    from commutant.conformance import Conformance
    from commutant.corpus import Corpus
    from commutant.lock_view import LockClass, LockStudy
    from commutant.report import SharedVariable
    from commutant.runs import Run

WIDTH = 120
"""Columns of an answer as text, where no terminal says otherwise."""

_HTML = "<pre style=\"font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace;line-height:1.3\">{code}</pre>"


class Answer(ABC):
    """An answer: printable text in a terminal, HTML in a notebook, a JSON document for other programs."""

    @abstractmethod
    def draw(self, console: Console) -> None:
        """Prints the answer on a rich console."""

    @abstractmethod
    def to_json(self) -> Mapping[str, object]:
        """The answer as the JSON document that the command prints with `--format json`."""

    def __str__(self) -> str:
        """The answer as plain text, `WIDTH` columns wide."""
        from rich.console import Console

        text = io.StringIO()
        self.draw(Console(file=text, width=WIDTH, highlight=False, color_system=None))
        return text.getvalue().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The answer for a notebook. Names in it come from models and kernels: rich escapes them."""
        from rich.console import Console

        console = Console(file=io.StringIO(), width=WIDTH, highlight=False, record=True, force_terminal=True)
        self.draw(console)
        return console.export_html(code_format=_HTML, inline_styles=True)


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


@dataclass(frozen=True, repr=False)
class Conditions(Answer):
    """When the calls of an interface commute; `analysis.sets` has the sets of calls, each with its conditions."""

    analysis: Analysis

    def draw(self, console: Console) -> None:
        """Per set of calls the number of paths, and of pairs the conditions as sentences."""
        for one in self.analysis.sets:
            _line(console, f"{', '.join(one.calls)}: {one.counts_text}")
            for condition in one.known_conditions or ():
                _line(console, f"  - {condition}")

    def to_json(self) -> Mapping[str, object]:
        """The document of docs/schemas/analyze.schema.json."""
        document: Mapping[str, object] = builtins(self.analysis.document())
        return document


@dataclass(frozen=True, repr=False)
class Tests(Answer):
    """Test cases of an interface; `corpus.tests` has them, `write` keeps them for `commutant check`."""

    corpus: Corpus

    def draw(self, console: Console) -> None:
        """The number of tests per set of calls."""
        from commutant.corpus import tests_per_set
        from commutant.support import plural

        for calls, count in tests_per_set(self.corpus.tests).items():
            _line(console, f"{', '.join(calls):40} {count:6}")
        _line(
            console, f"{plural(len(self.corpus.tests), 'test')} of {self.corpus.interface}, level {self.corpus.level}"
        )

    def to_json(self) -> Mapping[str, object]:
        """Interface, level, and the number of tests per set of calls."""
        from commutant.corpus import tests_per_set

        sets = [{"calls": list(calls), "tests": count} for calls, count in tests_per_set(self.corpus.tests).items()]
        return {"interface": self.corpus.interface, "level": self.corpus.level, "sets": sets}

    def write(self, path: str | Path) -> None:
        """Writes the corpus file (`.jsonl.gz`); raises UsageError if it cannot."""
        from commutant.corpus import write_corpus

        write_corpus(self.corpus, Path(path))


@dataclass(frozen=True, repr=False)
class Checked(Answer):
    """What a check found; `run` is the run directory as read, `summary` its counts, `page` the HTML page."""

    run: Run

    @property
    def summary(self) -> Summary:
        """Counts of tests by outcome, in all and per set of calls."""
        return self.run.summary

    @property
    def shared(self) -> Sequence[SharedVariable]:
        """The variables that tests share without need, those of most tests first."""
        from commutant.report import rank_shared
        from commutant.runs import report_of

        return rank_shared(report_of(self.run).tests)

    @property
    def page(self) -> Path:
        """The HTML page of the run."""
        from commutant.runs import REPORT_FILE

        return self.run.path / REPORT_FILE

    def draw(self, console: Console) -> None:
        """Heat map of pairs of calls, the most shared variables, what was not judged, and where the page is."""
        from commutant.report import print_run
        from commutant.runs import report_of

        print_run(report_of(self.run), console)
        console.print()
        _line(console, str(self.page))

    def to_json(self) -> Mapping[str, object]:
        """The document of docs/schemas/summary.schema.json."""
        document: Mapping[str, object] = builtins(self.summary)
        return document


@dataclass(frozen=True, repr=False)
class Conformed(Answer):
    """Whether a target returns what the model says; `conformance.differences` has where it does not."""

    conformance: Conformance

    def __bool__(self) -> bool:
        """True if no sequence made a difference."""
        return not self.conformance.differences

    def draw(self, console: Console) -> None:
        """Each difference as a transcript, under one line that sums up."""
        _line(console, self.conformance.text())

    def to_json(self) -> Mapping[str, object]:
        """The document of docs/schemas/conform.schema.json."""
        document: Mapping[str, object] = builtins(self.conformance.document())
        return document


@dataclass(frozen=True, repr=False)
class GateAnswer(Answer):
    """Whether a run passes the gate; `gated` has all findings, and of these the new ones and those that fail."""

    gated: Gated

    def __bool__(self) -> bool:
        """True if nothing fails."""
        return bool(self.gated)

    def draw(self, console: Console) -> None:
        """How many findings are new, and those that fail by name."""
        for line in self.gated.lines() or ["no new finding"]:
            _line(console, line)

    def to_json(self) -> Mapping[str, object]:
        """The findings that are new, that fail and that moved, each as in docs/schemas/report.schema.json."""
        from commutant.report import group_entries

        gated = self.gated
        parts = {"new": gated.new, "failing": gated.failing, "moved": gated.moved}
        return {name: builtins(list(group_entries(groups))) for name, groups in parts.items()}


@dataclass(frozen=True, repr=False)
class LocksSeen(Answer):
    """The locks of a program; `study` has all, `classes` those that are shown, those that are held longest first."""

    study: LockStudy
    classes: Sequence[LockClass]

    def draw(self, console: Console) -> None:
        """The tables of contention and of the limit study, and what the first locks conflict on."""
        from commutant.lock_view.shown import print_study

        print_study(self.study, self.classes, console, fields=3)

    def to_json(self) -> Mapping[str, object]:
        """The document of docs/schemas/locks.schema.json."""
        from commutant.lock_view.shown import locks_document

        document: Mapping[str, object] = builtins(locks_document(self.study, self.classes))
        return document


@dataclass(frozen=True, repr=False)
class LocksCompared(Answer):
    """What became of locks from one recording to another; `found.locks` has those of both, with what changed."""

    found: LockComparisonDocument

    def draw(self, console: Console) -> None:
        """What was gained, the locks of both recordings, and those that one alone has."""
        from commutant.compare.locks import print_lock_comparison

        print_lock_comparison(self.found, console)

    def to_json(self) -> Mapping[str, object]:
        """The document of docs/schemas/diff.schema.json."""
        document: Mapping[str, object] = builtins(self.found)
        return document
