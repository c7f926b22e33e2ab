"""Finding tests by their ids: in a run, in a corpus, or in the newest folder of `runs/` that has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commutant.corpus import TestCase, read_corpus
from commutant.runs.directory import CORPUS_FILE, RUN_FILE, Run, load_run
from commutant.support import UsageError

if TYPE_CHECKING:
    from commutant.report import JudgedTest

RUNS = Path("runs")
_SHOWN_MATCHES = 5
_COMPLETED_IDS = 200


@dataclass(frozen=True, slots=True)
class FoundTest:
    """A test, with its verdict and the run if it stands in one that has judged it."""

    test: TestCase
    judged: JudgedTest | None
    run: Run | None


def find_test(wanted: str, source: Path | None, tell: Callable[[str], object] = lambda text: None) -> FoundTest:
    """The test whose id begins with `wanted`; raises UsageError where there is none, or several.

    Where it is not said in which `source` it is, `tell` gets a line for each folder that is damaged and passed over.
    """
    damage: list[UsageError] = []
    for place in _places(source):
        try:
            matches = _matches(wanted, place)
            found = _judged(place, matches[0]) if len(matches) == 1 else None
        except UsageError as error:
            if source is not None:
                raise
            damage.append(error)
            continue
        if len(matches) > 1:
            shown = ", ".join(test.id for test in matches[:_SHOWN_MATCHES])
            raise UsageError(
                f"{len(matches)} tests in {place} begin with {wanted!r}: {shown}, ...; give more of the id"
            )
        if found:
            for damaged in damage:
                tell(f"{damaged}; shown as in {place}")
            return found
    if damage:
        raise UsageError(f"{damage[0]}; no other folder in {RUNS}/ has a test that begins with {wanted!r}")
    where = str(source) if source is not None else f"any folder in {RUNS}/"
    raise UsageError(f"no test in {where} begins with {wanted!r}; --from RUN or --from CORPUS says where to look")


def tests_of_calls(calls: Sequence[str], source: Path | None) -> tuple[Path, list[TestCase]]:
    """The tests of a set of calls, in the newest folder that has any, and that folder; raises UsageError."""
    names = sorted(calls)
    for place in _places(source):
        tests = [test for test in read_corpus(_corpus_of(place)).tests if sorted(c.call for c in test.calls) == names]
        if tests:
            return place, tests
    where = str(source) if source is not None else f"any folder in {RUNS}/"
    raise UsageError(f"no test in {where} has the calls {', '.join(names)}; --from RUN says where to look")


def ids_beginning(start: str, source: Path | None) -> list[str]:
    """Ids of tests that begin so, in the newest folder of `runs/` that has any, or in `source`; a few hundred."""
    for place in _places(source):
        found = [test.id for test in read_corpus(_corpus_of(place)).tests if test.id.startswith(start)]
        if found:
            return found[:_COMPLETED_IDS]
    return []


def _matches(wanted: str, place: Path) -> list[TestCase]:
    """The test of this id, or else those whose ids begin so; raises UsageError for a damaged corpus."""
    matches = [test for test in read_corpus(_corpus_of(place)).tests if test.id.startswith(wanted)]
    return [test for test in matches if test.id == wanted] or matches


def _judged(place: Path, test: TestCase) -> FoundTest:
    """The test with its verdict and the run, if it has one there; raises UsageError for a damaged run."""
    from commutant.report import JudgedTest

    if (place / RUN_FILE).is_file():
        run = load_run(place)
        for verdict in run.verdicts():
            if verdict.test_id == test.id:
                return FoundTest(test, JudgedTest(test, verdict.outcome, verdict.findings, verdict.detail), run)
    return FoundTest(test, None, None)


def _corpus_of(place: Path) -> Path:
    return place / CORPUS_FILE if place.is_dir() else place


def _places(source: Path | None) -> Iterator[Path]:
    """Where to look: in `source`, or in the folders in `runs` that hold a corpus, the newest first."""
    if source is not None:
        yield source
    elif RUNS.is_dir():
        corpora = sorted(RUNS.glob(f"*/{CORPUS_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
        yield from (path.parent for path in corpora)
