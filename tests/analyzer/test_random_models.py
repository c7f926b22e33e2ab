"""Random models: what the engine says of a state, against every order and every choice tried out."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.simplify import refusals
from commutant.lang import Interface
from commutant.lang.types import BoolType, IntType, OpaqueValue, SortType
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World
from tests.analyzer.random_models import DOMAINS, model_of, model_texts, random_arguments, random_state


def domains_of_choices(analysis: SetAnalysis) -> dict[str, Sequence[Any]]:
    """The values to try for each choice of a set of calls."""
    domains: dict[str, Sequence[Any]] = {}
    for name, type_ in analysis.choices.scalars.items():
        if isinstance(type_, SortType) and type_.sort.opaque:
            domains[name] = [OpaqueValue(type_.sort.__name__, f"fresh.{number}") for number in range(4)]
        elif isinstance(type_, SortType):
            domains[name] = [*DOMAINS[type_.sort.__name__], "other.Key"]
        elif isinstance(type_, IntType):
            domains[name] = range(type_.low or 0, (type_.high or 0) + 1)
        else:
            assert isinstance(type_, BoolType)
            domains[name] = [False, True]
    return domains


class Check:
    """One model and one set of its calls, ready to be asked about concrete states."""

    def __init__(self, text: str, calls: tuple[str, ...], most_paths: int) -> None:
        self.model = model_of(text)
        self.analysis = analyze(self.model, calls, size=len(calls)).sets[0]
        if self.analysis.paths > most_paths:
            reject()
        self.domains = domains_of_choices(self.analysis)
        self.refused = [cube for _, cube in refusals(self.analysis.leaves, self.analysis.choices)]
        self.exact = not any(self.analysis.choices.mentioned(cube) for cube in self.analysis.cubes)

    def agrees_on(self, state: Interface, arguments: Sequence[dict[str, Any]]) -> None:
        calls = list(zip(self.analysis.calls, arguments, strict=True))
        world = World.of(state, calls)
        expected = commutes(state, calls, DOMAINS)
        where = f"{vars(state)} {calls}"
        feasible = [leaf for leaf in self.analysis.leaves if leaf.feasible]
        matching = [leaf for leaf in feasible if world.all_hold_for_some_choice(leaf.facts, self.domains)]
        assert matching, f"no path for {where}"
        assert self.domains or len(matching) == 1, f"{len(matching)} paths for {where}"
        assert any(leaf.commutes for leaf in matching) == expected, f"paths say {not expected} of {where}"
        holds = any(world.all_hold_for_some_choice(cube, self.domains) for cube in self.analysis.cubes)
        assert holds == expected, f"the condition says {holds} of {where}: {self.analysis.conditions}"
        refused = any(world.all_hold_for_some_choice(cube, self.domains) for cube in self.refused)
        assert refused == (not expected) or (refused and not self.exact), f"refusals say {refused} of {where}"


def check_model(text: str, seed: int, count: int, size: int = 2) -> None:
    chance = random.Random(seed)
    for calls in itertools.combinations_with_replacement(("f", "g"), size):
        check = Check(text, calls, 150 * (size - 1))
        for _ in range(count):
            state = random_state(check.model, chance)
            check.agrees_on(state, [random_arguments(check.model, name, chance) for name in calls])


@given(model_texts(), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_pairs(text: str, seed: int) -> None:
    note(text)
    check_model(text, seed, count=20)


@pytest.mark.long
@given(model_texts(), st.integers(0, 2**32))
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_pairs(text: str, seed: int) -> None:
    note(text)
    check_model(text, seed, count=40)


@pytest.mark.long
@given(model_texts(), st.integers(0, 2**32))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_triples(text: str, seed: int) -> None:
    note(text)
    check_model(text, seed, count=20, size=3)


NEGATIVE_KEYS = """
class Model(Interface):
    numbers: Map[int, Key]

    @call
    def f(self, k: Key, i: Annotated[int, Range(0, 2)]):
        self.numbers.pop(-i, None)
        lowest = self.numbers.lowest_absent()
        self.numbers[lowest] = k
        self.numbers[0 - i] = k
        return lowest

    @call
    def g(self, k: Key):
        self.numbers.pop(0, None)
"""


def test_keys_below_zero_are_no_lowest_absent_numbers() -> None:
    """Once they were taken for numbers above the holes, which excluded states in which they are absent."""
    check_model(NEGATIVE_KEYS, seed=1, count=60)
