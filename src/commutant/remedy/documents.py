"""The documents of `remedy`, `prove` and `history`, declared once: what they print with `--format json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from commutant.documents import Count, Document, Measure, Part
from commutant.remedy.change import Change, Way
from commutant.remedy.traffic import Transfers
from commutant.report import NamedCount, Some


class ChangeEntry(Part, frozen=True):
    """A change: its way, and its place, as TYPE.FIELD or a variable."""

    way: Way
    place: str


class SetCount(Part, frozen=True):
    """A set of calls, and how many tests it has."""

    calls: tuple[str, ...]
    tests: Some


class MovedVariable(Part, frozen=True, rename={"is_": "is"}):
    """Tests in which the same two functions share memory under another name than before."""

    was: str
    is_: str
    tests: Some


class RemedyRow(Part, frozen=True):
    """Changes that are made together, and what they free."""

    changes: Annotated[tuple[ChangeEntry, ...], Meta(min_length=1)]
    text: str
    freed: Annotated[Count, Meta(description="Tests that share nothing any more with this row alone.")]
    freed_together: Annotated[Count, Meta(description="Tests freed by this row and all before it.")]
    fewer: Annotated[Count, Meta(description="Tests that share less than before, with this row alone.")]
    tests: Annotated[tuple[str, ...], Meta(description="The freed tests.")]
    sets: Annotated[tuple[SetCount, ...], Meta(description="The freed tests by set of calls.")]
    left: Annotated[tuple[NamedCount, ...], Meta(description="What tests that share less still share.")]


class RemedyDocument(Document, frozen=True):
    """What changes are worth: the best, one per row, or one row with the changes that were asked for.

    `judged` counts the tests of which it is known whether they share memory. `bytes_per_test` says whether the run has
    the bytes that each test touched; runs of earlier versions have those of one test per finding.
    """

    judged: Count
    not_conflict_free: Count
    bytes_per_test: bool
    changes: tuple[RemedyRow, ...]


class TransferCount(Part, frozen=True):
    """Transfers per round, or a share of them: for caches that share a modified line on a read, and for those that hand
    it over. Below 0 where a change makes more."""

    plain: float
    taken_over: float


class MixEntry(Part, frozen=True):
    """A call, and how often it is made, in any unit."""

    call: str
    share: Measure


class BestEntry(Part, frozen=True):
    """The test of which a change saves the largest share."""

    test: str
    saved: TransferCount
    of: TransferCount


class SetShare(Part, frozen=True):
    """A set of calls, and the mean share of its tests' transfers that goes."""

    calls: tuple[str, ...]
    share: TransferCount


class SavingRow(Part, frozen=True):
    """Changes that are made together, and the transfers that they save."""

    changes: Annotated[tuple[ChangeEntry, ...], Meta(min_length=1)]
    text: str
    share: Annotated[TransferCount, Meta(description="The share of all transfers that goes, by the weights.")]
    saved: Annotated[TransferCount, Meta(description="The mean of what goes, over `tests`.")]
    of: Annotated[TransferCount, Meta(description="The mean of what there is, over `tests`.")]
    tests: Annotated[tuple[str, ...], Meta(description="The tests with other transfers than before.")]
    worse: Annotated[tuple[str, ...], Meta(description="Those of them that have more.")]
    best: BestEntry | None
    sets: tuple[SetShare, ...]
    freed: Annotated[Count, Meta(description="Tests that share nothing any more with this row alone.")]
    neighbours: Annotated[tuple[str, ...], Meta(description="What else is in use on the lines, the most common first.")]


class TransferDocument(Document, frozen=True):
    """What changes save in transfers of lines, per round of a test's calls that `cores` make again and again.

    `tests` are those whose calls all succeed, of `sets` sets of calls; `transfers` is their mean. Sets weigh alike if
    `mix` is empty. `requested` has one row with the changes that were asked for; without any, `layouts` has those that
    change no code, `accesses` the others, the best first, and `worse` layouts that make more transfers.
    """

    cores: Annotated[int, Meta(ge=2)]
    mix: tuple[MixEntry, ...]
    tests: Count
    sets: Count
    transfers: TransferCount
    requested: tuple[SavingRow, ...]
    layouts: tuple[SavingRow, ...]
    accesses: tuple[SavingRow, ...]
    worse: tuple[SavingRow, ...]


