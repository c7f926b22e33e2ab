"""What two calls gain or lose from one interface to another: situations in which only one of the two commutes.

A *situation* is a path of the first interface's calls: what it has decided of the state and the arguments. Where these
calls do not commute and the second interface's do, for some value of the parameters that only it has, the situation is
*gained*; where they commute and the second's do not for any value, it is *lost*. Wholly means in every state of the
situation. A path is no situation of its own if it is only an unlucky choice of the implementation: another one commutes
in its states.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from commutant.analyzer import (
    Conjunction,
    JointCallSets,
    JointOutcome,
    constants_of,
    contradictory,
    facts_of,
    rename_constants,
)
from commutant.guard import faults_of, no_state, time_limit
from commutant.lang import Interface, Sort
from commutant.symbolic import Context, explore
from commutant.testgen import Example, Valuation, commutes_concretely, difference, sorts_of

_OWN = re.compile(r"\w+\.\d+'\.")
_CHOICE = re.compile(r"\w+\.\d+'?\.choice\.")
_PARAMETER = re.compile(r"\w+\.\d+'\.(\w+)$")


class TwoExamples(NamedTuple):
    """One state and arguments, as each of the two interfaces has them."""

    first: Example
    second: Example

    @property
    def size(self) -> tuple[int, int, int]:
        """Smaller is simpler."""
        return self.first.size

    @property
    def is_confirmed(self) -> bool:
        """Whether both models, run on these values, show it: one tells the orders apart, the other does not."""
        refused, commuting = self if self.second.commutes else reversed(self)
        return difference(refused) is not None and commutes_concretely(commuting)


@dataclass(frozen=True, slots=True)
class JointPath:
    """A path through both interfaces: what it decided, and its two verdicts. The first `decided` facts are of the first
    interface's calls."""

    facts: Conjunction
    decided: int
    first_commutes: bool
    second_commutes: bool
    example: TwoExamples | None

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
    """A situation gained or lost: wholly or in part, by which values of the second interface's own parameters (the
    fewest), and an example."""

    wholly: bool
    parameters: frozenset[str]
    example: TwoExamples


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
    with time_limit(first, calls):
        leaves = list(_leaves(sets, sorts))
    if not leaves:
        raise no_state(first, calls)
    situations = [list(group) for _, group in groupby(leaves, key=lambda leaf: leaf.facts[: leaf.decided])]
    commuting = [_renamed(group[0]) for group in situations if group[0].first_commutes]
    for group in situations:
        _judge(group, commuting, comparison)
    return comparison


def _leaves(sets: JointCallSets, sorts: dict[str, type[Sort]]) -> Iterator[JointPath]:
    for path in explore(sets.run):
        found = path.result
        if found is None:
            continue
        first, second = found.first.commutes, found.second.commutes
        example = _example(sets, path.context, found, sorts) if first != second else None
        yield JointPath(facts_of(path.context, path.decisions), found.decided, first, second, example)


def _example(sets: JointCallSets, context: Context, found: JointOutcome, sorts: dict[str, type[Sort]]) -> TwoExamples:
    valuation = Valuation(context, sorts)
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


def _judge(group: Sequence[JointPath], commuting: Sequence[Conjunction], comparison: SetComparison) -> None:
    """Counts a situation, given as the paths through it."""
    facts = group[0].facts[: group[0].decided]
    if group[0].first_commutes:
        comparison.commuting += 1
        if not _covered(group, group[0].decided):
            changed = [leaf for leaf in group if not leaf.second_commutes]
            wholly = not any(leaf.second_commutes for leaf in group)
            comparison.lost.append(_change(changed, wholly=wholly))
        return
    if _has_choice(facts) and any(not contradictory([*facts, *other]) for other in commuting):
        comparison.unlucky += 1
        return
    comparison.refused += 1
    changed = [leaf for leaf in group if leaf.second_commutes]
    if changed:
        comparison.gained.append(_change(changed, wholly=_covered(group, group[0].decided)))


def _change(leaves: Sequence[JointPath], *, wholly: bool) -> ChangedSituation:
    fewest = min(leaves, key=lambda leaf: (len(leaf.parameters), sorted(leaf.parameters)))
    alike = [leaf.example for leaf in leaves if leaf.parameters == fewest.parameters and leaf.example is not None]
    return ChangedSituation(wholly, fewest.parameters, min(alike, key=lambda example: example.size))


def _covered(leaves: Sequence[JointPath], depth: int) -> bool:
    """Whether in every state of these paths, which have decided alike so far, the second interface's calls commute for
    some value of what is its own: of its parameters and its choices."""
    if len(leaves) == 1:
        return leaves[0].second_commutes
    sides: dict[bool, list[JointPath]] = {}
    for leaf in leaves:
        sides.setdefault(leaf.facts[depth].holds, []).append(leaf)
    found = [_covered(side, depth + 1) for side in sides.values()]
    return any(found) if any(map(_OWN.match, constants_of(leaves[0].facts[depth]))) else all(found)


def _has_choice(facts: Conjunction) -> bool:
    return any(_CHOICE.match(name) for fact in facts for name in constants_of(fact))


def _renamed(leaf: JointPath) -> Conjunction:
    """What the first interface has decided, with its choices under other names: two paths speak of two choices even if
    they call them the same."""
    facts = leaf.facts[: leaf.decided]
    choices = {name for fact in facts for name in constants_of(fact) if _CHOICE.match(name)}
    return rename_constants(facts, {name: f"{name} of another path" for name in choices})
