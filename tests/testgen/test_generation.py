"""Generated tests: what each must hold, how levels nest, and that nothing depends on chance."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import pytest

import commutant
from commutant.analyzer import analyze
from commutant.corpus import first_test
from commutant.corpus.reading import TestReader
from commutant.lang import (
    Errno,
    Interface,
    Invocation,
    Map,
    Process,
    Range,
    Sort,
    Struct,
    Time,
    call,
    choose,
    invoke,
    load_interface,
    now,
    well_formed,
)
from commutant.lang.interface import CallSignature
from commutant.lang.types import BoolType
from commutant.support.errors import UsageError
from commutant.testgen import Corpus, TestCase, generate, setups
from commutant.testgen.concrete import ConcreteModel, ReplayedOracle, Start

LEVELS = ("path", "conflict", "full")


@cache
def names(level: str) -> Corpus:
    return generate(load_interface("names"), level=level)


def contents(test: TestCase) -> tuple[Any, ...]:
    return (test.calls, test.setup, test.observe, test.orders)


def test_the_first_test_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """To name one test, `generate` once read all: 4 of 27 s of posix18, and as much memory again as the rest."""
    corpus = generate(load_interface("figure4"))
    read: list[TestCase] = []
    one_by_one = TestReader.read
    monkeypatch.setattr(TestReader, "read", lambda self, line: read.append(one_by_one(self, line)) or read[-1])
    first = first_test(corpus.tests)
    assert read == [first] == [corpus.tests[0]]
    assert first_test([]) is None


@pytest.mark.parametrize("level", LEVELS)
def test_every_test_has_an_outcome_that_all_orders_allow(level: str) -> None:
    for test in names(level).tests:
        assert sorted(order.order for order in test.orders) == sorted(itertools.permutations(range(len(test.calls))))
        common = set.intersection(*({repr(outcome) for outcome in order.outcomes} for order in test.orders))
        assert common, test.id
        for order in test.orders:
            assert len({repr(outcome) for outcome in order.outcomes}) == len(order.outcomes)
            for outcome in order.outcomes:
                assert len(outcome.results) == len(test.calls)
                assert len(outcome.observation) == len(test.observe)


@pytest.mark.parametrize("level", LEVELS)
def test_ids_are_unique_and_follow_from_the_content(level: str) -> None:
    tests = names(level).tests
    assert len({test.id for test in tests}) == len(tests)
    assert len({repr(contents(test)) for test in tests}) == len(tests)
    assert all(test.id == test.content_id() for test in tests)


def test_levels_nest() -> None:
    """A test of a level occurs in the next: as the class in which what is open is as it is without being asked for."""
    ids = {level: {test.id for test in names(level).tests} for level in LEVELS}
    assert ids["path"] <= ids["conflict"] < ids["full"]


@pytest.mark.parametrize("calls", [("close", "fstat"), ("munmap", "memwrite"), ("open", "read"), ("pread", "lseek")])
def test_levels_nest_where_paths_leave_much_open(calls: tuple[str, str]) -> None:
    ids = {
        level: {test.id for test in generate(load_interface("posix18"), calls, level=level).tests} for level in LEVELS
    }
    assert ids["path"] < ids["conflict"] < ids["full"]


def test_each_commutative_path_has_a_test_or_a_mirror_image() -> None:
    corpus = names("path")
    assert corpus.analysis is not None
    found = Counter(test.set_name for test in corpus.tests)
    for one in corpus.analysis.sets:
        name = "-".join(one.calls)
        tests, missing = found[name] // 2, corpus.without_setup.get(name, 0)  # in one process and in two
        if one.calls[0] != one.calls[1]:
            assert tests + missing == one.commutative_paths, name
        else:
            assert one.commutative_paths / 2 <= tests + missing <= one.commutative_paths, name


def placements(test: TestCase) -> tuple[int, ...]:
    return tuple(placed.process for placed in test.calls)


def test_two_processes_and_two_threads() -> None:
    tests = names("conflict").tests
    assert {placements(test) for test in tests} == {(0, 0), (0, 1)}
    for test in tests:
        assert [placed.core for placed in test.calls] == [0, 1]
        assert [placed.thread for placed in test.calls] == ([0, 1] if placements(test) == (0, 0) else [0, 0])
    by_placement = Counter(placements(test) for test in tests)
    assert by_placement[0, 0] == by_placement[0, 1]


def canonical(test: TestCase, order: tuple[int, ...]) -> str:
    """The test with its calls in another order and its names renamed by first use: set-ups as what they build."""
    renamed: dict[str, str] = {}

    def name(value: object) -> object:
        return renamed.setdefault(value, f"n{len(renamed)}") if isinstance(value, str) else value

    calls = [(test.calls[i].call, [name(v) for v in test.calls[i].args.values()]) for i in order]
    processes: dict[int, int] = {}
    places = [processes.setdefault(test.calls[i].process, len(processes)) for i in order]
    links: dict[str, list[str]] = {}
    for step in test.setup:
        if step.call == "open":
            links[str(step.args["name"])] = [str(step.args["name"])]
        else:
            group = links[str(step.args["old"])]
            group.append(str(step.args["new"]))
    groups = sorted(sorted(str(name(member)) for member in sorted(group)) for group in links.values())
    return repr((calls, places, groups))


@pytest.mark.parametrize("level", LEVELS)
def test_of_two_mirror_images_one_is_kept(level: str) -> None:
    """By another canonical form than the generator's; names that only the state uses do not occur in `names`."""
    for set_name, tests in itertools.groupby(names(level).tests, key=lambda test: test.set_name):
        first, second = set_name.split("-")
        seen: set[str] = set()
        for test in tests:
            images = {canonical(test, (0, 1)), *([canonical(test, (1, 0))] if first == second else [])}
            assert not images & seen, test.id
            seen |= images


