"""From paths to a short list of conditions that says exactly the same.

The commutative paths are a union of cubes. Neighbouring paths with the same verdict are merged along the decision tree;
each cube then loses every fact that it can lose without touching a path on which the calls do not commute; last, cubes
that others cover are dropped. A fact whose other side the model excludes (an ill-formed state) tells nothing and goes
first: restrictions of the model are not conditions of commutativity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from commutant.analyzer.choices import Choices
from commutant.analyzer.condition import Conjunction, Fact, Leaf, rename_constants
from commutant.analyzer.facts import Facts
from commutant.analyzer.oracle import AFTER

MAX_EXCHANGED = 4
"""This many choices of a cube are exchanged to see whether another cube says the same."""

Region = list[Conjunction] | None
"""A union of cubes; None where no state belongs to the place in the tree at all."""


def simplify(leaves: Sequence[Leaf], choices: Choices) -> list[Conjunction]:
    """Cubes whose union is exactly the set of states in which the calls commute, choices eliminated."""
    commuting = _Region(_merge(leaves, 0, lambda leaf: leaf.commutes) or [], choices)
    refuting = _Region(_merge(leaves, 0, lambda leaf: leaf.feasible and not leaf.commutes) or [], choices)
    outside = _Refuting([choices.renamed(cube) for cube in refuting.without(commuting)], choices.facts)
    widened = [outside.widen(cube) for cube in _distinct(commuting.cubes)]
    return _cover(_distinct(widened), commuting.cubes, choices.facts)


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
        chosen = _distinct([part for cube in cubes if choices.mentioned(cube) for part in choices.eliminate(cube)])
        self.chosen = _without_repeated_choices(chosen, choices)

    @property
    def cubes(self) -> list[Conjunction]:
        """All cubes of the region."""
        return [*self.plain, *self.chosen]

    def without(self, other: _Region) -> list[Conjunction]:
        """The cubes of what lies in this region and not in the other.

        A cube of the other region that still mentions a choice has no negation without a quantifier: only what it holds
        as a whole is taken away, and the rest may overlap it.
        """
        left, facts = self.chosen, self._choices.facts
        for cube in other.chosen:
            if self._choices.mentioned(cube):
                left = [mine for mine in left if not _implies(mine, cube, facts)]
            else:
                left = [part for mine in left for part in _minus(mine, cube, facts)]
        return [*self.plain, *left]


def _without_repeated_choices(cubes: Sequence[Conjunction], choices: Choices) -> list[Conjunction]:
    """The cubes without those that say with choices of one order alone what another says with the same in every order:
    the names of choices mean nothing outside of a cube."""
    kept = list(cubes)
    for cube in cubes:
        names = choices.mentioned(cube)
        if not any(AFTER in name for name in names):
            continue
        for other in kept:
            theirs = choices.mentioned(other)
            if other is not cube and len(theirs) <= len(names) <= MAX_EXCHANGED:
                renamings = (dict(zip(theirs, picked, strict=True)) for picked in permutations(names, len(theirs)))
                if any(_implies(cube, rename_constants(other, new), choices.facts) for new in renamings):
                    kept = [one for one in kept if one is not cube]
                    break
    return kept


def _minus(cube: Conjunction, other: Conjunction, facts: Facts) -> list[Conjunction]:
    """Disjoint cubes of the states that are in `cube` and not in `other`."""
    if facts.contradictory([*cube, *other]):
        return [cube]
    parts: list[Conjunction] = []
    inside = cube
    for fact in other:
        if fact not in inside:
            if not facts.contradictory([*inside, fact.negated()]):
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

    Whether they do is asked natively, for all of them at once.
    """

    def __init__(self, cubes: Sequence[Conjunction], facts: Facts) -> None:
        self._facts = facts
        self._cubes = facts.cubes(cubes)
        self._needing: dict[int, list[int]] = {}

    def widen(self, cube: Conjunction) -> Conjunction:
        """The cube without the facts that it does not need to stay clear of every refuting cube; the latest go
        first."""
        numbers = {fact: self._facts.number(fact) for fact in cube}
        kept = list(numbers.values())
        for fact in sorted(cube, key=_importance):
            number = numbers[fact]
            trial = [other for other in kept if other != number]
            if self._is_clear(trial, abs(number)):
                kept = trial
        return tuple([fact for fact in cube if numbers[fact] in kept])

    def _is_clear(self, trial: list[int], atom: int) -> bool:
        """Whether a cube stays clear of all without the fact about this atom. Those are asked first that needed such a
        fact before: one answer is mostly enough."""
        needed = self._needing.setdefault(atom, [])
        met = self._facts.first_compatible(trial, self._cubes, needed)
        if met is None:
            return True
        if met in needed:
            needed.remove(met)
        needed.insert(0, met)
        return False


def _importance(fact: Fact) -> tuple[int, int]:
    """Facts that say little are tried first: disequalities, then equalities, then what exists."""
    order = {"same": 0, "==": 1, "<=": 2, "bool": 3}[fact.kind]
    return (order, 1 if fact.holds else 0)


def _cover(candidates: Sequence[Conjunction], targets: Sequence[Conjunction], facts: Facts) -> list[Conjunction]:
    """Few candidates that together hold every target, the widest first."""
    numbered = facts.cubes(candidates)
    holds: list[set[int]] = [set() for _ in candidates]
    for place, target in enumerate(targets):
        for candidate in facts.implied(target, numbered):
            holds[candidate].add(place)
    left = set(range(len(targets)))
    chosen: list[int] = []
    while left:
        best = max(range(len(candidates)), key=lambda c: (len(holds[c] & left), -len(candidates[c]), -c))
        if not holds[best] & left:
            raise AssertionError("a cube is not covered by its own widening")
        chosen.append(best)
        left -= holds[best]
    return [candidates[number] for number in sorted(chosen)]


def _implies(cube: Conjunction, other: Conjunction, facts: Facts) -> bool:
    return bool(facts.implied(cube, facts.cubes([other])))


def _distinct(cubes: Sequence[Conjunction]) -> list[Conjunction]:
    seen: dict[frozenset[Fact], Conjunction] = {}
    for cube in cubes:
        seen.setdefault(frozenset(cube), cube)
    return list(seen.values())
