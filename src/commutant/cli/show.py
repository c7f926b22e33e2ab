"""`commutant show`: one test in full, as text, as a C program, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options
from commutant.support import UsageError

if TYPE_CHECKING:
    from commutant.corpus import TestCase
    from commutant.report import JudgedTest
    from commutant.runs import Run

_SHOWN_MATCHES = 5
_COMPLETED_IDS = 200


@click.command(
    "show",
    short_help="Show one test: what it does, what it shared, as a C program.",
    epilog=options.examples(
        "commutant show link-rename-1f0c55aa90b2",
        "commutant show open,open",
        "commutant show link-rename-1f0c --from runs/names-linux-1",
        "commutant show link-rename-1f0c --as c > test.c && cc -pthread test.c && ./a.out",
    ),
)
@click.argument("test", type=options.TestArgument())
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="RUN|CORPUS",
    help="Where the test is.  [default: the newest folder in runs/ that has it]",
)
@click.option(
    "--as", "as_", type=click.Choice(["text", "c", "json"]), default="text", show_default=True, help="What to print."
)
def command(test: str, source: Path | None, as_: str) -> int:
    """Shows TEST, an id or the beginning of one: its set-up, its calls, what they may return, and what they shared.

    A set of calls, such as `open,open`, lists its tests: id, verdict, and the calls with their arguments.
    """
    from commutant import report
    from commutant.cli.remedy import worth_in

    if "," in test:
        if as_ != "text":
            raise UsageError(f"{test} names a set of calls, whose tests are listed: expected an id for --as {as_}")
        _list(test, source)
        return 0
    found, judged, run = _find(test, source)
    if as_ == "c":
        console.write(report.c_program(found))
    elif as_ == "json":
        console.write(report.json_of_test(found, judged).rstrip("\n") + "\n")
    else:
        report.print_test(found, console.results(), judged, worth_in(run) if run is not None else None)
    return 0


def _list(wanted: str, source: Path | None) -> None:
    """Lists the tests of a set of calls, in the newest folder that has any, with what each came to and what it does."""
    from commutant.corpus import read_corpus
    from commutant.report import line_of_test
    from commutant.runs import RUN_FILE, load_run

    calls = sorted(name.strip() for name in wanted.split(","))
    for place in [source] if source is not None else _newest_first(Path("runs")):
        tests = [
            test for test in read_corpus(_corpus_of(place)).tests if sorted(call.call for call in test.calls) == calls
        ]
        if not tests:
            continue
        verdicts = load_run(place).verdicts() if (place / RUN_FILE).is_file() else ()
        outcomes = {verdict.test_id: verdict.outcome for verdict in verdicts}
        for test in tests:
            console.write(line_of_test(test, outcomes.get(test.id)) + "\n")
        return
    where = str(source) if source is not None else "any folder in runs/"
    raise UsageError(f"no test in {where} has the calls {', '.join(calls)}; --from RUN says where to look")


def ids_beginning(start: str, source: Path | None) -> list[str]:
    """Ids of tests that begin so, in the newest folder of `runs/` that has any, or in `source`; a few hundred."""
    from commutant.corpus import read_corpus

    for place in [source] if source is not None else _newest_first(Path("runs")):
        found = [test.id for test in read_corpus(_corpus_of(place)).tests if test.id.startswith(start)]
        if found:
            return found[:_COMPLETED_IDS]
    return []


def _find(wanted: str, source: Path | None) -> tuple[TestCase, JudgedTest | None, Run | None]:
    """The test whose id begins with `wanted`, with its verdict and the run if it stands in one that has judged it.

    Where nobody says where it is, a folder that is damaged is told of and passed over.
    """
    damage: list[UsageError] = []
    for place in [source] if source is not None else _newest_first(Path("runs")):
        try:
            matches = _matches(wanted, place)
            judged, run = _judged(place, matches[0]) if len(matches) == 1 else (None, None)
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
        if matches:
            for damaged in damage:
                console.message(f"{damaged}; shown as in {place}")
            return matches[0], judged, run
    if damage:
        raise UsageError(f"{damage[0]}; no other folder in runs/ has a test that begins with {wanted!r}")
    where = str(source) if source is not None else "any folder in runs/"
    raise UsageError(f"no test in {where} begins with {wanted!r}; --from RUN or --from CORPUS says where to look")


def _matches(wanted: str, place: Path) -> list[TestCase]:
    """The test of this id, or else those whose ids begin so; raises UsageError for a damaged corpus."""
    from commutant.corpus import read_corpus

    matches = [test for test in read_corpus(_corpus_of(place)).tests if test.id.startswith(wanted)]
    return [test for test in matches if test.id == wanted] or matches


def _judged(place: Path, test: TestCase) -> tuple[JudgedTest | None, Run | None]:
    """The test with its verdict and the run, if it has one there; raises UsageError for a damaged run."""
    from commutant.report import JudgedTest
    from commutant.runs import RUN_FILE, load_run

    if not (place / RUN_FILE).is_file():
        return None, None
    run = load_run(place)
    for verdict in run.verdicts():
        if verdict.test_id == test.id:
            return JudgedTest(test, verdict.outcome, verdict.findings, verdict.detail), run
    return None, None


def _corpus_of(place: Path) -> Path:
    from commutant.runs import CORPUS_FILE

    return place / CORPUS_FILE if place.is_dir() else place


def _newest_first(runs: Path) -> Iterator[Path]:
    """The folders in `runs` that hold a corpus."""
    from commutant.runs import CORPUS_FILE

    if runs.is_dir():
        corpora = sorted(runs.glob(f"*/{CORPUS_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
        yield from (path.parent for path in corpora)
