"""Each model of the gallery: conditions and tests, compared with brute force over a small domain."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import pytest

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.condition import Conjunction
from commutant.lang import Interface
from commutant.testgen import generate
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World
from tests.gallery.models import MODELS, Bank, Intervals, Snapshots
from tests.gallery.oracle import Domain, Placed, kind, kinds

SAMPLES = 60
"""States and arguments that are tried of each pair."""

MUTATIONS = 300

CHOOSE = {"Tickets", "BoundedStore"}
"""Models with choices, of which conditions may speak."""


@cache
def pairs(model: type[Interface]) -> tuple[SetAnalysis, ...]:
    return analyze(model).sets


@cache
def situations(model: type[Interface], one: int) -> list[tuple[Interface, Placed, bool]]:
    """States and arguments of a pair, and whether brute force says that they commute."""
    domain, chance = Domain(model), random.Random(f"{model.__name__}{one}")
    drawn = [(domain.state(chance), domain.calls(pairs(model)[one].calls, chance)) for _ in range(SAMPLES)]
    return [(state, calls, commutes(state, calls, domain.sorts)) for state, calls in drawn]


def says(cubes: list[Conjunction], world: World) -> bool:
    return any(world.all_hold(cube) for cube in cubes)


@pytest.mark.parametrize("model", [m for m in MODELS if m.__name__ not in CHOOSE], ids=lambda model: model.__name__)
def test_conditions_are_those_of_brute_force(model: type[Interface]) -> None:
    for number, one in enumerate(pairs(model)):
        for state, calls, expected in situations(model, number):
            assert says(one.cubes, World.of(state, calls)) == expected, (one.calls, vars(state), calls, one.conditions)


@pytest.mark.parametrize("model", [m for m in MODELS if m not in (Intervals, Snapshots)], ids=lambda m: m.__name__)
def test_each_kind_of_result_that_commuting_calls_have_is_tested(model: type[Interface]) -> None:
    """Each result by itself: of pairs the classes say more."""
    there = {
        found
        for number in range(len(pairs(model)))
        for state, calls, commuting in situations(model, number)
        if commuting
        for found in kinds(state, calls)
    }
    tested = {
        (placed.call, kind(result))
        for test in generate(model).tests
        for order in test.orders
        for outcome in order.outcomes
        for placed, result in zip(test.calls, outcome.results, strict=True)
    }
    assert there <= tested, there - tested


def test_conditions_of_triples_are_those_of_brute_force() -> None:
    """Of a bank, whose conditions are the longest."""
    domain, chance = Domain(Bank), random.Random(3)
    for one in analyze(Bank, size=3).sets:
        for _ in range(12):
            state, calls = domain.state(chance), domain.calls(one.calls, chance)
            expected = commutes(state, calls, domain.sorts)
            assert says(one.cubes, World.of(state, calls)) == expected, (one.calls, vars(state), calls)


def mutations(chance: random.Random) -> Iterator[tuple[type[Interface], int, list[Conjunction]]]:
    """Conditions with one fact negated, or left out, at random."""
    models = [model for model in MODELS if model.__name__ not in CHOOSE]
    while True:
        model = chance.choice(models)
        number = chance.randrange(len(pairs(model)))
        cubes = list(pairs(model)[number].cubes)
        if not any(cubes):
            continue
        place = chance.choice([n for n, cube in enumerate(cubes) if cube])
        fact = chance.randrange(len(cubes[place]))
        changed = (cubes[place][fact].negated(),) if chance.random() < 0.5 else ()
        cubes[place] = (*cubes[place][:fact], *changed, *cubes[place][fact + 1 :])
        yield model, number, cubes


def test_brute_force_catches_conditions_that_were_changed() -> None:
    """Those that are equal on the whole of the small domain are no change that it could show."""
    chance = random.Random(18)
    found = mutations(chance)
    missed = 0
    for _ in range(MUTATIONS):
        model, number, cubes = next(found)
        domain = Domain(model)
        one = pairs(model)[number]
        known = situations(model, number)
        if any(says(cubes, World.of(state, calls)) != expected for state, calls, expected in known):
            continue
        drawn = ((domain.state(chance), domain.calls(one.calls, chance)) for _ in range(600))
        differing = (
            (state, calls, says(cubes, world))
            for state, calls in drawn
            if says(cubes, world := World.of(state, calls)) != says(one.cubes, world)
        )
        first = next(differing, None)
        if first is None:
            missed += 1
        else:
            assert commutes(first[0], first[1], domain.sorts) != first[2]
    assert missed <= MUTATIONS // 20, missed
