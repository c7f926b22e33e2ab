"""Analyses sets of calls: counts per set, and on demand the conditions behind them.

Counting needs only the exploration. Conditions are simplified when somebody asks for them, since that costs more than
finding them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement
from math import prod
from typing import Any, Literal

from msgspec import UNSET, structs

from commutant.analyzer.choices import Choices
from commutant.analyzer.commute import CallSet
from commutant.analyzer.condition import Conjunction, Leaf, fact_entry, facts_of
from commutant.analyzer.document import AnalysisDocument, ConditionEntry, KeptSet, SetEntry
from commutant.analyzer.simplify import refusals, simplify
from commutant.analyzer.words.sentences import cases, sentences
from commutant.analyzer.words.smtlib import script
from commutant.analyzer.words.vocabulary import Vocabulary
from commutant.documents import DocumentError, encode
from commutant.documents import read as read_document
from commutant.guard import no_state, time_limit
from commutant.lang import Interface, Type, model_hash
from commutant.pool import FEW, KeptResults, MakeExecutor, ModelReference, map_in_processes, name_of_set
from commutant.support import (
    OnProgress,
    ResultCache,
    Shard,
    UsageError,
    did_you_mean,
    engine_hash,
    no_progress,
    plural,
)
from commutant.symbolic import explore

Detail = Literal["counts", "conditions", "smt2", "data"]
"""What `analyze` works out at once: the counts alone, or also the conditions as sentences, as SMT-LIB scripts, or as
data for programs, with both."""

_Work = tuple[ModelReference, tuple[str, ...], Detail]
"""A set of calls to analyse: of which model, and what is to be worked out."""


@dataclass
class SetAnalysis:
    """What was found for one set of calls.

    `paths` counts the paths through well-formed states, `commutative_paths` those on which the calls commute, and
    `unknown` the questions left open, of which the engine has none by construction. `known_conditions` and `known_smt2`
    are there if they were asked for.
    """

    interface: type[Interface]
    calls: tuple[str, ...]
    paths: int
    commutative_paths: int
    unknown: int = 0
    known_conditions: list[str] | None = field(default=None, repr=False)
    known_smt2: str | None = field(default=None, repr=False)
    known_data: tuple[ConditionEntry, ...] | None = field(default=None, repr=False)
    _leaves: tuple[Leaf, ...] | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Between processes without the paths, and with the model as it was loaded."""
        counts = (self.paths, self.commutative_paths, self.unknown)
        known = (self.known_conditions, self.known_smt2, self.known_data)
        return _set_analysis, (ModelReference(self.interface), self.calls, *counts, *known)

    @property
    def counts_text(self) -> str:
        """`55 paths, 24 of them commute`."""
        commutative = plural(self.commutative_paths, "of them commutes", "of them commute")
        text = f"{plural(self.paths, 'path')}, {commutative}"
        return f"{text}, {self.unknown} unknown" if self.unknown else text

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every explored path, in the model's own names."""
        if self._leaves is None:
            self._leaves = explore_leaves(self.interface, self.calls)
        return self._leaves

    @cached_property
    def cubes(self) -> list[Conjunction]:
        """The simplified commutativity condition: the calls commute where one of the cubes holds."""
        return simplify(self.leaves, self.choices)

    @cached_property
    def choices(self) -> Choices:
        """What the specification leaves to the implementation on the paths of this set."""
        return Choices(self._choice_types, self.vocabulary.presence, self.vocabulary.bounds)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names that conditions use."""
        signatures = tuple(self.interface.signature(call) for call in self.calls)
        return Vocabulary(self.interface, signatures, self._choice_types)

    @property
    def _choice_types(self) -> dict[str, Type]:
        return {name: type_ for leaf in self.leaves for name, type_ in leaf.choices}

    @property
    def conditions(self) -> list[str]:
        """The commutativity condition as sentences, one per case."""
        if self.known_conditions is not None:
            return self.known_conditions
        return sentences(self.cubes, self.calls, self.vocabulary)

    @property
    def cases(self) -> list[tuple[str, Conjunction]]:
        """The cases in which the calls commute: sentence and cube."""
        return cases(self.cubes, self.calls, self.vocabulary)

    @property
    def refusals(self) -> list[tuple[str, list[str]]]:
        """Per difference that a caller could see ("result of rename.0"), when it shows."""
        return [(name, [text for text, _ in found]) for name, found in self.refused_cases]

    @property
    def refused_cases(self) -> list[tuple[str, list[tuple[str, Conjunction]]]]:
        """Per difference that a caller could see, the cases in which it shows: sentence and cube."""
        grouped: dict[str, list[Conjunction]] = {}
        for difference, cube in refusals(self.leaves, self.choices):
            apart = self.choices.renamed(cube)
            if any(
                self.vocabulary.chosen_in(other) and not self.choices.facts.contradictory([*apart, *other])
                for other in self.cubes
            ):
                difference += ", unless another choice makes them commute"
            grouped.setdefault(difference, []).append(cube)
        return [(name, cases(cubes, self.calls, self.vocabulary)) for name, cubes in grouped.items()]

    def to_smt2(self) -> str:
        """The condition as an SMT-LIB script."""
        if self.known_smt2 is not None:
            return self.known_smt2
        return script(self.interface.interface_name, self.calls, self.cubes, self.vocabulary)

    def entry(self) -> SetEntry:
        """The set's entry in the document of `analyze`, with the conditions if they were asked for as data."""
        counts = SetEntry(self.calls, self.paths, self.commutative_paths, self.unknown)
        if self.known_data is None:
            return counts
        smt2 = UNSET if self.known_smt2 is None else self.known_smt2
        return structs.replace(counts, conditions=self.known_data, smt2=smt2)


