"""`commutant remedy`: which changes would free most tests of a run, and what a change of one's own would free."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commutant.cli import console, options, results
from commutant.documents import text
from commutant.support import UsageError, paused_collector

if TYPE_CHECKING:
    from rich.console import Console

    from commutant.campaign import Verdict
    from commutant.corpus import TestCase
    from commutant.mtrace import Finding
    from commutant.remedy import Change, Saving, Savings, Scene, Sense, Traffic
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
        "commutant remedy runs/posix18-linux-1 --by transfers --mix stat=30,open=20",
    ),
)
@click.argument("run", type=click.Path(path_type=Path, file_okay=False))
@options.changes
@click.option(
    "--by",
    type=click.Choice(["tests", "transfers"]),
    default="tests",
    show_default=True,
    help="What a change is worth: tests that it frees, or transfers of lines from core to core that it saves.",
)
@click.option(
    "--cores",
    type=click.IntRange(2, 4096),
    metavar="N",
    help="By transfers: how many cores make the calls.  [default: 32]",
)
@click.option(
    "--mix", metavar="CALL=N,...", help="By transfers: how often each call is made.  [default: all pairs alike]"
)
@click.option("--limit", type=click.IntRange(1, 1000), default=_MOST, show_default=True, help="Changes to list.")
@options.output_format("text", "json")
@options.output_file
def command(
    run: Path,
    changes: tuple[tuple[str, str], ...],
    by: str,
    cores: int | None,
    mix: str | None,
    limit: int,
    format_: str,
    output: Path | None,
) -> int:
    """Says what changes of types and of accesses would free: tests that would share no memory any more.

    Without a change, ranks all that make sense: fields that move to a line of their own, entries of an array spread,
    counters divided per core, writes and reads left out. With changes, foretells what these do together. It
    calculates with the bytes that the run's tests touched; nothing is built or run.

    By transfers, says how many transfers of lines from core to core changes save while many cores make the calls again
    and again, also where no test is freed.
    """
    from commutant.remedy import (
        foretell,
        print_foretold,
        print_next,
        print_ranking,
        print_savings,
        rank,
        remedy_document,
    )
    from commutant.runs import load_run

    results.refuse_existing(output)
    wanted = options.read_changes(changes)
    if by == "tests" and (cores is not None or mix is not None):
        raise UsageError(f"--{'mix' if mix is not None else 'cores'} is a matter of --by transfers")
    loaded = load_run(run)
    if by == "transfers" and any(way == "divide" for way, _ in changes):
        raise UsageError("--divide is a matter of --by tests: what a divided lock saves in transfers is not known")
    if by == "transfers":
        with paused_collector():
            _by_transfers(loaded, wanted, (cores, mix), limit, format_, output)
        return 0
    with paused_collector():
        scene = scene_in(loaded, loaded.verdicts())
        results.say_if_interrupted(loaded)
        for_keys = _for_keys(loaded)
        if not scene.tests:
            more = f"; {'; '.join(for_keys)}" if for_keys else "; there is nothing to change"
            raise UsageError(f"{run}: every judged test is conflict-free{more}")
        if not scene.has_pictures:
            console.message(f"{run} is of an earlier version: of each finding it has the bytes of one test only")
        tests = loaded.tests
        calls = {test: tuple(call.call for call in tests[test].calls) for test in scene.tests}
        if wanted:
            wanted = known_changes(scene, wanted)
            foretold = foretell(scene, wanted)
            rows = [(wanted, foretold, len(foretold.freed))]
        else:
            ranking = rank(scene, sense_of(scene, tests), limit)
            rows = [((one.change,), one.alone, one.together) for one in ranking.changes]
    if format_ == "json":
        document = remedy_document(rows, calls, len(scene.tests), scene.judged, scene.has_pictures)
        results.put([text(document)], output)
    elif wanted:
        saving = _saving_in(loaded, wanted) if not foretold.freed else None
        results.draw(lambda screen: print_foretold(foretold, calls, len(scene.tests), screen, saving), output)
    else:
        from rich.text import Text

        savings = _savings_in(loaded) if not ranking.changes else None

        def paint(screen: Console) -> None:
            print_ranking(ranking, calls, screen)
            for line in for_keys:
                screen.print(Text(line), soft_wrap=True)
            if savings is not None:
                print_savings(*savings, screen)
            if ranking.changes:
                print_next(run, loaded.info.target, ranking.changes[0].change, scene.locks(), screen)

        results.draw(paint, output)
    return 0


def _for_keys(run: Run) -> list[str]:
    """What parts keys that only some windows had: no test of the list above is freed by it."""
    from commutant.report import how_often, spreading_of
    from commutant.support import safe_text

    found = ((spreading_of(rate), how_often(rate)) for rate in run.summary.keys)
    return [safe_text(f"for some keys, {often}: {spreading}") for spreading, often in found if spreading]


_FEW = 3
"""Changes by transfers that are shown where none frees a test."""


def _saving_in(run: Run, changes: tuple[Change, ...]) -> Saving | None:
    """What changes that free nothing save in transfers; None if the run does not tell, or they save none."""
    from commutant.remedy import DEFAULT_CORES, Mix, saving_of

    try:
        saving = saving_of(traffic_in(run, DEFAULT_CORES), changes, Mix({}))
    except UsageError:
        return None
    return saving if saving.tests else None


def _savings_in(run: Run) -> tuple[Savings, Traffic] | None:
    """The changes that save most transfers; None if the run does not tell, or nothing saves any."""
    from commutant.remedy import DEFAULT_CORES, Mix, rank_savings

    try:
        traffic = traffic_in(run, DEFAULT_CORES)
        savings = rank_savings(traffic, sense_of(traffic.scene, run.tests), Mix({}), _FEW)
    except UsageError:
        return None
    return (savings, traffic) if savings.layouts or savings.accesses else None


def _by_transfers(
    run: Run,
    wanted: tuple[Change, ...],
    how: tuple[int | None, str | None],
    limit: int,
    format_: str,
    output: Path | None,
) -> None:
    """Puts out what changes save in transfers."""
    from commutant.remedy import (
        DEFAULT_CORES,
        Mix,
        mean_transfers,
        print_saving,
        print_savings,
        rank_savings,
        read_mix,
        saving_of,
        savings_document,
    )

    cores, mix_text = how
    mix = Mix({}) if mix_text is None else read_mix(mix_text)
    traffic = traffic_in(run, cores or DEFAULT_CORES)
    results.say_if_interrupted(run)
    if not traffic.scene.tests:
        raise UsageError(f"{run.path}: every judged test is conflict-free; there is nothing to change")
    if not traffic.tests:
        raise UsageError(f"{run.path}: a call fails in each judged test; expected tests whose calls all succeed")
    if wanted:
        wanted = known_changes(traffic.scene, wanted)
        for place in dict.fromkeys(place for change in wanted for place in change.places):
            if traffic.crosses_border(place):
                console.message(f"{place} lies across a border of lines: moved to one of its own, it takes one alone")
        asked = saving_of(traffic, wanted, mix)
        if format_ == "text":
            results.draw(lambda screen: print_saving(asked, traffic, screen), output)
        else:
            document = savings_document({"requested": [asked]}, traffic, mix, mean_transfers(traffic, mix))
            results.put([text(document)], output)
        return
    savings = rank_savings(traffic, sense_of(traffic.scene, run.tests), mix, limit)
    if format_ == "text":
        results.draw(lambda screen: print_savings(savings, traffic, screen), output)
    else:
        lists = {"layouts": savings.layouts, "accesses": savings.accesses, "worse": savings.worse}
        results.put([text(savings_document(lists, traffic, mix, savings.total))], output)


def scene_in(run: Run, verdicts: Iterable[Verdict]) -> Scene:
    """The scene of a run's verdicts; raises UsageError if the run does not tell which bytes were touched."""
    from commutant.remedy import scene_of

    try:
        return scene_of(verdicts)
    except UsageError as error:
        raise _lacking(run, error) from None


