"""Analyses sets of calls: counts per set, and on demand the conditions behind them.

Counting needs only the exploration. Conditions are simplified when somebody asks for them, since that costs more than
finding them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement

from commutant.analyzer.choices import Choices
from commutant.analyzer.commute import CallSet
from commutant.analyzer.condition import Cube, Leaf, contradictory, facts_of
from commutant.analyzer.faults import no_state, time_limit
from commutant.analyzer.parallel import Progress, map_in_processes
from commutant.analyzer.sentences import sentences
from commutant.analyzer.simplify import refusals, simplify
from commutant.analyzer.smtlib import script
from commutant.analyzer.vocabulary import Vocabulary
from commutant.errors import UsageError
from commutant.lang.interface import Interface
from commutant.lang.types import Type
from commutant.symbolic import explore

SCHEMA_VERSION = 1


@dataclass
class SetAnalysis:
    """What was found for one set of calls.

    `paths` counts the paths through well-formed states, `commutative_paths` those on which the calls commute, and
    `unknown` the questions left open, of which the engine has none by construction.
    """

    interface: type[Interface]
    calls: tuple[str, ...]
    paths: int
    commutative_paths: int
    unknown: int = 0
    _leaves: tuple[Leaf, ...] | None = field(default=None, repr=False)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Every explored path, in the model's own names."""
        if self._leaves is None:
            self._leaves = explore_leaves(self.interface, self.calls)
        return self._leaves

    @cached_property
    def cubes(self) -> list[Cube]:
        """The simplified commutativity condition: the calls commute where one of the cubes holds."""
        return simplify(self.leaves, self.choices)

    @cached_property
    def choices(self) -> Choices:
        """What the specification leaves to the implementation on the paths of this set."""
        return Choices(self._choice_types, self.vocabulary.presence)

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
        return sentences(self.cubes, self.calls, self.vocabulary)

    @property
    def refusals(self) -> list[tuple[str, list[str]]]:
        """Per difference that a caller could see ("result of rename.0"), when it shows."""
        grouped: dict[str, list[Cube]] = {}
        for difference, cube in refusals(self.leaves, self.choices):
            apart = self.choices.renamed(cube)
            if any(self.vocabulary.chosen_in(other) and not contradictory([*apart, *other]) for other in self.cubes):
                difference += ", unless another choice makes them commute"
            grouped.setdefault(difference, []).append(cube)
        return [(name, sentences(cubes, self.calls, self.vocabulary)) for name, cubes in grouped.items()]

    def to_smt2(self) -> str:
        """The condition as an SMT-LIB script."""
        return script(self.interface.interface_name, self.calls, self.cubes, self.vocabulary)

    def to_json(self) -> dict[str, object]:
        """The set's entry in the JSON document of `analyze`."""
        return {
            "calls": list(self.calls),
            "paths": self.paths,
            "commutative_paths": self.commutative_paths,
            "unknown": self.unknown,
        }


@dataclass
class Analysis:
    """All sets of one size, and how long the analysis took."""

    interface: type[Interface]
    size: int
    seconds: float
    sets: tuple[SetAnalysis, ...]

    def to_json(self) -> dict[str, object]:
        """The JSON document of `analyze` (docs/schemas/analysis.schema.json)."""
        return {
            "schema_version": SCHEMA_VERSION,
            "interface": self.interface.interface_name,
            "size": self.size,
            "seconds": round(self.seconds, 3),
            "sets": [one.to_json() for one in self.sets],
        }


def analyze(
    interface: type[Interface],
    calls: Sequence[str] | None = None,
    size: int = 2,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Analysis:
    """Explores every set of `size` calls (paper, section 5.1) among `calls`, or among all calls of the interface.

    With as many names in `calls` as `size`, exactly that set is analysed. Raises UsageError for an unknown call, a size
    below 1, or a model that cannot be analysed.
    """
    started = time.perf_counter()
    chosen = sets_of_calls(interface, calls, size)
    counts = map_in_processes(_count, [(interface, one) for one in chosen], jobs, progress)
    sets = tuple(
        SetAnalysis(interface, one, paths, commutative)
        for one, (paths, commutative) in zip(chosen, counts, strict=True)
    )
    return Analysis(interface, size, time.perf_counter() - started, sets)


def sets_of_calls(interface: type[Interface], calls: Sequence[str] | None, size: int) -> list[tuple[str, ...]]:
    """The sets to analyse, in the order of the interface's text."""
    if size < 1:
        raise UsageError(f"expected a set size of at least 1, got {size}")
    known = interface.call_names()
    for name in calls or ():
        if name not in known:
            raise UsageError(f"{interface.interface_name} has no call {name!r}; it has {', '.join(known)}")
    if calls and len(calls) == size:
        return [tuple(sorted(calls, key=known.index))]
    return list(combinations_with_replacement([name for name in known if not calls or name in calls], size))


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


def _count(work: tuple[type[Interface], tuple[str, ...]]) -> tuple[int, int]:
    interface, calls = work
    paths = commutative = 0
    with time_limit(interface, calls):
        for path in explore(CallSet(interface, calls).run):
            if path.result is not None:
                paths += 1
                commutative += path.result.commutes
    if not paths:
        raise no_state(interface, calls)
    return paths, commutative