def brute_force_patterns(signature: CallSignature, with_flags: bool) -> int:
    """How many patterns two calls of `stat` have: one or two names, each a file or not, two names perhaps one file."""
    flags = sum(isinstance(type_, BoolType) for type_ in signature.parameters.values()) if with_flags else 0
    same_name = 2
    two_names_unordered = 1 + 1 + 2  # neither exists, one of them, both: one file or two
    return (same_name + two_names_unordered) * 4**flags


def test_the_number_of_patterns_of_two_stats() -> None:
    """None too many and none too few: every pattern of two names is one class, in one process and in two."""
    for level in ("conflict", "full"):
        tests = [test for test in names(level).tests if test.set_name == "stat-stat"]
        assert len(tests) == 2 * brute_force_patterns(load_interface("names").signature("stat"), level == "full")


def test_observation_asks_for_every_name() -> None:
    for test in names("conflict").tests:
        used = {value for placed in test.calls for value in placed.args.values() if isinstance(value, str)}
        asked = {step.args["name"] for step in test.observe}
        assert used <= asked, test.id


def test_three_calls() -> None:
    corpus = generate(load_interface("names"), ["stat", "unlink", "link"], size=3)
    assert corpus.tests
    for test in corpus.tests:
        assert len(test.orders) == 6
        assert len(test.calls) == 3
    assert {placements(test) for test in corpus.tests} == {(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)}
    assert {
        tuple(placed.thread for placed in test.calls) for test in corpus.tests if placements(test) == (0, 1, 0)
    } == {(0, 0, 1)}


def test_three_like_calls_drop_all_mirror_images() -> None:
    """Three stats of one name, of two, of three: patterns up to exchange, as counted by hand for one process each."""
    corpus = generate(load_interface("names"), ["access"], size=3, level="path")
    classes = {test.equivalence_class for test in corpus.tests if placements(test) == (0, 0, 0)}
    assert corpus.analysis is not None
    assert len(classes) < corpus.analysis.sets[0].commutative_paths


PROGRAM = """
from commutant.lang import load_interface
from commutant.testgen import generate
for test in generate(load_interface("names"), ["rename", "link", "open"]).tests:
    print(test.to_json())
"""


def test_equal_models_give_equal_corpora_whatever_the_hash_seed() -> None:
    source = os.path.dirname(os.path.dirname(commutant.__file__))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1
    assert b"rename-rename-" in outputs.pop()


def test_processes_over_a_pool_give_the_same_corpus() -> None:
    assert generate(load_interface("names"), jobs=2).tests == names("conflict").tests


