"""posix18: what its paths say of random concrete states, against every order run on ordinary values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from commutant.analyzer import SetAnalysis, analyze
from commutant.analyzer.analysis import sets_of_calls
from commutant.interfaces.posix.state import PIPE_CAPACITY_PAGES, Descriptor, Inode, MappedPage, Pipe
from commutant.lang import WHOLE_STATE, Interface, Map, load_interface
from commutant.lang.nondeterminism import finite_values
from commutant.lang.types import BoolType, IntType, OpaqueValue, SortType, TimeValue, Type
from tests.analyzer.brute_force import commutes
from tests.analyzer.interpretation import World

POSIX18 = load_interface("posix18")
NAMES, DIRECTORIES, PROCESSES, ADDRESSES, CONTENT = ["n0", "n1", "n2"], ["d0", "d1"], [0, 1], [1, 2, 3], [0, 1, 2]
FILES = [OpaqueValue("Inum", f"file.{number}") for number in range(2)]
PIPES = [OpaqueValue("Inum", f"pipe.{number}") for number in range(2)]
DOMAINS: dict[str, Sequence[Any]] = {
    "Name": NAMES,
    "Directory": DIRECTORIES,
    "Process": PROCESSES,
    "Address": ADDRESSES,
    "Data": CONTENT,
    "Inum": [*FILES, *PIPES],
}


def random_state(chance: random.Random) -> Interface:
    """A well-formed state with few names, descriptors and pages, so that calls often meet."""

    def flag() -> bool:
        return chance.random() < 0.5

    state: Any = POSIX18()
    state.zero = 0
    state.working_directory = Map({process: chance.choice(DIRECTORIES) for process in PROCESSES})
    for inum in FILES:
        length = chance.randrange(3)
        state.inodes[inum] = Inode(
            nlink=chance.randrange(3),
            length=length,
            pages=Map({page: chance.choice(CONTENT) for page in range(length) if flag()}),
            mtime=TimeValue(chance.randrange(2)),
            ctime=TimeValue(chance.randrange(2)),
        )
    for inum in PIPES:
        waiting = chance.choice([0, 1, 2, PIPE_CAPACITY_PAGES - 1, PIPE_CAPACITY_PAGES])
        state.pipes[inum] = Pipe(
            head=0,
            tail=waiting,
            pages=Map({place: chance.choice(CONTENT) for place in range(waiting)}),
            other_readers=flag(),
            other_writers=flag(),
            mtime=TimeValue(chance.randrange(2)),
        )
    places = [(directory, name) for directory in DIRECTORIES for name in NAMES]
    state.names = Map({place: chance.choice(FILES) for place in places if flag()})
    for process in PROCESSES:
        for number in range(3):
            if chance.random() < 0.6:
                pipe = flag()
                state.descriptors[process, number] = Descriptor(
                    pipe=pipe,
                    write_end=flag(),
                    inum=chance.choice(PIPES if pipe else FILES),
                    offset=chance.randrange(3),
                    readable=flag(),
                    writable=flag(),
                )
        for address in ADDRESSES:
            if flag():
                mapping = MappedPage(
                    anonymous=flag(),
                    shared=flag(),
                    copied=flag(),
                    writable=flag(),
                    may_write=flag(),
                    inum=chance.choice(FILES),
                    page=chance.randrange(3),
                    own=chance.choice(CONTENT),
                )
                mapping.may_write = mapping.may_write or (mapping.shared and mapping.writable)
                mapping.copied = mapping.copied and mapping.page < state.inodes[mapping.inum].length
                state.memory[process, address] = mapping
    return state


def count_other_ends(state: Any, arguments: Sequence[dict[str, Any]]) -> None:
    """An end of a pipe under a descriptor that no call names counts among the others."""
    named = {(given["process"], given["fd"]) for given in arguments if "fd" in given}
    for key, descriptor in state.descriptors.items():
        if descriptor.pipe and key not in named:
            pipe = state.pipes[descriptor.inum]
            if descriptor.write_end:
                pipe.other_writers = True
            else:
                pipe.other_readers = True


def random_argument(type_: Type, chance: random.Random) -> Any:
    if isinstance(type_, SortType):
        return chance.choice(DOMAINS[type_.sort.__name__])
    if isinstance(type_, BoolType):
        return chance.random() < 0.5
    assert isinstance(type_, IntType)
    return chance.randint(type_.low or 0, 2 if type_.high is None else type_.high)


def is_well_formed(state: Interface) -> bool:
    for place, conditions in type(state).well_formedness().items():
        if place == WHOLE_STATE:
            if not all(condition(state) for condition in conditions):
                return False
            continue
        attribute, _, field = place.partition(".")
        entries = list(getattr(state, attribute).items())
        if field:
            entries = [(*entry, *inner) for entry in entries for inner in getattr(entry[1], field).items()]
        if not all(condition(state, *entry) for condition in conditions for entry in entries):
            return False
    return True


def values_of_choice(type_: Type) -> Sequence[Any]:
    if isinstance(type_, SortType):
        return [OpaqueValue(type_.sort.__name__, f"fresh.{number}") for number in range(4)]
    return finite_values(type_)


@cache
def analysis_of(calls: tuple[str, ...]) -> SetAnalysis:
    return analyze(POSIX18, calls, size=len(calls)).sets[0]


def check(calls: tuple[str, ...], chance: random.Random) -> bool:
    one = analysis_of(calls)
    state = random_state(chance)
    arguments = [
        {name: random_argument(type_, chance) for name, type_ in POSIX18.signature(call).parameters.items()}
        for call in one.calls
    ]
    count_other_ends(state, arguments)
    assert is_well_formed(state)
    placed = list(zip(one.calls, arguments, strict=True))
    chosen = {name: values_of_choice(type_) for name, type_ in one.choices.scalars.items()}
    world = World.of(state, placed)
    matching = [leaf for leaf in one.leaves if leaf.feasible and world.all_hold_for_some_choice(leaf.facts, chosen)]
    where = f"{vars(state)} {placed}"
    assert matching, f"no path for {where}"
    assert len(matching) == 1 or chosen, f"{len(matching)} paths for {where}"
    expected = commutes(state, placed, DOMAINS)
    assert any(leaf.commutes for leaf in matching) == expected, f"paths say {not expected} of {where}"
    return expected


PAIRS = sets_of_calls(POSIX18, None, 2)


@pytest.mark.parametrize("first", POSIX18.call_names())
def test_pairs(first: str) -> None:
    chance = random.Random(first)
    for calls in PAIRS:
        if calls[0] == first:
            for _ in range(3):
                check(calls, chance)


def test_verdicts_of_both_kinds_are_seen() -> None:
    chance = random.Random(18)
    assert {check(("rename", "stat"), chance) for _ in range(60)} == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("calls", PAIRS, ids="-".join)
def test_many_states(calls: tuple[str, ...]) -> None:
    chance = random.Random("-".join(calls))
    for _ in range(500):
        check(calls, chance)


@pytest.mark.long
def test_triples() -> None:
    chance = random.Random(3)
    for calls in chance.sample(sets_of_calls(POSIX18, None, 3), 8):
        for _ in range(20):
            check(calls, chance)
