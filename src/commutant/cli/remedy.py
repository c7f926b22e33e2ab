"""`commutant remedy`: which changes would free most tests of a run, and what a change of one's own would free."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options, results
from commutant.documents import text
from commutant.support import UsageError, paused_collector

if TYPE_CHECKING:
    from commutant.corpus import TestCase
    from commutant.mtrace import Finding
    from commutant.remedy import Change, Scene, Sense
    from commutant.runs import Run

_MOST = 20


@click.command(
    "remedy",
    short_help="Rank the changes that would free most tests of a run.",
    epilog=options.examples(
        "commutant remedy runs/posix18-linux-1",
        "commutant remedy runs/posix18-linux-1 --move super_block.s_remove_count",
        "commutant remedy runs/posix18-linux-1 --spread files_struct.fd_array --drop-write cred.non_rcu",
        "commutant remedy runs/posix18-linux-1 --drop init_ucounts --format json",
    ),
)
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@options.changes
@click.option("--limit", type=click.IntRange(1, 1000), default=_MOST, show_default=True, help="Changes to list.")
@options.output_format("text", "json")
@options.output_file
def command(run: Path, changes: tuple[tuple[str, str], ...], limit: int, format_: str, output: Path | None) -> int:
    """Says what changes of types and of accesses would free: tests that would share no memory any more.

    Without a change, ranks all that make sense: fields that move to a line of their own, entries of an array spread,
    counters divided per core, writes and reads left out. With changes, foretells what these do together. It
    calculates with the bytes that the run's tests touched; nothing is built or run.
    """
    from commutant.remedy import foretell, print_foretold, print_ranking, rank, remedy_document, scene_of
    from commutant.runs import load_run

    results.refuse_existing(output)
    wanted = options.read_changes(changes)
    loaded = load_run(run)
    with paused_collector():
        scene = scene_of(loaded.verdicts())
        results.say_if_interrupted(loaded)
        if not scene.tests:
            raise UsageError(f"{run}: every judged test is conflict-free; there is nothing to change")
        if not scene.has_pictures:
            console.message(f"{run} is of an earlier version: of each finding it has the bytes of one test only")
        tests = loaded.tests
        calls = {test: tuple(call.call for call in tests[test].calls) for test in scene.tests}
        if wanted:
            refuse_unknown(scene, wanted)
            foretold = foretell(scene, wanted)
            rows = [(wanted, foretold, len(foretold.freed))]
        else:
            ranking = rank(scene, sense_of(scene, tests), limit)
            rows = [((one.change,), one.alone, one.together) for one in ranking.changes]
    if format_ == "json":
        document = remedy_document(rows, calls, len(scene.tests), scene.judged, scene.has_pictures)
        results.put([text(document)], output)
    elif wanted:
        results.draw(lambda screen: print_foretold(foretold, calls, len(scene.tests), screen), output)
    else:
        results.draw(lambda screen: print_ranking(ranking, calls, screen), output)
    return 0


def refuse_unknown(scene: Scene, changes: tuple[Change, ...]) -> None:
    """Raises UsageError if no shared line of the run has the place of a change, and says what is like it."""
    import difflib

    for change in changes:
        if not scene.has(change.place):
            shared = scene.joined(change.place)
            if shared:
                raise UsageError(
                    f"--{change.way.value} {change.place}: lies in the same bytes as other fields ({shared}), as bit "
                    "fields do; a run tells bytes apart, no bits"
                )
            members = scene.members()
            near = difflib.get_close_matches(change.place, members, 3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise UsageError(f"--{change.way.value} {change.place}: no shared line of the run has this place{hint}")


def sense_of(scene: Scene, tests: dict[str, TestCase]) -> Sense:
    """What the members of a run are used for, for who knows its tests."""
    from commutant.remedy import Sense
    from commutant.report import has_failing_call
    from commutant.support import IdentityCache

    fails = IdentityCache(has_failing_call)
    return Sense(scene, {test for test in scene.tests if fails(tests[test].orders)})


def worth_in(run: Run) -> Callable[[Finding], list[str]] | None:
    """What changes of a finding's fields would free in a run; None if the run does not tell."""
    from commutant.remedy import scene_of, worth_of

    try:
        scene = scene_of(run.verdicts())
    except UsageError:  # a run without the bytes that were touched
        return None
    sense = sense_of(scene, run.tests)
    return lambda finding: worth_of(scene, sense, finding)
