"""Every class under the original COMMUTER's rule occurs among the classes of the level `conflict`.

Its rule: on each commutative path, one test for each pattern of equal and distinct values within each group of file
names, of inodes, of pipes, of a process's descriptors, of a process's addresses, and of an inode's offsets, as far as
the values occur in the path's condition. (Offsets are those of descriptors, of pread and pwrite, and of mapped pages;
what lseek is given is a distance.) Truth values count by value, and a path has decided those that occur in its
condition. Patterns are enumerated here by the calls' own exploration, with comparisons after it, and not by the
refinement of leaves that is under test; and a class counts by the concrete values that its test has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest

from commutant.analyzer import CallSet, PathOutcome, sets_of_calls
from commutant.lang import Struct, load_interface
from commutant.symbolic import BoolValue, Context, Decision, IntValue, SortValue, explore
from commutant.testgen.classes import classes
from commutant.testgen.materialize import Materializer
from commutant.testgen.valuation import Valuation

POSIX18 = load_interface("posix18")
PAIRS = sets_of_calls(POSIX18, None, 2)
Equal = Callable[[Any, Any], bool]
Path = tuple[Decision, ...]
Pattern = tuple[bool, ...]


def variables_of(value: Any) -> set[tuple[str, int]]:
    if isinstance(value, SortValue):
        return {("sort", value.index)}
    if isinstance(value, IntValue):
        return {("int", variable) for variable, _ in value.linear[0]}
    return set()


def in_condition(context: Context, path: Path) -> set[tuple[str, int]]:
    """The unknowns that occur in a path's condition."""
    found: set[tuple[str, int]] = set()
    for literal, _ in (*path, *context.restrictions):
        if literal.kind == "same":
            found |= {("sort", literal.left), ("sort", literal.right)}
        elif literal.kind != "bool":
            found |= {("int", variable) for variable, _ in literal.left[0]}
    return found


def records(outcome: PathOutcome, context: Context, attribute: str) -> Iterator[tuple[Any, Struct]]:
    """Key and value of the entries of a map that a call has looked at."""
    if attribute in vars(outcome.initial):
        for entry in getattr(outcome.initial, attribute).content.entries:
            present = isinstance(entry.presence, BoolValue) and context.bool_value(entry.presence.index)
            if present and entry.known:
                yield entry.key, entry.value


def groups(outcome: PathOutcome, context: Context, equal: Equal) -> Iterator[list[Any]]:
    """The groups of values within which the rule compares; `equal` also says which of them belong together."""
    arguments = outcome.arguments
    entries = list(records(outcome, context, "descriptors"))
    mappings = list(records(outcome, context, "memory"))
    yield [value for given in arguments for value in given.values() if getattr(value, "sort", "") == "Name"]
    names = [value for _, value in records(outcome, context, "names")]
    inums = [*names, *(vars(record).get("inum") for _, record in (*entries, *mappings))]
    inums = [inum for inum in inums if inum is not None]
    yield inums
    for process in [given["process"] for given in arguments]:
        mine = [given for given in arguments if equal(given["process"], process)]
        yield [given["fd"] for given in mine if "fd" in given]
        yield [given["address"] for given in mine if "address" in given]
    offsets = [(vars(record).get("inum"), vars(record).get("offset")) for _, record in entries]
    offsets += [(vars(record).get("inum"), vars(record).get("page")) for _, record in mappings]
    for given in arguments:
        for key, record in entries:
            if "fd" in given and equal(key[0], given["process"]) and equal(key[1], given["fd"]):
                offsets += [(vars(record).get("inum"), given["page"])] if "page" in given else []
    for inum in inums:
        yield [place for other, place in offsets if other is not None and place is not None and equal(other, inum)]


def pattern(outcome: PathOutcome, context: Context, path: Path, equal: Equal) -> Pattern:
    """Which of the values that the path's condition speaks of are equal, group by group."""
    spoken_of = in_condition(context, path)
    return tuple(
        equal(one, other)
        for group in groups(outcome, context, equal)
        for one, other in combinations([value for value in group if variables_of(value) & spoken_of], 2)
    )


def by_the_rule(calls: tuple[str, ...]) -> dict[Path, set[Pattern]]:
    call_set = CallSet(POSIX18, calls)
    found: dict[Path, set[Pattern]] = {}

    def program(context: Context) -> tuple[PathOutcome, Pattern]:
        outcome = call_set.run(context)
        path = tuple(context.trail)
        return outcome, pattern(outcome, context, path, lambda a, b: bool(a == b)) if outcome.commutes else ()

    for leaf in explore(program):
        if leaf.result is not None and leaf.result[0].commutes:
            found.setdefault(leaf.decisions[: leaf.result[0].decision_count], set()).add(leaf.result[1])
    return found


def by_our_tests(calls: tuple[str, ...]) -> dict[Path, set[Pattern]]:
    sorts = Materializer(POSIX18, calls, "conflict").sorts
    found: dict[Path, set[Pattern]] = {}
    for one in classes(CallSet(POSIX18, calls), "conflict"):
        if one.outcome.commutes:
            valuation = Valuation(one.context, sorts)
            valuation.state(one.outcome.initial)
            told = pattern(one.outcome, one.context, one.path, lambda a, b, v=valuation: bool(v(a) == v(b)))
            found.setdefault(one.path, set()).add(told)
    return found


def check(calls: tuple[str, ...]) -> int:
    wanted, ours = by_the_rule(calls), by_our_tests(calls)
    assert wanted.keys() == ours.keys()
    for path, patterns in wanted.items():
        assert patterns <= ours[path], f"{'-'.join(calls)}: {patterns - ours[path]} of {path}"
    return sum(map(len, wanted.values()))


SAMPLE = sorted(
    {
        *random.Random(13_664).sample(PAIRS, 10),
        ("lseek", "pread"),
        ("lseek", "lseek"),
        ("close", "close"),
        ("read", "mmap"),
    }
)


@pytest.mark.parametrize("calls", SAMPLE, ids="-".join)
def test_every_class_of_the_rule_is_one_of_ours(calls: tuple[str, ...]) -> None:
    assert check(calls)


def test_the_rule_asks_for_more_than_paths() -> None:
    """Else the test above would say nothing."""
    calls = ("lseek", "pread")
    assert check(calls) > len(by_the_rule(calls))


@pytest.mark.long
def test_every_class_of_the_rule_of_all_pairs() -> None:
    assert sum(check(calls) for calls in PAIRS) > 13_664  # the paper's number of tests (section 6.1)