class TransferTallyEntry(Part, frozen=True):
    """The mean transfers of tests, on the lines that a change is about: in BASE, as predicted, and in NEW.

    `median_error` is that of the last two by test, for caches that share a modified line on a read; in `right` of the
    tests their number went the way that was predicted.
    """

    tests: Count
    before: TransferCount
    predicted: TransferCount
    counted: TransferCount
    median_error: Measure
    right: Count


class TransferProofEntry(Part, frozen=True):
    """What came of the transfers: in `every` test whose transfers were predicted to change, and in those of them in
    which cores do the same to these lines in NEW as in BASE (`alike`; null if there are none, and where a change is no
    layout)."""

    cores: Annotated[int, Meta(ge=2)]
    every: TransferTallyEntry
    alike: TransferTallyEntry | None


class ProofDocument(Document, frozen=True):
    """What became of the tests of BASE in NEW; one document per NEW.

    It `holds` if nothing appeared above the noise floor and no result is wrong. `not_conflict_free` counts in BASE and
    in NEW. `foretold` is null without changes, `worse_of_base` without a second run of BASE. What the predicted tests
    that are left share, `left` says; `left_by_noise` of them share nothing that they shared in BASE, but what comes and
    goes. `transfers` is null without changes, and where a run does not tell in which order lines were touched.
    Variables that tests share in NEW alone are in `appeared`. `wrong` are tests with a wrong result, or in which NEW
    died; `sets` are the freed tests by set of calls.
    """

    base: str
    new: str
    holds: bool
    tests: Annotated[Count, Meta(description="Tests that all runs judged.")]
    not_conflict_free: tuple[Count, Count]
    changes: tuple[ChangeEntry, ...]
    freed: tuple[str, ...]
    freed_as_foretold: Count
    foretold: Count | None
    foretold_but_left: tuple[str, ...]
    left: tuple[NamedCount, ...]
    left_by_noise: Count
    worse: tuple[str, ...]
    worse_of_base: Count | None
    moved: tuple[MovedVariable, ...]
    appeared: tuple[NamedCount, ...]
    noise: tuple[NamedCount, ...]
    wrong: tuple[str, ...]
    sets: tuple[SetCount, ...]
    transfers: TransferProofEntry | None


class HistoryRun(Part, frozen=True):
    """A run of a history: its folder, the kernel or target that it is of, and its tests that share memory."""

    run: str
    system: str
    not_conflict_free: Count


class HistoryCause(Part, frozen=True):
    """A variable, the tests that share it in each run, and what became of it from the first run to the last."""

    name: str
    tests: tuple[Count, ...]
    fate: Literal["came", "went", "more", "fewer", "same"]


class HistoryDocument(Document, frozen=True):
    """Several runs of one corpus; `moved` is for each run but the first."""

    runs: Annotated[tuple[HistoryRun, ...], Meta(min_length=2)]
    tests: Annotated[Count, Meta(description="Tests that all runs judged; all counts are over these.")]
    causes: tuple[HistoryCause, ...]
    moved: tuple[tuple[MovedVariable, ...], ...]


def change_entries(changes: Iterable[Change]) -> tuple[ChangeEntry, ...]:
    """The changes as documents have them."""
    return tuple(ChangeEntry(change.way, change.place) for change in changes)


def transfer_count(transfers: Transfers) -> TransferCount:
    """Transfers as documents have them."""
    return TransferCount(round(transfers.plain, 4), round(transfers.taken_over, 4))


def named_counts(counted: Iterable[tuple[str, int]]) -> tuple[NamedCount, ...]:
    """Variables with their tests."""
    return tuple(NamedCount(name, count) for name, count in counted)


def set_counts(counted: Iterable[tuple[Sequence[str], int]]) -> tuple[SetCount, ...]:
    """Sets of calls with their tests."""
    return tuple(SetCount(tuple(calls), count) for calls, count in counted)


def moves(counted: Iterable[tuple[tuple[str, str], int]]) -> tuple[MovedVariable, ...]:
    """What is named otherwise now."""
    return tuple(MovedVariable(was, now, count) for (was, now), count in counted)
