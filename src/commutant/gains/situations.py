"""What two calls gain or lose from one interface to another: situations in which only one of the two commutes.

A *situation* is a path of the first interface's calls: what it has decided of the state and the arguments. Where these
calls do not commute and the second interface's do, for some value of the parameters that only it has, the situation is
*gained*; where they commute and in some state the second's do not for any value, it is *lost*. Wholly means in every
state of the situation. A path is no situation of its own if it is only an unlucky choice of the implementation: another
one commutes in its states.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from commutant.analyzer import (
    Conjunction,
    JointCallSets,
    JointOutcome,
    Vocabulary,
    constants_of,
    contradictory,
    facts_of,
    rename_constants,
)
from commutant.gains.coverage import Coverage
from commutant.gains.examples import TwoExamples
from commutant.guard import faults_of, no_state, time_limit
from commutant.lang import Interface, Sort
from commutant.symbolic import Context, explore
from commutant.testgen import Example, Valuation, sorts_of

_OWN = re.compile(r"\w+\.\d+'\.")
_CHOICE = re.compile(r"\w+\.\d+'?\.choice\.")
_PARAMETER = re.compile(r"\w+\.\d+'\.(\w+)$")

MAX_EXAMPLES = 16
"""This many examples of a loss are run to find one that shows it."""


@dataclass(frozen=True, slots=True)
class JointPath:
    """A path through both interfaces: what it decided, and its two verdicts. The first `decided` facts are of the first
    interface's calls."""

    facts: Conjunction
    decided: int
    first_commutes: bool
    second_commutes: bool
    examples: tuple[TwoExamples, ...]

    @property
    def state_facts(self) -> Conjunction:
        """What was decided but of what is the second interface's own: its parameters and its choices."""
        return tuple(fact for fact in self.facts if not any(map(_OWN.match, constants_of(fact))))

    @property
    def parameters(self) -> frozenset[str]:
        """What was decided of parameters that only the second interface has: `nlink`, or `not nlink`."""
        found = set()
        for fact in self.facts[self.decided :]:
            for name in constants_of(fact):
                parameter = _PARAMETER.match(name)
                if parameter:
                    found.add(f"{'' if fact.holds or fact.kind != 'bool' else 'not '}{parameter[1]}")
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class ChangedSituation:
    """A situation gained or lost: wholly or in part, gained by which values of the second interface's own parameters
    (the fewest), and an example; `confirmed`: runs of both models show it."""

    wholly: bool
    parameters: frozenset[str]
    example: TwoExamples
    confirmed: bool


@dataclass(slots=True)
class SetComparison:
    """What was found for one set of calls and those that correspond to them.

    `refused` and `commuting` count the situations of the first interface, `unlucky` its paths that are none.
    """

    calls: tuple[str, ...]
    calls_of_second: tuple[str, ...]
    own_parameters: tuple[str, ...]
    refused: int = 0
    commuting: int = 0
    unlucky: int = 0
    gained: list[ChangedSituation] = field(default_factory=list)
    lost: list[ChangedSituation] = field(default_factory=list)


def compare_set(
    first: type[Interface], second: type[Interface], calls: tuple[str, ...], calls_of_second: tuple[str, ...]
) -> SetComparison:
    """Explores a set of calls of both interfaces together; UsageError for models that cannot be explored so."""
    sets = JointCallSets(first, second, calls, calls_of_second)
    own = tuple(sorted({name for names in sets.own_parameters for name in names}))
    comparison = SetComparison(calls, calls_of_second, own)
    sorts = {**sorts_of(first), **sorts_of(second)}
    outside: list[Conjunction] = []
    with time_limit(first, calls):
        leaves = list(_leaves(sets, sorts, outside))
    if not leaves:
        raise no_state(first, calls)
    situations = [list(group) for _, group in groupby(leaves, key=lambda leaf: leaf.facts[: leaf.decided])]
    commuting = [_renamed(group[0]) for group in situations if group[0].first_commutes]
    halves = ((first, sets.first.signatures), (second, sets.second.signatures))
    bounds = {name: bound for half in halves for name, bound in Vocabulary(*half).bounds.items()}
    coverage = Coverage(bounds, outside)
    for group in situations:
        _judge(group, commuting, coverage, sets.own_parameters, comparison)
    return comparison