@pytest.mark.parametrize("calls", [("open", "unlink"), ("close", "pipe"), ("memread", "mprotect"), ("write", "write")])
def test_what_calls_did_before_is_what_they_would_do_again(
    calls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are looked up by state, call and place; without that each test runs and observes everything again."""
    known = generate(load_interface("posix18"), calls).tests
    outcomes = ConcreteModel.outcomes

    def anew(self: ConcreteModel, start: Start, *arguments: Any) -> list[str]:
        self.forget()
        start.reached.moves.clear()
        start.reached.observed.clear()
        return outcomes(self, start, *arguments)

    monkeypatch.setattr(ConcreteModel, "outcomes", anew)
    assert generate(load_interface("posix18"), calls).tests == known


def test_what_is_kept_of_states_is_bounded_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    setups.setups_of.cache_clear()
    model = load_interface("posix18")
    known = generate(model, ["close", "pipe"]).tests
    kept = setups.setups_of(model).model.kept
    setups.setups_of.cache_clear()
    monkeypatch.setattr(setups, "MAX_KEPT", kept // 4)
    assert generate(model, ["close", "pipe"]).tests == known
    assert 0 < setups.setups_of(model).model.kept < kept // 2


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown level 'all': expected one of path, cover, conflict, full"):
        generate(load_interface("names"), level="all")


class Key(Sort):
    """A key."""


class Number(Sort, opaque=True):
    """A number that the implementation picks."""


class Cell(Struct):
    content: Annotated[int, Range(1, 3)]


class Cells(Interface):
    """A store whose set-up is as each test below wants it."""

    cells: Map[Key, Cell]
    numbers: Map[Key, Number]

    @call
    def read(self, key: Key) -> int | Errno:
        return self.cells[key].content if key in self.cells else Errno.ENOENT

    @call
    def write(self, key: Key, cell: Cell) -> None:
        self.cells[key] = cell

    @call
    def whole(self, key: Key) -> Cell | Errno:
        if key not in self.cells:
            return Errno.ENOENT
        cell = self.cells[key]
        return cell

    def setup(self) -> Any:
        return [invoke("write", key=key, cell=cell) for key, cell in self.cells.items()]

    def observe(self, values: Mapping[type, Any]) -> Any:
        return [invoke("read", key=key) for key in values[Key]]


def test_values_lie_within_their_bounds_even_where_nothing_looks_at_them() -> None:
    for test in generate(Cells, ["write"]).tests:
        for step in [*test.calls, *test.setup]:
            if step.call == "write":
                cell: Any = step.args["cell"]
                assert 1 <= cell["struct"]["content"] <= 3, test.id


def test_a_result_is_what_it_was_when_the_call_returned() -> None:
    """`whole` returns a record of the state, which a later call replaces or changes."""

    class Changing(Cells):
        @call
        def change(self, key: Key) -> None:
            if key in self.cells:
                self.cells[key].content = 3

    found = [t for t in generate(Changing, ["whole", "change"]).tests if t.calls[0].args == t.calls[1].args and t.setup]
    assert found
    for test in found:
        assert test.setup[0].args["cell"] == {"struct": {"content": 3}}


class Clock(Interface):
    """A time that a call sets, and one that asks for the time."""

    at: Time

    @call
    def stamp(self) -> None:
        self.at = now()

    @call
    def read(self) -> Time:
        return self.at

    @call
    def ask(self) -> Time:
        return now()

    def setup(self) -> Any:
        return [invoke("stamp")]

    def observe(self, values: Any) -> Any:
        return [invoke("read"), invoke("ask")]


def test_who_observes_does_so_after_the_calls() -> None:
    tests = generate(Clock, ["stamp", "ask"]).tests
    assert tests
    for test in tests:
        for order in test.orders:
            for outcome in order.outcomes:
                asked: list[Any] = [outcome.results[place] for place, one in enumerate(test.calls) if one.call == "ask"]
                read, later = outcome.observation
                stamps = [read] if any(one.call == "stamp" for one in test.calls) else []
                assert all(time["time"] < later["time"] for time in [*asked, *stamps])


def test_a_state_that_what_nobody_looks_at_makes_ill_formed_has_no_test() -> None:
    class Completed(Cells):
        """What makes its states whole breaks them."""

        size: int

        def complete(self) -> None:
            self.size = 7

        @well_formed
        def small(self) -> bool:
            return self.size < 7

    with pytest.raises(UsageError, match=r"most often: the state that stands for the class is not well-formed: small"):
        generate(Completed, ["read"])


def test_states_that_the_set_up_does_not_reach_are_counted() -> None:
    class Forgetful(Cells):
        def setup(self) -> Any:
            return []

    whole, forgetful = generate(Cells, ["read", "read"]), generate(Forgetful, ["read", "read"])
    assert not whole.without_setup
    assert forgetful.without_setup == {"read-read": 3}  # one key, and two of which both or one are there
    assert len(forgetful.tests) < len(whole.tests)


def test_a_model_without_a_set_up_has_no_tests() -> None:
    """But those that begin in the empty state."""
    corpus = generate(load_interface("figure4"))
    assert {test.setup for test in corpus.tests} == {()}
    assert sum(corpus.without_setup.values()) >= 18
    (untested,) = corpus.untested["rename-rename"]
    assert untested.reason == "Figure4 has no setup(), and no calls were found that build the state"
    assert untested.example.startswith("names {")


class Extent(Struct):
    size: int
    zeroed: bool


def test_a_wanted_state_says_which_of_its_numbers_are_zero() -> None:
    """`{b0: zeroed}` looked like a state that alloc builds; what no call builds is the size 0."""

    class Extents(Interface):
        extents: Map[Key, Extent]

        @call
        def alloc(self, key: Key, size: Annotated[int, Range(1, 9)], zeroed: bool) -> bool:
            if key in self.extents:
                return False
            self.extents[key] = Extent(size=size, zeroed=zeroed)
            return True

        @call
        def resize(self, key: Key, size: Annotated[int, Range(1, 9)]) -> bool:
            if key not in self.extents or self.extents[key].size == size:
                return False
            self.extents[key].size = size
            return True

    untested = [one for some in generate(Extents).untested.values() for one in some]
    assert untested
    assert all("size 0" in one.example for one in untested)


def test_a_model_of_which_no_class_can_be_tested_says_what_to_write() -> None:
    class Unreachable(Interface):
        cells: Map[Key, bool]

        @call
        def flip(self, key: Key) -> None:
            self.cells[key] = not self.cells[key]

    with pytest.raises(UsageError, match=r"no test of unreachable can be made \(.* write `setup\(self\)`"):
        generate(Unreachable)


def broken(**methods: Any) -> type[Interface]:
    return type("Broken", (Cells,), methods)


@pytest.mark.parametrize(
    "methods, expected",
    [
        ({"setup": lambda self: 1 / 0}, r"test_generation\.py:\d+: Broken\.setup raised ZeroDivisionError"),
        ({"setup": lambda self: ["write"]}, r"Broken\.setup: expected invoke\(\.\.\.\) of calls, got str 'write'"),
        ({"setup": lambda self: [invoke("wipe")]}, r"broken has no call 'wipe'; it has read, write, whole"),
        (
            {"setup": lambda self: [invoke("read", k=1)]},
            r"Broken\.read raised TypeError: .*unexpected keyword",
        ),
        ({"observe": lambda self, values: values["x"]}, r"Broken\.observe raised KeyError"),
        ({"observe": lambda self, values: [Invocation]}, r"Broken\.observe: expected invoke\(\.\.\.\) of calls"),
        ({"__init__": lambda self, size: None}, r"Broken\.__init__ raised TypeError"),
    ],
    ids=["setup raises", "no invocation", "unknown call", "wrong argument", "observe raises", "a class", "init"],
)
def test_set_ups_and_observations_that_cannot_run(methods: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected) as caught:
        generate(broken(**methods), ["read", "read"])
    assert "\n" not in str(caught.value)


def test_an_observation_cannot_name_what_the_implementation_picks() -> None:
    class Peeking(Interface):
        numbers: Map[Key, Number]

        @call
        def has(self, number: Number) -> bool:
            return False

        def setup(self) -> Any:
            return []

        def observe(self, values: Mapping[type, Any]) -> Any:
            return [invoke("has", number=number) for number in values[Number]]

    with pytest.raises(UsageError, match=r"no calls were found .* and return a Number that it has no more"):
        generate(Peeking)


def test_a_state_that_hides_what_an_observation_shows_is_refused() -> None:
    class Hiding(Interface):
        last: int

        @call
        def set(self, value: int) -> None:
            self.last = value

        @call
        def get(self) -> int:
            return self.last

        def equivalent(self, other: Any) -> bool:
            return True

        def setup(self) -> Any:
            return [invoke("set", value=self.last)]

        def observe(self, values: Mapping[type, Any]) -> Any:
            return [invoke("get")]

    class Telling(Hiding):
        @call
        def one(self) -> None:
            self.last = 1

        @call
        def two(self) -> None:
            self.last = 2

    with pytest.raises(UsageError, match="was found to commute, but concrete runs of the model differ by order"):
        generate(Telling, ["one", "two"])


class Placed(Interface):
    """Each process has its own working directory (paper, section 3.2)."""

    directory: Map[Process, Key]
    files: Map[Key, bool]

    @call
    def create(self, process: Process) -> int | Errno:
        if process not in self.directory:
            return Errno.ENOENT
        here = self.directory[process]
        if here in self.files:
            return Errno.EEXIST
        self.files[here] = True
        return 0

    @call
    def enter(self, process: Process, key: Key) -> None:
        self.directory[process] = key

    def setup(self) -> Any:
        for key in self.files:
            yield invoke("enter", process=0, key=key)
            yield invoke("create", process=0)
        for process, key in self.directory.items():
            yield invoke("enter", process=process, key=key)


def test_a_parameter_of_sort_process_places_the_call() -> None:
    tests = generate(Placed, ["create", "create"]).tests
    assert {placements(test) for test in tests} == {(0, 0), (0, 1)}
    assert all(not placed.args for test in tests for placed in test.calls)
    both_create = [t for t in tests if all(o.results == (0, 0) for order in t.orders for o in order.outcomes)]
    assert both_create and all(placements(test) == (0, 1) for test in both_create)


class Choosing(Interface):
    """Two choices, the second within what the first leaves."""

    total: int

    @call
    def split(self) -> int:
        first = choose(Annotated[int, Range(0, 2)])
        second = choose(Annotated[int, Range(0, 2)], lambda value: value <= first)
        return 10 * first + second

    def setup(self) -> Any:
        return []


def test_every_combination_of_choices_is_acceptable() -> None:
    (test,) = [t for t in generate(Choosing, ["split"], size=1).tests if placements(t) == (0,)]
    assert {outcome.results for outcome in test.orders[0].outcomes} == {(0,), (10,), (11,), (20,), (21,), (22,)}


def test_combinations_are_gone_through_in_depth_even_if_later_ones_have_fewer_values() -> None:
    oracle, seen = ReplayedOracle(), []
    while True:
        oracle.begin("call", 0)
        first = oracle.choose(BoolType(), lambda _: True)
        second = oracle.choose(BoolType(), lambda value, first=first: first or not value)
        seen.append((first, second))
        if not oracle.step():
            break
    assert seen == [(False, False), (True, False), (True, True)]


def test_a_choice_that_leaves_a_later_call_nothing_is_no_outcome() -> None:
    class Slots(Interface):
        taken: Map[int, bool]

        @call
        def take(self, pair: bool) -> int:
            slot = choose(Annotated[int, Range(0, 1)], lambda slot: slot not in self.taken)
            self.taken[slot] = True
            if pair and slot == 0:
                self.taken[1] = True
            return slot

        def setup(self) -> Any:
            return []

    tests = [t for t in generate(Slots, ["take", "take"], level="full").tests if placements(t) == (0, 1)]
    results = {
        tuple(placed.args["pair"] for placed in test.calls): {
            tuple(outcome.results for outcome in order.outcomes) for order in test.orders
        }
        for test in tests
    }
    assert results[False, False] == {((0, 1), (1, 0)), ((1, 0), (0, 1))}
    assert results[True, False] == {((1, 0),), ((1, 0), (0, 1))}
    assert (True, True) not in results


def test_analysis_and_tests_count_the_same_paths() -> None:
    corpus = names("path")
    assert corpus.analysis is not None
    analysed = {one.calls: (one.paths, one.commutative_paths) for one in analyze(load_interface("names")).sets}
    assert {one.calls: (one.paths, one.commutative_paths) for one in corpus.analysis.sets} == analysed


class Seats(Interface):
    """No more seats are taken than there are: that is said of the state as a whole."""

    seats: Annotated[int, Range(0, 4)]
    taken: Annotated[int, Range(0, 4)]

    @well_formed
    def no_more_than_there_are(self) -> bool:
        return self.taken <= self.seats

    @call
    def extend(self) -> bool:
        if self.seats == 4:
            return False
        self.seats += 1
        return True

    @call
    def take(self) -> bool:
        if self.taken == self.seats:
            return False
        self.taken += 1
        return True


def test_states_of_tests_are_well_formed_as_a_whole() -> None:
    tests = generate(Seats, ["extend", "take"]).tests
    built = [Counter(step.call for step in test.setup) for test in tests]
    assert {(steps["extend"], steps["take"]) for steps in built} >= {(4, 4), (4, 0), (1, 0)}
    assert all(steps["take"] <= steps["extend"] for steps in built)
    for test, steps in zip(tests, built, strict=True):
        (outcome,) = test.orders[0].outcomes
        expected = {"extend": steps["extend"] < 4, "take": steps["take"] < steps["extend"]}
        assert [outcome.results[place] for place in (0, 1)] == [expected[one.call] for one in test.calls]
