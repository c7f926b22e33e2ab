"""Every class of states is stood for by a state of its own: built from the path, it takes the path."""

from __future__ import annotations

from typing import Any

import pytest

from commutant.analyzer import CallSet
from commutant.analyzer.analysis import sets_of_calls
from commutant.analyzer.condition import Conjunction, facts_of
from commutant.corpus import LEVELS, Level
from commutant.lang import Interface, load_interface
from commutant.testgen.classes import classes
from commutant.testgen.materialize import Materializer, Valuation
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World

NAMES, FIGURE4 = load_interface("names"), load_interface("figure4")
DOMAINS: dict[str, list[Any]] = {"Name": [], "Inum": []}


def states_of(
    interface: type[Interface], calls: tuple[str, ...], level: Level
) -> list[tuple[Conjunction, bool, Interface, list[tuple[str, dict[str, Any]]]]]:
    """Per class: its facts, whether the calls commute, and the state and arguments that stand for it."""
    sorts = Materializer(interface, calls, level).sorts
    states = []
    for found in classes(CallSet(interface, calls), level):
        valuation = Valuation(found.context, sorts)
        arguments = [{name: valuation(value) for name, value in given.items()} for given in found.outcome.arguments]
        state = interface.__new__(interface)
        for attribute in interface.state_types():
            setattr(state, attribute, valuation(getattr(found.outcome.initial, attribute)))
        facts = facts_of(found.context, found.path if level == "path" else found.context.trail)
        states.append((facts, found.outcome.commutes, state, list(zip(calls, arguments, strict=True))))
    return states


CASES = [
    (FIGURE4, ("rename", "rename")),
    *((NAMES, calls) for calls in sets_of_calls(NAMES, None, 2) if "open" not in calls),
    (NAMES, ("link", "unlink", "stat")),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("interface, calls", CASES, ids=lambda case: "-".join(case) if isinstance(case, tuple) else "")
def test_each_state_is_in_its_class_alone(interface: type[Interface], calls: tuple[str, ...], level: Level) -> None:
    found = states_of(interface, calls, level)
    for number, (_, commuting, state, placed) in enumerate(found):
        world = World.of(state, placed)
        holding = [other for other, (facts, *_) in enumerate(found) if world.all_hold(facts)]
        assert holding == [number], (vars(state), placed)
        assert commutes(state, placed, DOMAINS) == commuting, (vars(state), placed)


@pytest.mark.parametrize("calls", [c for c in sets_of_calls(NAMES, None, 2) if "open" in c], ids="-".join)
def test_states_with_choices_are_judged_as_their_path_says(calls: tuple[str, ...]) -> None:
    """Several paths may hold in one state, by different choices: one of them says what brute force finds."""
    for facts, commuting, state, placed in states_of(NAMES, calls, "path"):
        plain = not any(".choice." in repr(fact) for fact in facts)
        if commuting or plain:
            assert commutes(state, placed, DOMAINS) == commuting, (vars(state), placed)


@pytest.mark.parametrize("interface, calls", CASES[:4])
def test_finer_levels_split_and_never_merge(interface: type[Interface], calls: tuple[str, ...]) -> None:
    counts = [len(states_of(interface, calls, level)) for level in LEVELS]
    assert counts == sorted(counts)
    path_facts = [set(facts) for facts, *_ in states_of(interface, calls, "path")]
    for facts, *_ in states_of(interface, calls, "full"):
        assert sum(coarse <= set(facts) for coarse in path_facts) == 1