def _set_analysis(reference: ModelReference, *found: Any) -> SetAnalysis:
    return SetAnalysis(reference.model, *found)


@dataclass
class Analysis:
    """Sets of one size, and how long it took to get them; from the cache, hardly any time."""

    interface: type[Interface]
    size: int
    seconds: float
    sets: tuple[SetAnalysis, ...]

    def document(self) -> AnalysisDocument:
        """The document of `analyze`."""
        sets = tuple(one.entry() for one in self.sets)
        return AnalysisDocument(self.interface.interface_name, self.size, round(self.seconds, 3), sets)


def conditions_fit_on_a_screen(calls: Sequence[str] | None, size: int) -> bool:
    """Whether conditions are worth printing: of pairs, and of one set that is named; those of all larger sets fill
    books."""
    return size <= 2 or (calls is not None and len(calls) == size)


def analyze(
    interface: type[Interface],
    calls: Sequence[str] | None = None,
    size: int = 2,
    *,
    with_self: bool = False,
    detail: Detail = "counts",
    jobs: int = 1,
    on_progress: OnProgress = no_progress,
    make_executor: MakeExecutor | None = None,
    cache: ResultCache | None = None,
    shard: Shard | None = None,
) -> Analysis:
    """Explores every set of `size` calls (paper, section 5.1) among `calls`, or among all calls of the interface.

    With as many names in `calls` as `size`, exactly that set is analysed; `with_self`, all sets made of these names, a
    call with itself included. `detail` says what is worked out at once
    besides the counts, on all processes; what is not is worked out when it is asked for. With a cache, sets that
    were analysed before are taken from it, and each is kept as soon as it is known. With a shard, only its sets are
    analysed. Raises UsageError for an unknown call, a size below 1, or a
    model that cannot be analysed.
    """
    started = time.perf_counter()
    chosen = shard_of_sets(sets_of_calls(interface, calls, size, with_self=with_self), shard)

    def explore_sets(work: Sequence[_Work], on_result: Callable[[int, SetAnalysis], None]) -> None:
        costs = estimated_costs(interface, [one for _, one, _ in work], jobs)
        map_in_processes(
            *(_analyze_set, work, jobs, on_progress),
            make_executor=make_executor,
            costs=costs,
            name=name_of_set,
            on_result=on_result,
        )

    of_all: dict[str, object] = {"model": model_hash(interface), "detail": detail}
    if cache is not None:
        of_all["engine"] = engine_hash("lang", "symbolic", "guard", "pool", "analyzer")
    kept = KeptResults(cache, "analysis", lambda piece: {**of_all, "calls": list(piece[1])}, _to_kept, _from_kept)
    sets = kept.complete([(ModelReference(interface), one, detail) for one in chosen], explore_sets)
    return Analysis(interface, size, time.perf_counter() - started, tuple(sets))


