"""From paths to a short list of conditions that says exactly the same.

The commutative paths are a union of cubes. Neighbouring paths with the same verdict are merged along the decision tree;
each cube then loses every fact that it can lose without touching a path on which the calls do not commute; last, cubes
that others cover are dropped. A fact whose other side the model excludes (an ill-formed state) tells nothing and goes
first: restrictions of the model are not conditions of commutativity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

from commutant.analyzer.choices import Choices
from commutant.analyzer.condition import Conjunction, Fact, Leaf, contradictory

Region = list[Conjunction] | None
"""A union of cubes; None where no state belongs to the place in the tree at all."""


def simplify(leaves: Sequence[Leaf], choices: Choices) -> list[Conjunction]:
    """Cubes whose union is exactly the set of states in which the calls commute, choices eliminated."""
    commuting = _Region(_merge(leaves, 0, lambda leaf: leaf.commutes) or [], choices)
    refuting = _Region(_merge(leaves, 0, lambda leaf: leaf.feasible and not leaf.commutes) or [], choices)
    outside = _Refuting([choices.renamed(cube) for cube in refuting.without(commuting)])
    widened = [outside.widen(cube) for cube in _distinct(commuting.cubes)]
    return _cover(_distinct(widened), commuting.cubes)


def refusals(leaves: Sequence[Leaf], choices: Choices) -> list[tuple[str, Conjunction]]:
    """Per difference that a caller could see, merged cubes of states in which the calls do not commute because of it.

    What a commutative path covers (by another choice of the implementation) is left out.
    """
    commuting = _Region(_merge(leaves, 0, lambda leaf: leaf.commutes) or [], choices)
    found: list[tuple[str, Conjunction]] = []
    for difference in dict.fromkeys(leaf.difference for leaf in leaves if leaf.feasible and leaf.difference):
        region = _Region(_merge_difference(leaves, difference), choices)
        found += [(difference, cube) for cube in _distinct(region.without(commuting))]
    return found


class _Region:
    """A union of cubes with choices eliminated; `chosen` are those that come from cubes with choices.

    Only these can overlap the other verdict's: paths are disjoint, but one state may be on several by different
    choices.
    """

    def __init__(self, cubes: Sequence[Conjunction], choices: Choices) -> None:
        self._choices = choices
        self.plain = [cube for cube in cubes if not choices.mentioned(cube)]
        self.chosen = _distinct([part for cube in cubes if choices.mentioned(cube) for part in choices.eliminate(cube)])

    @property
    def cubes(self) -> list[Conjunction]:
        """All cubes of the region."""
        return [*self.plain, *self.chosen]

    def without(self, other: _Region) -> list[Conjunction]:
        """The cubes of what lies in this region and not in the other.

        A cube of the other region that still mentions a choice has no negation without a quantifier: only what it holds
        as a whole is taken away, and the rest may overlap it.
        """
        left = self.chosen
        for cube in other.chosen:
            if self._choices.mentioned(cube):
                left = [mine for mine in left if not _implies(mine, cube)]
            else:
                left = [part for mine in left for part in _minus(mine, cube)]
        return [*self.plain, *left]


def _minus(cube: Conjunction, other: Conjunction) -> list[Conjunction]:
    """Disjoint cubes of the states that are in `cube` and not in `other`."""
    if contradictory([*cube, *other]):
        return [cube]
    parts: list[Conjunction] = []
    inside = cube
    for fact in other:
        if fact not in inside:
            if not contradictory([*inside, fact.negated()]):
                parts.append((*inside, fact.negated()))
            inside = (*inside, fact)
    return parts


def _merge_difference(leaves: Sequence[Leaf], difference: str) -> list[Conjunction]:
    return _merge(leaves, 0, lambda leaf: leaf.feasible and leaf.difference == difference) or []


def _merge(leaves: Sequence[Leaf], depth: int, member: Callable[[Leaf], bool]) -> Region:
    """The members among these leaves, which share their first `depth` facts, as cubes of the facts from there on."""
    if len(leaves) == 1 and len(leaves[0].facts) <= depth:
        if not leaves[0].feasible:
            return None
        return [()] if member(leaves[0]) else []
    fact = leaves[0].facts[depth]
    here = [leaf for leaf in leaves if leaf.facts[depth].holds == fact.holds]
    there = [leaf for leaf in leaves if leaf.facts[depth].holds != fact.holds]
    left = _merge(here, depth + 1, member)
    right = _merge(there, depth + 1, member) if there else None
    if left is None or right is None:
        return right if left is None else left
    if left == right:
        return left
    return [(fact, *cube) for cube in left] + [(fact.negated(), *cube) for cube in right]


class _Refuting:
    """Cubes that commuting cubes must stay clear of.

    Most pairs of cubes hold a fact and its opposite, which is seen without reasoning, as long as one such fact is kept.
    """

    def __init__(self, cubes: Sequence[Conjunction]) -> None:
        self._cubes = cubes
        self._stated: list[set[int]] = [set() for _ in cubes]
        self._numbers: dict[Hashable, int] = {}
        self._needing: dict[int, list[int]] = {}
        for cube, stated in zip(cubes, self._stated, strict=True):
            stated.update(map(self._number, cube))

    def _number(self, fact: Fact) -> int:
        """A number for what the fact is about, negative if it does not hold."""
        number = self._numbers.setdefault(fact.atom(), len(self._numbers) + 1)
        return number if fact.holds else -number

    def widen(self, cube: Conjunction) -> Conjunction:
        """The cube without the facts that it does not need to stay clear of every refuting cube; the latest go
        first."""
        numbers = {fact: self._number(fact) for fact in cube}
        denied = {-number for number in numbers.values()}
        opposed = [denied & stated for stated in self._stated]
        kept = list(cube)
        for fact in sorted(cube, key=_importance):
            trial = [other for other in kept if other is not fact]
            alone = {-numbers[fact]}
            if self._is_clear(trial, opposed, alone, abs(numbers[fact])):
                kept = trial
                for there in opposed:
                    there -= alone
        return tuple(kept)

    def _is_clear(self, trial: Sequence[Fact], opposed: Sequence[set[int]], alone: set[int], atom: int) -> bool:
        """Whether a cube stays clear of all without the fact about this atom. Those are asked first that needed such a
        fact before: one answer is mostly enough."""
        needed = self._needing.setdefault(atom, [])
        for number in itertools.chain(needed, range(len(self._cubes))):
            there = opposed[number]
            if (not there or there == alone) and not contradictory([*trial, *self._cubes[number]]):
                if number in needed:
                    needed.remove(number)
                needed.insert(0, number)
                return False
        return True


def _importance(fact: Fact) -> tuple[int, int]:
    """Facts that say little are tried first: disequalities, then equalities, then what exists."""
    order = {"same": 0, "==": 1, "<=": 2, "bool": 3}[fact.kind]
    return (order, 1 if fact.holds else 0)


def _cover(candidates: Sequence[Conjunction], targets: Sequence[Conjunction]) -> list[Conjunction]:
    """Few candidates that together hold every target, the widest first."""
    left = set(range(len(targets)))
    holds = [{number for number in left if _implies(targets[number], candidate)} for candidate in candidates]
    chosen: list[int] = []
    while left:
        best = max(range(len(candidates)), key=lambda c: (len(holds[c] & left), -len(candidates[c]), -c))
        if not holds[best] & left:
            raise AssertionError("a cube is not covered by its own widening")
        chosen.append(best)
        left -= holds[best]
    return [candidates[number] for number in sorted(chosen)]


def _implies(cube: Conjunction, other: Conjunction) -> bool:
    stated = set(cube)
    if any(fact.negated() in stated for fact in other):
        return False
    return all(fact in stated or contradictory([*cube, fact.negated()]) for fact in other)


def _distinct(cubes: Sequence[Conjunction]) -> list[Conjunction]:
    seen: dict[frozenset[Fact], Conjunction] = {}
    for cube in cubes:
        seen.setdefault(frozenset(cube), cube)
    return list(seen.values())
