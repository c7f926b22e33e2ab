"""Lists and maps of crate `olf` behind their adapters, as the target `olf`: right results, and calls on one map share
nothing."""

from __future__ import annotations

import pytest

from commutant.lang.load import load_interface
from commutant.support import UsageError
from commutant.targets.base import Job
from commutant.targets.registry import load_target
from commutant.testgen import generate

ONE_LIST = {"find", "insert", "remove"}
MOST_MOVES = 60


@pytest.mark.parametrize("kind", ["map", "sorted"])
def test_every_result_is_one_that_the_model_accepts(kind: str) -> None:
    tests = generate(load_interface("lists")).tests
    of_one = [test for test in tests if {placed.call for placed in test.calls} <= ONE_LIST]
    moves = [test for test in tests if not {placed.call for placed in test.calls} <= ONE_LIST][:MOST_MOVES]
    target = load_target(f"olf:kind={kind}")
    try:
        target.start(lambda _: None, 2)
        (running,) = target.sessions(1)
        jobs = [Job(test, order) for test in (*of_one, *moves) for order in range(len(test.orders))]
        records = list(running.run(jobs))
    finally:
        target.close()
    assert len(records) > len(of_one) > 100
    assert [
        (record.job.test.id, record.wrong, record.crashed) for record in records if record.wrong or record.crashed
    ] == []
    sharing = {record.job.test.id for record in records if record.findings}
    shared_of_one = sharing & {test.id for test in of_one}
    assert bool(shared_of_one) == (kind == "sorted"), shared_of_one


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
        ("olf:kind=tree", "kind=tree: expected one of map, sorted"),
        ("olf:path=x.so", "unknown option 'path'; expected kind=map"),
        ("olf:core=2", "unknown option 'core'; expected kind=map"),
        ("olf:cores=none", "cores=none: expected a number"),
    ],
)
def test_what_it_does_not_take_is_refused(argument: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_target(argument)