def _lacking(run: Run, error: UsageError) -> UsageError:
    """What a run of an earlier version lacks, and the command that makes it again."""
    import shlex

    command = shlex.join(("commutant", "check", str(run.path), "--target", run.info.target))
    return UsageError(f"{run.path}: {error}; make it again with `{command}`")


def traffic_in(run: Run, cores: int) -> Traffic:
    """The traffic of a run; raises UsageError if the run does not tell in which order lines were touched."""
    from commutant.remedy import traffic_of
    from commutant.report import may_fail

    verdicts = list(run.verdicts())
    scene = scene_in(run, verdicts)
    tests = run.tests
    calls = {verdict.test_id: tuple(call.call for call in tests[verdict.test_id].calls) for verdict in verdicts}
    failing = {test for test in calls if may_fail(tests[test].orders)}
    try:
        return traffic_of(verdicts, scene, calls, failing, cores)
    except UsageError as error:
        raise _lacking(run, error) from None


def known_changes(scene: Scene, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """The changes, each lock with its full name: a lock may be named without who asked for its memory, as fields are.

    Raises UsageError if no shared line of the run has the place of a change, and says what is like it.
    """
    from commutant.remedy import Way

    known: list[Change] = []
    for change in changes:
        if change.way is Way.DIVIDE:
            known += _divided(scene, change)
            continue
        for place in change.places:
            _refuse_unknown(scene, change, place)
        known.append(change)
    return tuple(dict.fromkeys(known))


def _divided(scene: Scene, change: Change) -> list[Change]:
    """The locks that a change divides: one by its full name, or all that have the name before the brackets."""
    import difflib

    from commutant.remedy import without_owner

    locks = scene.locks()
    named = [lock for lock in locks if lock == change.place] or [
        lock for lock in locks if without_owner(lock) == change.place
    ]
    if not named:
        near = difflib.get_close_matches(change.place, list(map(without_owner, locks)), 3)
        hint = f"; did you mean {', '.join(dict.fromkeys(near))}?" if near else ""
        raise UsageError(f"--divide {change.place}: no shared line of the run is this lock, or lies under it{hint}")
    return [dataclasses.replace(change, place=lock) for lock in named]


def _refuse_unknown(scene: Scene, change: Change, place: str) -> None:
    import difflib

    if scene.has(place):
        return
    if shared := scene.joined(place):
        raise UsageError(
            f"--{change.way.value} {place}: lies in the same bytes as other fields ({shared}), as bit "
            "fields do; a run tells bytes apart, no bits"
        )
    near = difflib.get_close_matches(place, scene.members(), 3)
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise UsageError(f"--{change.way.value} {place}: no shared line of the run has this place{hint}")


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