def _leaves(sets: JointCallSets, sorts: dict[str, type[Sort]], outside: list[Conjunction]) -> Iterator[JointPath]:
    """The paths; what no well-formed state has decided is put into `outside`."""
    for path in explore(sets.run):
        found, facts = path.result, facts_of(path.context, path.decisions)
        if found is None:
            leaf = JointPath(facts, 0, False, False, ())
            if not _has_choice(facts):  # else it may be the choice that is excluded
                outside.append(leaf.state_facts)
            continue
        first, second = found.first.commutes, found.second.commutes
        is_lost = first and not second and any(sets.own_parameters)
        examples = tuple(
            _example(sets, path.context, found, sorts, unusual=unusual)
            for unusual in ((False, True) if is_lost else (False,) if first != second else ())
        )
        yield JointPath(facts, found.decided, first, second, examples)


def _example(
    sets: JointCallSets, context: Context, found: JointOutcome, sorts: dict[str, type[Sort]], *, unusual: bool
) -> TwoExamples:
    valuation = Valuation(context, sorts, unusual=unusual)
    halves: list[tuple[bool, Interface, tuple[tuple[str, dict[str, Any]], ...]]] = []
    for calls, outcome in ((sets.first.calls, found.first), (sets.second.calls, found.second)):
        arguments = [{name: valuation(value) for name, value in given.items()} for given in outcome.arguments]
        state = valuation.state(outcome.initial)
        if halves:
            for name in sets.shared:  # by both alike, of whichever calls have looked at it
                setattr(state, name, copy.deepcopy(getattr(halves[0][1], name)))
        with faults_of(type(state), "complete"):
            state.complete()
        halves.append((outcome.commutes, state, tuple(zip(calls, arguments, strict=True))))
    values = valuation.of_sorts()
    return TwoExamples(*(Example((), *half, values) for half in halves))


def _judge(
    group: Sequence[JointPath],
    commuting: Sequence[Conjunction],
    coverage: Coverage,
    own: Sequence[Collection[str]],
    comparison: SetComparison,
) -> None:
    """Counts a situation, given as the paths through it."""
    facts = group[0].facts[: group[0].decided]
    refused = [leaf for leaf in group if not leaf.second_commutes]
    served = [leaf for leaf in group if leaf.second_commutes]
    cubes = list(dict.fromkeys(leaf.state_facts for leaf in served))
    if group[0].first_commutes:
        comparison.commuting += 1
        lost = [leaf for leaf in refused if not coverage.covers(cubes, leaf.state_facts)]
        if lost:
            comparison.lost.append(_lost(lost, cubes, coverage, own))
        return
    if _has_choice(facts) and any(not contradictory([*facts, *other]) for other in commuting):
        comparison.unlucky += 1
        return
    comparison.refused += 1
    if served:
        wholly = all(coverage.covers(cubes, leaf.state_facts) for leaf in refused)
        comparison.gained.append(_gained(served, wholly=wholly))


def _gained(leaves: Sequence[JointPath], *, wholly: bool) -> ChangedSituation:
    fewest = min(leaves, key=lambda leaf: (len(leaf.parameters), sorted(leaf.parameters)))
    alike = [example for leaf in leaves if leaf.parameters == fewest.parameters for example in leaf.examples]
    smallest = min(alike, key=lambda example: example.size)
    return ChangedSituation(wholly, fewest.parameters, smallest, smallest.shows_gain)


def _lost(
    leaves: Sequence[JointPath], served: Sequence[Conjunction], coverage: Coverage, own: Sequence[Collection[str]]
) -> ChangedSituation:
    """A loss on these paths, with an example that shows it if there is one: of a path that is lost in part, some states
    are served by other values of what is the second interface's own."""
    candidates = [
        (coverage.meets(served, leaf.state_facts), example.size, example.second.size, number, example)
        for number, leaf in enumerate(leaves)
        for example in leaf.examples
    ]
    in_order = [example for *_, example in sorted(candidates, key=lambda one: one[:-1])]
    shown = next((example for example in in_order[:MAX_EXAMPLES] if example.shows_loss(own)), None)
    return ChangedSituation(not served, frozenset(), shown or in_order[0], shown is not None)


def _has_choice(facts: Conjunction) -> bool:
    return any(_CHOICE.match(name) for fact in facts for name in constants_of(fact))


def _renamed(leaf: JointPath) -> Conjunction:
    """What the first interface has decided, with its choices under other names: two paths speak of two choices even if
    they call them the same."""
    facts = leaf.facts[: leaf.decided]
    choices = {name for fact in facts for name in constants_of(fact) if _CHOICE.match(name)}
    return rename_constants(facts, {name: f"{name} of another path" for name in choices})
