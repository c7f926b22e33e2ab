"""Each model of the gallery: conditions and tests, compared with brute force over a small domain."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.condition import Conjunction, constants_of
from commutant.interfaces.figure4 import Figure4
from commutant.lang import SHIPPED, Interface, SortType, Type, load_interface
from commutant.testgen import generate
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World
from tests.gallery.equivalence import differences, proved_equal, says
from tests.gallery.models import MODELS, Bank, Intervals, Snapshots
from tests.gallery.oracle import Domain, Placed, Ran, kinds, values

SAMPLES = 60
"""States and arguments that are tried of each pair."""

MUTATIONS = 300

UNTESTABLE = (Intervals, Snapshots, Figure4)
"""Models of which calls build hardly a state: `rename` makes no name."""

NO_CALLER_CAN = {("resolve", "EINVAL", False)}
"""What needs a handle that no call hands out: symbols of an interner never go."""

SHIPPING = [load_interface(name) for name in SHIPPED if not name.startswith("posix")]
"""The models that ship, but for POSIX, whose states have tests of their own (tests/interfaces)."""

ALL = (*MODELS, *SHIPPING)


@cache
def pairs(model: type[Interface]) -> tuple[SetAnalysis, ...]:
    return analyze(model).sets


@cache
def situations(model: type[Interface], one: int) -> list[tuple[Interface, Placed, bool]]:
    """States and arguments of a pair, and whether brute force says that they commute."""
    domain, chance = Domain(model), random.Random(f"{model.__name__}{one}")
    found: list[tuple[Interface, Placed, bool]] = []
    while len(found) < SAMPLES:
        state, calls = domain.state(chance), domain.calls(pairs(model)[one].calls, chance)
        with contextlib.suppress(KeyError):  # a state that the model reads without asking is taken not to occur
            found.append((state, calls, commutes(state, calls, domain.sorts)))
    return found


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.interface_name)
def test_conditions_are_those_of_brute_force(model: type[Interface]) -> None:
    for number, one in enumerate(pairs(model)):
        domains = {name: choice_values(type_) for name, type_ in one.choices.scalars.items()}
        for state, calls, expected in situations(model, number):
            world = World.of(state, calls)
            said = any(world.all_hold_for_some_choice(cube, domains) for cube in one.cubes)
            assert said == expected, (one.calls, vars(state), calls, one.conditions)


def choice_values(type_: Type) -> list[Any]:
    """The values to try for a choice: one more than the domain has of a sort."""
    return [*values(type_), "other"] if isinstance(type_, SortType) else values(type_)


@pytest.mark.parametrize("model", [m for m in ALL if m not in UNTESTABLE], ids=lambda m: m.interface_name)
def test_each_kind_of_what_commuting_calls_do_is_tested(
    model: type[Interface], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Success, error or truth value, changed or not, of each call by itself: of pairs the classes say more."""
    there = {
        found
        for number in range(len(pairs(model)))
        for state, calls, commuting in situations(model, number)
        if commuting
        for found in kinds(state, calls)
    }
    tested = Ran(monkeypatch)
    assert generate(model).tests
    assert there - tested.kinds <= NO_CALLER_CAN, there - tested.kinds


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.interface_name)
def test_generation_walks_the_paths_of_the_analysis(model: type[Interface]) -> None:
    """Classes are distinguished beyond a path, which must leave no trace in the paths that come after it: records that
    kept what was seen of them there stood for other unknowns later, or for none ("a value of another run")."""
    generated = {one.calls: (one.paths, one.commutative_paths) for one in generate(model).analysis.sets}
    assert generated == {one.calls: (one.paths, one.commutative_paths) for one in pairs(model)}


def test_conditions_of_triples_are_those_of_brute_force() -> None:
    """Of a bank, whose conditions are the longest."""
    domain, chance = Domain(Bank), random.Random(3)
    for one in analyze(Bank, size=3).sets:
        for _ in range(12):
            state, calls = domain.state(chance), domain.calls(one.calls, chance)
            expected = commutes(state, calls, domain.sorts)
            assert says(one.cubes, World.of(state, calls)) == expected, (one.calls, vars(state), calls)


def speaks_of_choices(one: SetAnalysis) -> bool:
    """Whether what the implementation chooses is part of the conditions, or of a path."""
    facts = (fact for cube in (*one.cubes, *(leaf.facts for leaf in one.leaves)) for fact in cube)
    return any(name in one.choices.scalars for fact in facts for name in constants_of(fact))


def mutations(chance: random.Random) -> Iterator[tuple[type[Interface], int, list[Conjunction]]]:
    """Conditions with one fact negated, or left out, at random; of files, whose states a solver hardly ever meets, they
    are compared in tests/analyzer/test_brute_force.py."""
    models = [model for model in ALL if model not in (Figure4, load_interface("names"))]
    while True:
        model = chance.choice(models)
        number = chance.randrange(len(pairs(model)))
        cubes = list(pairs(model)[number].cubes)
        if not any(cubes) or speaks_of_choices(pairs(model)[number]):
            continue
        place = chance.choice([n for n, cube in enumerate(cubes) if cube])
        fact = chance.randrange(len(cubes[place]))
        changed = (cubes[place][fact].negated(),) if chance.random() < 0.5 else ()
        cubes[place] = (*cubes[place][:fact], *changed, *cubes[place][fact + 1 :])
        yield model, number, cubes


def is_caught(model: type[Interface], number: int, cubes: list[Conjunction]) -> bool:
    """Whether brute force says otherwise in one of the situations drawn, or in one that a solver finds."""
    one = pairs(model)[number]
    if any(says(cubes, World.of(state, calls)) != expected for state, calls, expected in situations(model, number)):
        return True
    for state, calls in differences(one, cubes):
        with contextlib.suppress(KeyError):  # as above
            assert commutes(state, calls, Domain(model).sorts) != says(cubes, World.of(state, calls)), (calls, cubes)
            return True
    return False


def test_brute_force_catches_each_changed_condition_that_is_no_equivalent_one() -> None:
    """What is not caught is proved to say the same of every state, however large."""
    chance = random.Random(18)
    caught = equal = 0
    for model, number, cubes in itertools.islice(mutations(chance), MUTATIONS):
        if is_caught(model, number, cubes):
            caught += 1
        else:
            assert proved_equal(pairs(model)[number], cubes), (pairs(model)[number].calls, cubes)
            equal += 1
    assert caught + equal == MUTATIONS
    assert caught > MUTATIONS * 3 // 4, (caught, equal)
