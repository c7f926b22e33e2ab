"""Several runs of one corpus in a row, such as kernels over time: which variables came, went, or changed their name.

A number of tests that share memory hides what happens: one lock goes, another variable comes in its place. So each
variable is counted in each run, over the tests that all of them judged.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commutant.campaign import Outcome
from commutant.mtrace import stable_variable
from commutant.remedy.documents import HistoryCause, HistoryDocument, HistoryRun, moves
from commutant.remedy.prove import moved_and_new
from commutant.report import BADNESS, JudgedTest
from commutant.support import plural, safe_text

_FEW = 0.1
"""Of the most tests that shared a variable, so few are none: what came in one run may have been seen once before."""
_MOVES_SHOWN = 5

_SHARED = frozenset({Outcome.CONFLICTING, Outcome.UNSTABLE})


@dataclass(frozen=True, slots=True)
class VariableHistory:
    """A variable, and in each run the tests that share it."""

    name: str
    tests: tuple[int, ...]

    @property
    def fate(self) -> Literal["came", "went", "more", "fewer", "same"]:
        """What became of it from the first run to the last: came, went, more, fewer, or same."""
        first, last = self.tests[0], self.tests[-1]
        few = _FEW * max(self.tests)
        if first <= few < last:
            return "came"
        if last <= few < first:
            return "went"
        if abs(last - first) <= few:
            return "same"
        return "more" if last > first else "fewer"


@dataclass(frozen=True, slots=True)
class History:
    """What the runs show of the tests that all of them judged.

    `shared` counts, per run, those that are not conflict-free. `causes` are sorted by how much became of them. `moved`
    counts, for each run but the first, tests in which the same two functions share memory under another name.
    """

    tests: int
    shared: tuple[int, ...]
    causes: tuple[VariableHistory, ...]
    moved: tuple[Counter[tuple[str, str]], ...]


def history(runs: Sequence[Sequence[JudgedTest]]) -> History:
    """The history of two runs or more."""
    by_id = [{judged.test.id: judged for judged in run if judged.outcome in BADNESS} for run in runs]
    ids = set.intersection(*(set(one) for one in by_id))
    counts: list[Counter[str]] = []
    for one in by_id:
        names: Counter[str] = Counter()
        for test in ids:
            names.update({stable_variable(finding) for finding in one[test].findings})
        counts.append(names)
    causes = [VariableHistory(name, tuple(one[name] for one in counts)) for name in set().union(*counts)]
    causes.sort(key=lambda cause: (-abs(cause.tests[-1] - cause.tests[0]), -max(cause.tests), cause.name))
    moved = tuple(
        moved_and_new({test: before[test] for test in ids}, [after[test] for test in sorted(ids)])[0]
        for before, after in itertools.pairwise(by_id)
    )
    shared = tuple(sum(one[test].outcome in _SHARED for test in ids) for one in by_id)
    return History(len(ids), shared, tuple(causes), moved)


def print_history(shown: History, labels: Sequence[str], limit: int, console: Console) -> None:
    """Prints the variables that changed most, a column for each run."""
    console.print(Text(f"{plural(shown.tests, 'test')} in all runs"), soft_wrap=True)
    console.print()
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for label in labels:
        table.add_column(safe_text(label), justify="right")
    table.add_column("")
    table.add_column("shared variable", overflow="fold")
    table.add_row(*(f"{count:,}" for count in shown.shared), "", "(tests that are not conflict-free)")
    for cause in shown.causes[:limit]:
        table.add_row(*(f"{count:,}" for count in cause.tests), cause.fate, safe_text(cause.name))
    console.print(table)
    for label, moved in zip(labels[1:], shown.moved, strict=True):
        for (was, now), count in moved.most_common(_MOVES_SHOWN):
            text = f"moved in {label}, in {plural(count, 'test')}: {was} is now {now}"
            console.print(Text(safe_text(text)), soft_wrap=True)


def history_document(shown: History, runs: Sequence[tuple[str, str]]) -> HistoryDocument:
    """The document; `runs` are the folder of each run and what it is of."""
    return HistoryDocument(
        runs=tuple(HistoryRun(*run, count) for run, count in zip(runs, shown.shared, strict=True)),
        tests=shown.tests,
        causes=tuple(HistoryCause(one.name, one.tests, one.fate) for one in shown.causes),
        moved=tuple(moves(moved.most_common()) for moved in shown.moved),
    )
