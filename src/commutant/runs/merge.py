"""The run that runs of all shards of one corpus are together: as if one machine had run all of it."""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import structs

from commutant.campaign import KeyRate
from commutant.corpus import in_order, together
from commutant.runs.directory import (
    Run,
    RunInfo,
    RunWriter,
    hash_of_origin,
    hash_of_tests,
    load_run,
    new_directory,
    safe_folder_name,
)
from commutant.runs.finish import Took, finish
from commutant.runs.lines import TimedVerdict
from commutant.support import UsageError, paused_collector, plural
from commutant.targets import OF_MACHINE

_ALIKE = ("commutant", "target", "seed", "repeats", "naming")
"""What runs must say alike to be put together."""


def merge_runs(paths: Sequence[Path], directory: Path | None = None) -> Run:
    """A new run directory with the tests and verdicts of all shards; its seconds are those of the shard that took
    longest.

    Raises UsageError if one of the runs is not complete, if they are not all shards of one corpus, each once, or if
    they ran on different targets, kernels or versions.
    """
    with paused_collector():
        named = [(str(path), _complete(path)) for path in paths]
        places = in_order([(name, run.corpus) for name, run in named])
        named = [named[place] for place in places]
        _refuse_unlike(named)
        runs = [run for _, run in named]
        corpus = together([run.corpus for run in runs])
        info = structs.replace(
            runs[0].info,
            command=["commutant", *sys.argv[1:]],
            tests=len(corpus.tests),
            jobs=sum(run.info.jobs for run in runs),
            started=min(run.info.started for run in runs),
            tests_sha256=hash_of_tests(corpus),
            generated=None,
        )
        info = structs.replace(info, origin_sha256=hash_of_origin(info))
        summaries = [run.summary for run in runs]
        took = Took(max(one.seconds for one in summaries), max(one.start_seconds for one in summaries))
        keys = _keys_together(key for one in summaries for key in one.keys)
        path = new_directory(directory, f"{safe_folder_name(info.interface)}-{safe_folder_name(info.target)}")
        try:
            writer = RunWriter.create(path, info, corpus)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)  # nothing is in it that could be lost
            raise
        with writer:
            verdicts = sorted((one for run in runs for one in run.timed_verdicts()), key=lambda one: one[1])
            judged: list[TimedVerdict] = [(writer.append(verdict, seconds), seconds) for verdict, seconds in verdicts]
            return finish(writer, corpus, judged, took, keys)


def _complete(path: Path) -> Run:
    run = load_run(path)
    if not run.complete:
        judged = sum(1 for _ in run.verdicts())
        raise UsageError(
            f"{path} is not complete: {judged:,} of {plural(run.info.tests, 'test is', 'tests are')} judged; "
            f"`commutant resume {path}` goes on"
        )
    return run


def _refuse_unlike(named: Sequence[tuple[str, Run]]) -> None:
    (first_name, first), *others = named
    for name, other in others:
        for key, was, now in _differences(first.info, other.info):
            raise UsageError(
                f"{first_name} was run with {key} {was!r:.80}, {name} with {now!r:.80}; expected shards that differ in "
                f"nothing but their tests: check one of them again"
            )


def _differences(first: RunInfo, other: RunInfo) -> Iterable[tuple[str, object, object]]:
    for key in _ALIKE:
        if getattr(first, key) != getattr(other, key):
            yield key, getattr(first, key), getattr(other, key)
    one, another = first.target_description, other.target_description
    for key in sorted((one.keys() | another.keys()) - OF_MACHINE):
        if one.get(key) != another.get(key):
            yield key, one.get(key), another.get(key)


def _keys_together(keys: Iterable[KeyRate]) -> tuple[KeyRate, ...]:
    """What keys share by all shards, the most often first, as one campaign would give it."""
    by_place: dict[tuple[str, str], list[KeyRate]] = defaultdict(list)
    for key in keys:
        by_place[key.variable, key.sharing].append(key)
    rates = [
        KeyRate(
            same[0].variable,
            same[0].sharing,
            sum(one.tests for one in same),
            sum(one.windows for one in same),
            sum(one.shared for one in same),
        )
        for same in by_place.values()
    ]
    return tuple(sorted(rates, key=lambda rate: (-rate.shared / rate.windows, rate.variable, rate.sharing)))