def estimated_costs(interface: type[Interface], chosen: Sequence[tuple[str, ...]], jobs: int) -> list[float] | None:
    """Which sets take long: paths of a set are about as many as the products of those of its calls. None where it does
    not matter."""
    if jobs <= 1 or len(chosen) < FEW:
        return None
    paths = {call: _count(interface, (call,))[0] for call in {call for one in chosen for call in one}}
    return [prod(paths[call] for call in one) for one in chosen]


def _to_kept(one: SetAnalysis) -> bytes:
    """A set as it is kept in the cache."""
    counts = (one.paths, one.commutative_paths, one.unknown)
    return encode(KeptSet(one.calls, *counts, one.known_conditions, one.known_smt2, one.known_data))


def _from_kept(work: _Work, kept: bytes) -> SetAnalysis | None:
    """The set that `_to_kept` wrote; None for anything else."""
    reference, calls, _ = work
    try:
        read = read_document(KeptSet, kept)
    except DocumentError:
        return None
    return SetAnalysis(reference.model, *structs.astuple(read)) if read.calls == calls else None


def shard_of_sets(chosen: Sequence[tuple[str, ...]], shard: Shard | None) -> Sequence[tuple[str, ...]]:
    """The sets of a shard; all without one. Raises UsageError if there are fewer sets than shards."""
    if shard is None:
        return chosen
    shard.require_piece(len(chosen), plural(len(chosen), "set of calls", "sets of calls"))
    return shard.of(chosen)


def sets_of_calls(
    interface: type[Interface], calls: Sequence[str] | None, size: int, *, with_self: bool = False, sample: int = 1
) -> list[tuple[str, ...]]:
    """The sets to analyse, in the order of the interface's text: the one that as many names as `size` make, or all
    (`with_self`: always all, in which a call may occur more than once); with `sample`, every `sample`th of them."""
    if size < 1:
        raise UsageError(f"expected a set size of at least 1, got {size}")
    known = interface.call_names()
    for name in calls or ():
        if name not in known:
            guess = did_you_mean(name, known)
            raise UsageError(f"{interface.interface_name} has no call {name!r}; it has {', '.join(known)}{guess}")
    if calls and len(calls) == size and not with_self:
        return [tuple(sorted(calls, key=known.index))]
    return list(combinations_with_replacement([name for name in known if not calls or name in calls], size))[::sample]


def explore_leaves(interface: type[Interface], calls: tuple[str, ...]) -> tuple[Leaf, ...]:
    """Every path of one set of calls, in the model's own names."""
    leaves = []
    with time_limit(interface, calls):
        for path in explore(CallSet(interface, calls).run):
            outcome = path.result
            difference = outcome.difference if outcome is not None else None
            choices = outcome.choices if outcome is not None else ()
            leaves.append(Leaf(facts_of(path.context, path.decisions), path.feasible, difference, choices))
    return tuple(leaves)


def _analyze_set(work: _Work) -> SetAnalysis:
    reference, calls, detail = work
    interface = reference.model
    if detail == "counts":
        return SetAnalysis(interface, calls, *_count(interface, calls))
    leaves = explore_leaves(interface, calls)
    paths = sum(leaf.feasible for leaf in leaves)
    if not paths:
        raise no_state(interface, calls)
    one = SetAnalysis(interface, calls, paths, sum(leaf.commutes for leaf in leaves), _leaves=leaves)
    if detail == "conditions":
        one.known_conditions = one.conditions
    else:
        one.known_smt2 = one.to_smt2()
    if detail == "data":
        one.known_data = tuple(ConditionEntry(text, tuple(map(fact_entry, cube))) for text, cube in one.cases)
    return replace(one, _leaves=None)


def _count(interface: type[Interface], calls: tuple[str, ...]) -> tuple[int, int]:
    paths = commutative = 0
    with time_limit(interface, calls):
        for path in explore(CallSet(interface, calls).run):
            if path.result is not None:
                paths += 1
                commutative += path.result.commutes
    if not paths:
        raise no_state(interface, calls)
    return paths, commutative
