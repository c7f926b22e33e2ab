"""Lists and maps of crate `olf` behind their adapters, as the target `olf`: right results, and calls on one map share
nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from commutant.lang.load import load_interface
from commutant.support import UsageError
from commutant.targets.base import Job, WindowRecord
from commutant.targets.registry import load_target
from commutant.testgen import TestCase, generate

ONE_LIST = {"find", "insert", "remove"}
MOST_MOVES = 60


def records_of(argument: str, tests: Sequence[TestCase]) -> list[WindowRecord]:
    """What each order of these tests shows on a target."""
    target = load_target(argument)
    try:
        target.start(lambda _: None, 2)
        (running,) = target.sessions(1)
        return list(running.run([Job(test, order) for test in tests for order in range(len(test.orders))]))
    finally:
        target.close()


def wrong(records: Sequence[WindowRecord]) -> list[tuple[str, str | None, str | None]]:
    """Tests with a result that the model does not accept, or that ended the program."""
    return [(record.job.test.id, record.wrong, record.crashed) for record in records if record.wrong or record.crashed]


@pytest.mark.parametrize("kind", ["map", "sorted"])
def test_every_result_is_one_that_the_model_accepts(kind: str) -> None:
    tests = generate(load_interface("lists")).tests
    of_one = [test for test in tests if {placed.call for placed in test.calls} <= ONE_LIST]
    moves = [test for test in tests if not {placed.call for placed in test.calls} <= ONE_LIST][:MOST_MOVES]
    records = records_of(f"olf:kind={kind}", [*of_one, *moves])
    assert len(records) > len(of_one) > 100
    assert wrong(records) == []
    sharing = {record.job.test.id for record in records if record.findings}
    shared_of_one = sharing & {test.id for test in of_one}
    assert bool(shared_of_one) == (kind == "sorted"), shared_of_one


MOST_OF_ENDS = 40
"""Tests of each pair of calls."""


def test_both_ends_give_what_the_model_accepts_and_share_nothing_between_lists() -> None:
    by_calls: dict[tuple[str, ...], list[TestCase]] = {}
    for test in generate(load_interface("lists-ends")).tests:
        by_calls.setdefault(tuple(placed.call for placed in test.calls), []).append(test)
    assert len(by_calls) == 15
    tests = [test for some in by_calls.values() for test in some[:MOST_OF_ENDS]]
    records = records_of("olf:kind=list", tests)
    assert wrong(records) == []
    of_other_lists = {
        test.id
        for test in tests
        if {placed.call for placed in test.calls} <= {"push", "pop", "look"}
        and test.calls[0].args["second"] != test.calls[1].args["second"]
    }
    assert len(of_other_lists) > 20
    assert not {record.job.test.id for record in records if record.findings} & of_other_lists


def test_the_target_is_that_of_libraries_with_an_adapter_of_its_own() -> None:
    target = load_target("olf:cores=4,allocator=per-core")
    assert target.implements("move", ["second", "key"])
    assert not target.implements("get", ["key"])
    assert target.describe()["kind"] == "map"
    assert "adapter" not in target.describe()
    assert [seeded.describe()["hash_seed"] for seeded in target.reseeded()] == [2, 3]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("olf:kind=tree", "kind=tree: expected one of map, sorted, list"),
        ("olf:path=x.so", "unknown option 'path'; expected kind=map"),
        ("olf:core=2", "unknown option 'core'; expected kind=map"),
        ("olf:cores=none", "cores=none: expected a number"),
    ],
)
def test_what_it_does_not_take_is_refused(argument: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_target(argument)
