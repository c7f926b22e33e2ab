"""Generates the corpus of an interface: per set of calls, per commutative path, per class, one test."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from commutant.analyzer import (
    Analysis,
    CallSet,
    PathOutcome,
    Phrase,
    SetAnalysis,
    Vocabulary,
    estimated_costs,
    facts_of,
    phrase,
    sentence_of,
    sets_of_calls,
    shard_of_sets,
)
from commutant.corpus import LEVELS, Corpus, Level, PackedTests, Untested, UntestedClasses, pack, shard_entry
from commutant.documents import DocumentError, encode, read
from commutant.guard import begin_path, no_state, time_limit
from commutant.lang import Interface, model_hash
from commutant.pool import KeptResults, MakeExecutor, ModelReference, map_in_processes, name_of_set
from commutant.support import (
    OnProgress,
    ResultCache,
    Shard,
    UsageError,
    engine_hash,
    no_progress,
    paused_collector,
    plural,
)
from commutant.symbolic import Context, Decision, Term
from commutant.testgen.classes import classes
from commutant.testgen.cover import Cover
from commutant.testgen.document import KeptCounts
from commutant.testgen.materialize import Materializer
from commutant.testgen.setups import Untestable

MAX_PHRASES = 1 << 14
"""This many facts in words are kept; then that begins again."""


def generate(
    interface: type[Interface],
    calls: Sequence[str] | None = None,
    size: int = 2,
    *,
    sample: int = 1,
    level: Level = "conflict",
    jobs: int = 1,
    on_progress: OnProgress = no_progress,
    make_executor: MakeExecutor | None = None,
    cache: ResultCache | None = None,
    shard: Shard | None = None,
) -> Corpus:
    """The tests of every set of `size` calls at a coverage level (see `classes`), with the analysis behind them; with
    `sample`, of one set in `sample` alone, and with `shard`, of those of a shard of these.

    Tests come in the order of the sets and their paths; ids are content hashes, so equal models give equal corpora.
    With a cache, sets that were made before are taken from it, and each is kept as soon as it is made. Raises
    UsageError as `analyze` does, and for an unknown level.
    """
    if level not in LEVELS:
        raise UsageError(f"unknown level {level!r}: expected one of {', '.join(LEVELS)}")
    started = time.perf_counter()
    all_sets = sets_of_calls(interface, calls, size, sample=sample)
    chosen = shard_of_sets(all_sets, shard)
    model = model_hash(interface)

    def generate_sets(work: Sequence[_Work], on_result: Callable[[int, GeneratedSet], None]) -> None:
        sets = [one for _, one, _ in work]
        names = (
            interface.call_names()
        )  # neighbours have calls at the end in common, or such as stand together in the text
        order = sorted(range(len(sets)), key=lambda number: [names.index(call) for call in reversed(sets[number])])
        with paused_collector():  # much is kept and nothing of it in a cycle; the search took a tenth of the time
            map_in_processes(
                *(_generate_set, work, jobs, on_progress),
                make_executor=make_executor,
                costs=estimated_costs(interface, sets, jobs),
                order=order,
                name=name_of_set,
                on_result=on_result,
            )

    of_all: dict[str, object] = {"model": model, "level": level}
    if cache is not None:
        of_all["engine"] = engine_hash("lang", "symbolic", "guard", "pool", "analyzer", "corpus", "testgen")
    kept = KeptResults(cache, "corpus", lambda piece: {**of_all, "calls": list(piece[1])}, _to_kept, _from_kept)
    found = kept.complete([(ModelReference(interface), one, level) for one in chosen], generate_sets)
    per_set = {one: generated.tests for one, generated in zip(chosen, found, strict=True) if generated.tests}
    tests = PackedTests(b"".join([generated.packed for generated in found]), per_set)
    untested = {
        "-".join(one): generated.untested for one, generated in zip(chosen, found, strict=True) if generated.untested
    }
    if untested and not per_set and shard is None:
        raise _no_tests(interface, untested)
    sets = tuple(
        SetAnalysis(interface, one, generated.paths, generated.commutative_paths)
        for one, generated in zip(chosen, found, strict=True)
    )
    return Corpus(
        interface.interface_name,
        level,
        model,
        tests,
        untested,
        Analysis(interface, size, time.perf_counter() - started, sets),
        any(generated.has_searched for generated in found),
        {one: generated.left_out for one, generated in zip(chosen, found, strict=True) if generated.left_out},
        shard_entry(shard, (model, level, all_sets), [generated.tests for generated in found]),
    )


def _no_tests(interface: type[Interface], untested: Mapping[str, Sequence[Untested]]) -> UsageError:
    """The error of a model for which not one test can be made: says what to write."""
    every = [one for of_set in untested.values() for one in of_set]
    most = max(every, key=lambda one: one.classes)
    count = sum(one.classes for one in every)
    advice = (
        "write `setup(self)`, which yields the calls that build this state (docs/reference/models.md)"
        if interface.setup is Interface.setup
        else "expected a setup() that builds such states (docs/reference/models.md)"
    )
    return UsageError(
        f"no test of {interface.interface_name} can be made ({plural(count, 'class', 'classes')}); most often: "
        f"{most.reason}{f', wanted: {most.example}' if most.example else ''}; {advice}"
    )


@dataclass(frozen=True, slots=True)
class GeneratedSet:
    """The tests of one set as a member of a corpus file, how many they are, how many more the level leaves out at most,
    and which of its classes have none; `has_searched`: the calls of a set-up were found by search."""

    packed: bytes
    calls: tuple[str, ...]
    tests: int
    left_out: int
    paths: int
    commutative_paths: int
    untested: tuple[Untested, ...]
    has_searched: bool


_Work = tuple[ModelReference, tuple[str, ...], Level]
"""A set of calls to make tests of: of which model, and at which level."""


def _to_kept(one: GeneratedSet) -> bytes:
    """A set as it is kept in the cache: a line of counts, and the packed tests."""
    counts = (one.tests, one.left_out, one.paths, one.commutative_paths)
    return encode(KeptCounts(one.calls, *counts, one.untested, one.has_searched)) + b"\n" + one.packed


def _from_kept(work: _Work, kept: bytes) -> GeneratedSet | None:
    """The set that `_to_kept` wrote; None for anything else."""
    first, _, packed = kept.partition(b"\n")
    try:
        counts = read(KeptCounts, first)
    except DocumentError:
        return None
    return GeneratedSet(packed, *structs.astuple(counts)) if counts.calls == work[1] else None


def _generate_set(work: _Work) -> GeneratedSet:
    reference, calls, level = work
    interface = reference.model
    call_set = CallSet(interface, calls)
    materializer = Materializer(interface, calls, level)
    words = _Words(Vocabulary(interface, call_set.signatures))
    cover = Cover(interface, calls) if level == "cover" else None
    lines: dict[str, str] = {}
    paths = commutative = left_out = 0
    untested = UntestedClasses()
    path: tuple[Decision, ...] | None = None
    outcome: PathOutcome | None = None
    on_path = ""
    with time_limit(interface, calls), paused_collector():
        for found in classes(call_set, level):
            begin_path()  # one path may have many classes, none of which is kept
            is_same_run = found.outcome is outcome
            if not is_same_run and found.path != path:  # classes of one path come one after the other
                paths += 1
                commutative += found.outcome.commutes
            path, outcome = found.path, found.outcome
            if not outcome.commutes:
                continue
            if not is_same_run:
                on_path = words.of_path(found.context, path, found.context.restricted)
            covered = None
            if cover is not None:
                covered = cover.of_class(found.context)
                if not cover.adds(covered):
                    left_out += materializer.count(found.context, outcome)
                    continue
            beside = words.sentence(found.context, found.beyond_path) if found.beyond_path else ""
            description = "; ".join(filter(None, (on_path, beside)))
            try:
                made = materializer.lines(found.context, outcome, commutative - 1, description)
            except Untestable as untestable:
                untested.add(untestable.reason, untestable.example)
                continue
            for test in made:
                if lines.setdefault(test.id, test.line) is test.line and cover is not None and covered is not None:
                    cover.add(test.id, covered, test.processes)
    if not paths:
        raise no_state(interface, calls)
    if cover is not None:
        kept = cover.kept()
        left_out += len(lines) - len(kept)
        lines = {test_id: line for test_id, line in lines.items() if test_id in kept}
    packed = pack(lines.values()) if lines else b""
    counts = (len(lines), left_out, paths, commutative)
    return GeneratedSet(packed, calls, *counts, untested.found, materializer.has_searched)


class _Words:
    """Decisions in words. What neighbouring paths decided alike is put into words once, and so is a fact that several
    paths share: terms are known by identity."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known: dict[tuple[object, ...], tuple[Phrase, list[Term]]] = {}
        self._path: tuple[Decision, ...] = ()
        self._of_path: list[Phrase] = []

    def of_path(self, context: Context, path: tuple[Decision, ...], left_out: Collection[int]) -> str:
        """What was decided on a path, but at some positions, as one sentence. Paths come in the order of exploration:
        the same decisions at the beginning of two that follow each other speak of the same unknowns."""
        common = next(
            (n for n, (one, other) in enumerate(zip(path, self._path, strict=False)) if one != other),
            min(len(path), len(self._path)),
        )
        del self._of_path[common:]
        self._of_path += [self._phrase(context, decision) for decision in path[common:]]
        self._path = path
        told = [phrase for position, phrase in enumerate(self._of_path) if position not in left_out]
        return sentence_of(told, self._vocabulary)

    def sentence(self, context: Context, decisions: Sequence[Decision]) -> str:
        """What was decided, as one sentence."""
        return sentence_of([self._phrase(context, decision) for decision in decisions], self._vocabulary)

    def _phrase(self, context: Context, decision: Decision) -> Phrase:
        literal, holds = decision
        kind, left, right = literal.kind, literal.left, literal.right
        key: tuple[object, ...]
        if kind == "bool":
            terms = [context.bool_terms[left]]
            key = (holds, id(terms[0]))
        elif kind == "same":
            terms = [context.sort_terms[left], context.sort_terms[right]]
            key = (holds, id(terms[0]), id(terms[1]))
        else:
            terms = [context.int_terms[variable] for variable, _ in left[0]]
            key = (holds, kind, left[1], *map(id, terms), *[coefficient for _, coefficient in left[0]])
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_PHRASES:
                self._known.clear()
            (fact,) = facts_of(context, (decision,))
            known = self._known[key] = phrase(fact, self._vocabulary), terms  # which keeps their identities theirs
        return known[0]
