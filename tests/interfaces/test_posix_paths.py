"""The POSIX interfaces: every path of a pair, on a concrete state of its own, has the verdict of every order run on
ordinary values.

So each path is reached by at least one state, and none is there that no state satisfies.
"""

from __future__ import annotations

import pytest

from commutant.analyzer.analysis import sets_of_calls
from commutant.analyzer.commute import CallSet
from commutant.analyzer.condition import facts_of
from commutant.lang import load_interface
from commutant.symbolic import explore
from commutant.testgen.materialize import Materializer
from commutant.testgen.valuation import Valuation
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World
from tests.interfaces.test_posix18_states import is_well_formed, values_of_choice

PAIRS = [("posix18", *calls) for calls in sets_of_calls(load_interface("posix18"), None, 2)] + [
    ("posix-commutative", *calls)
    for calls in sets_of_calls(load_interface("posix-commutative"), None, 2)
    if {"open", "pipe", "fstatx"} & set(calls)
]
POSIX_PAIRS = [("posix", *calls) for calls in sets_of_calls(load_interface("posix"), None, 2)]


def check(pair: tuple[str, ...], stride: int) -> int:
    """Checks every `stride`th path; how many there are of those that the model admits."""
    interface, calls = load_interface(pair[0]), pair[1:]
    sorts = Materializer(interface, calls, "path").sorts
    number = 0
    for path in explore(CallSet(interface, calls).run):
        outcome = path.result
        if outcome is None or not path.feasible:
            continue
        number += 1
        if number % stride:
            continue
        valuation = Valuation(path.context, sorts)
        arguments = [{name: valuation(value) for name, value in given.items()} for given in outcome.arguments]
        state = valuation.state(outcome.initial)
        state.complete()
        placed = list(zip(calls, arguments, strict=True))
        where = f"{vars(state)} {placed}"
        assert is_well_formed(state), where
        chosen = {name: values_of_choice(type_) for name, type_ in outcome.choices}
        facts = facts_of(path.context, path.decisions)
        assert World.of(state, placed).all_hold_for_some_choice(facts, chosen), where
        verdict = commutes(state, placed, {})
        assert verdict or not outcome.commutes, f"the path says that these commute: {where}"
        # With a choice, another path may have the one that makes the calls commute.
        assert outcome.commutes or outcome.choices or not verdict, f"the path says that these differ: {where}"
    return number


@pytest.mark.parametrize(
    "pair",
    [
        ("posix18", "open", "close"),
        ("posix18", "unlink", "rename"),
        ("posix18", "stat", "write"),
        ("posix18", "read", "pipe"),
        ("posix18", "lseek", "mmap"),
        ("posix18", "munmap", "memwrite"),
        ("posix-commutative", "open", "open"),
        ("posix-commutative", "link", "fstatx"),
        ("posix", "dup", "setfl"),
        ("posix", "truncate", "ftruncate"),
        ("posix", "access", "chmod"),
        ("posix", "madvise", "msync"),
        ("posix", "kill", "sigpending"),
        ("posix", "readv", "poll"),
    ],
    ids="-".join,
)
def test_paths(pair: tuple[str, ...]) -> None:
    assert check(pair, stride=3 if pair[0] != "posix" else 11) > 3


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_every_path(pair: tuple[str, ...]) -> None:
    assert check(pair, stride=1) > 0


@pytest.mark.long
@pytest.mark.parametrize("pair", POSIX_PAIRS, ids="-".join)
def test_paths_of_posix(pair: tuple[str, ...]) -> None:
    """Of all pairs, whose paths are many."""
    assert check(pair, stride=20) > 0
