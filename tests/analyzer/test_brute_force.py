"""The shipped models, symbolic against brute force over small states (over all of them in the long run)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.simplify import refusals
from commutant.interfaces.figure4 import Figure4
from commutant.interfaces.figure4 import Inode as Figure4Inode
from commutant.interfaces.names import Inode, Names
from commutant.lang import Interface, Map
from tests.analyzer.brute_force import all_combinations, commutes
from tests.analyzer.interpretation import World

NAMES = ["n0", "n1", "n2", "n3"]
INUMS = ["i0", "i1"]
PAIRS = analyze(Names).sets
DOMAINS = {"Name": NAMES, "Inum": INUMS, "bool": [False, True]}


def states(interface: type[Interface], inode: type[Any], names: Sequence[str]) -> Iterator[Interface]:
    """Every way in which the names may lead to two inodes, or nowhere."""
    for targets in itertools.product([None, *INUMS], repeat=len(names)):
        state = interface()
        state.names = Map({name: target for name, target in zip(names, targets, strict=True) if target})
        state.inodes = Map({inum: inode(nlink=targets.count(inum)) for inum in INUMS})
        yield state


def argument_lists(interface: type[Interface], call: str, names: Sequence[str]) -> list[dict[str, Any]]:
    values = {
        parameter: names if "Sort" in type(type_).__name__ else DOMAINS["bool"]
        for parameter, type_ in interface.signature(call).parameters.items()
    }
    return list(all_combinations(**values))


class Verdicts:
    """What the analysis says of concrete states: that the calls commute, or that they do not, and nothing else."""

    def __init__(self, analysis: SetAnalysis) -> None:
        self.calls = analysis.calls
        self._commuting = analysis.cubes
        self._refused = [cube for _, cube in refusals(analysis.leaves, analysis.choices)]

    def agree(self, state: Interface, arguments: Sequence[dict[str, Any]]) -> bool:
        """Whether the calls commute here by brute force, which the analysis must say too."""
        calls = list(zip(self.calls, arguments, strict=True))
        world = World.of(state, calls)
        expected = commutes(state, calls, DOMAINS)
        assert any(world.all_hold(cube) for cube in self._commuting) == expected, (vars(state), calls)
        assert any(world.all_hold(cube) for cube in self._refused) == (not expected), (vars(state), calls)
        return expected


def sampled(analysis: SetAnalysis, given: Sequence[Interface], names: Sequence[str], count: int) -> set[bool]:
    """The verdicts on this many states and arguments, drawn without looking."""
    verdicts, chance = Verdicts(analysis), random.Random("-".join(analysis.calls))
    lists = [argument_lists(analysis.interface, call, names) for call in analysis.calls]
    return {
        verdicts.agree(chance.choice(given), [chance.choice(arguments) for arguments in lists]) for _ in range(count)
    }


def test_figure4() -> None:
    one = analyze(Figure4, ["rename", "rename"]).sets[0]
    assert sampled(one, list(states(Figure4, Figure4Inode, NAMES)), NAMES, 1500) == {True, False}


@pytest.mark.parametrize("one", PAIRS, ids=lambda one: "-".join(one.calls))
def test_pairs_of_names(one: SetAnalysis) -> None:
    assert True in sampled(one, list(states(Names, Inode, NAMES[:3])), NAMES[:3], 150)


@pytest.mark.parametrize(
    "calls", [("link", "unlink", "stat"), ("open", "open", "unlink"), ("rename", "stat", "unlink")], ids="-".join
)
def test_three_calls(calls: tuple[str, ...]) -> None:
    one = analyze(Names, calls, size=3).sets[0]
    assert sampled(one, list(states(Names, Inode, NAMES[:3])), NAMES[:3], 120) == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("one", PAIRS, ids=lambda one: "-".join(one.calls))
def test_pairs_of_names_on_all_states_of_four_names_and_two_inodes(one: SetAnalysis) -> None:
    verdicts = Verdicts(one)
    lists = [argument_lists(Names, call, NAMES) for call in one.calls]
    for state in states(Names, Inode, NAMES):
        for arguments in itertools.product(*lists):
            verdicts.agree(state, arguments)


@pytest.mark.long
def test_figure4_on_all_states_of_four_names_and_two_inodes() -> None:
    verdicts = Verdicts(analyze(Figure4, ["rename", "rename"]).sets[0])
    lists = argument_lists(Figure4, "rename", NAMES)
    for state in states(Figure4, Figure4Inode, NAMES):
        for arguments in itertools.product(lists, lists):
            verdicts.agree(state, arguments)
