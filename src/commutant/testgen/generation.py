"""Generates the corpus of an interface: per set of calls, per commutative path, per class, one test."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from commutant.analyzer import Analysis, CallSet, SetAnalysis, sets_of_calls
from commutant.analyzer.condition import facts_of
from commutant.analyzer.faults import no_state, time_limit
from commutant.analyzer.parallel import Progress, map_in_processes
from commutant.analyzer.sentences import sentence
from commutant.analyzer.vocabulary import Vocabulary
from commutant.errors import UsageError
from commutant.lang.interface import Interface
from commutant.lang.load import model_hash
from commutant.testgen.classes import LEVELS, Level, classes
from commutant.testgen.corpus import Corpus
from commutant.testgen.materialize import Materializer, NoSetup
from commutant.testgen.packed import PackedTests


def generate(
    interface: type[Interface],
    calls: Sequence[str] | None = None,
    size: int = 2,
    *,
    level: str = "conflict",
    jobs: int = 1,
    progress: Progress | None = None,
) -> Corpus:
    """The tests of every set of `size` calls at a coverage level (see `classes`), with the analysis behind them.

    Tests come in the order of the sets and their paths; ids are content hashes, so equal models give equal corpora.
    Raises UsageError as `analyze` does, and for an unknown level.
    """
    if level not in LEVELS:
        raise UsageError(f"unknown level {level!r}: expected one of {', '.join(LEVELS)}")
    started = time.perf_counter()
    chosen = sets_of_calls(interface, calls, size)
    found = map_in_processes(_generate_set, [(interface, one, level) for one in chosen], jobs, progress)
    tests = PackedTests(line for generated in found for line in generated.lines)
    without_setup = {
        "-".join(one): generated.without_setup
        for one, generated in zip(chosen, found, strict=True)
        if generated.without_setup
    }
    sets = tuple(
        SetAnalysis(interface, one, generated.paths, generated.commutative_paths)
        for one, generated in zip(chosen, found, strict=True)
    )
    analysis = Analysis(interface, size, time.perf_counter() - started, sets)
    return Corpus(interface.interface_name, level, model_hash(interface), tests, without_setup, analysis)


@dataclass(frozen=True, slots=True)
class GeneratedSet:
    """The tests of one set, as lines of a corpus, and how many of its classes have no set-up."""

    lines: tuple[str, ...]
    paths: int
    commutative_paths: int
    without_setup: int


def _generate_set(work: tuple[type[Interface], tuple[str, ...], Level]) -> GeneratedSet:
    interface, calls, level = work
    call_set = CallSet(interface, calls)
    materializer = Materializer(interface, calls, level)
    vocabulary = Vocabulary(interface, call_set.signatures)
    lines: list[str] = []
    paths: set[tuple[object, ...]] = set()
    commutative: dict[tuple[object, ...], int] = {}
    without_setup = 0
    on_path = ""
    with time_limit(interface, calls):
        for found in classes(call_set, level):
            if found.path not in paths:
                paths.add(found.path)
                told = [d for position, d in enumerate(found.path) if position not in found.context.restricted]
                on_path = sentence(facts_of(found.context, told), vocabulary)
            if not found.outcome.commutes:
                continue
            number = commutative.setdefault(found.path, len(commutative))
            beside = sentence(facts_of(found.context, found.beyond_path), vocabulary) if found.beyond_path else ""
            description = "; ".join(filter(None, (on_path, beside)))
            try:
                lines += materializer.lines(found.context, found.outcome, number, description)
            except NoSetup:
                without_setup += 1
    if not paths:
        raise no_state(interface, calls)
    return GeneratedSet(tuple(lines), len(paths), len(commutative), without_setup)
