"""From paths to a short list of conditions that says exactly the same.

The commutative paths are a union of cubes. Neighbouring paths with the same verdict are merged along the decision tree;
each cube then loses every fact that it can lose without touching a path on which the calls do not commute; last, cubes
that others cover are dropped. A fact whose other side the model excludes (an ill-formed state) tells nothing and goes
first: restrictions of the model are not conditions of commutativity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from commutant.analyzer.condition import Cube, Fact, Leaf, contradictory, mentions_choice

Region = list[Cube] | None
"""A union of cubes; None where no state belongs to the place in the tree at all."""


def simplify(leaves: Sequence[Leaf]) -> list[Cube]:
    """Cubes whose union is exactly the set of states in which the calls commute, choices eliminated."""
    commuting = [_without_choices(cube) for cube in _merge(leaves, 0, lambda leaf: leaf.commutes) or []]
    refuting = [
        _without_choices(cube) for cube in _merge(leaves, 0, lambda leaf: leaf.feasible and not leaf.commutes) or []
    ]
    widened = [_widen(cube, refuting) for cube in _distinct(commuting)]
    return _cover(_distinct(widened), commuting)


def refusals(leaves: Sequence[Leaf]) -> list[tuple[str, Cube]]:
    """Per difference that a caller could see, merged cubes of states in which the calls do not commute because of it.

    A cube that a commutative path covers (by another choice of the implementation) is left out.
    """
    commuting = [_without_choices(cube) for cube in _merge(leaves, 0, lambda leaf: leaf.commutes) or []]
    found: list[tuple[str, Cube]] = []
    for difference in dict.fromkeys(leaf.difference for leaf in leaves if leaf.feasible and leaf.difference):
        for cube in _distinct([_without_choices(c) for c in _merge_difference(leaves, difference)]):
            if not any(set(other) <= set(cube) for other in commuting):
                found.append((difference, cube))
    return found


def _merge_difference(leaves: Sequence[Leaf], difference: str) -> list[Cube]:
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


def _without_choices(cube: Cube) -> Cube:
    """The states for which some choice satisfies the cube. A choice ranges over values that differ from any given few,
    so its disequalities can be met and go; what an equality with a choice says of other values is substituted."""
    facts = list(cube)
    while True:
        chosen = next((f for f in facts if f.kind == "same" and f.holds and mentions_choice(f)), None)
        if chosen is None:
            return tuple(fact for fact in facts if not mentions_choice(fact))
        choice, other = (chosen.left, chosen.right) if ".choice." in str(chosen.left) else (chosen.right, chosen.left)
        facts = [
            Fact(f.kind, other if f.left == choice else f.left, other if f.right == choice else f.right, f.holds)
            for f in facts
            if f is not chosen
        ]


def _widen(cube: Cube, refuting: Sequence[Cube]) -> Cube:
    """The cube without the facts that it does not need to stay clear of every refuting cube; the latest go first."""
    kept = list(cube)
    for fact in sorted(cube, key=_importance):
        trial = [other for other in kept if other is not fact]
        if all(contradictory([*trial, *other]) for other in refuting):
            kept = trial
    return tuple(kept)


def _importance(fact: Fact) -> tuple[int, int]:
    """Facts that say little are tried first: disequalities, then equalities, then what exists."""
    order = {"same": 0, "==": 1, "<=": 2, "bool": 3}[fact.kind]
    return (order, 1 if fact.holds else 0)


def _cover(candidates: Sequence[Cube], targets: Sequence[Cube]) -> list[Cube]:
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


def _implies(cube: Cube, other: Cube) -> bool:
    return all(fact in cube or contradictory([*cube, fact.negated()]) for fact in other)


def _distinct(cubes: Sequence[Cube]) -> list[Cube]:
    seen: dict[frozenset[Fact], Cube] = {}
    for cube in cubes:
        seen.setdefault(frozenset(cube), cube)
    return list(seen.values())
