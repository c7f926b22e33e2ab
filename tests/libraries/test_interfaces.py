"""The models of libraries against implementations of the C++ library: every result is right, in every order."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.lang.load import load_interface
from commutant.targets.base import Job
from commutant.testgen import generate
from tests.libraries.building import build, pair, session, variable

MOST_TESTS = 150

WITH = {
    "map-relaxed": ("shared_map.cpp", ()),
    "kv": ("ordered.cpp", ()),
    "ordered-map": ("ordered.cpp", ("-DTELLS",)),
    "queue": ("collections.cpp", ()),
    "queue-unordered": ("collections.cpp", ("-DSTACK",)),
    "stack": ("collections.cpp", ("-DSTACK",)),
    "counter": ("collections.cpp", ()),
    "metrics": ("collections.cpp", ()),
    "refcount": ("handles.cpp", ()),
    "refcount-exact": ("handles.cpp", ()),
    "interner": ("handles.cpp", ()),
    "allocator": ("handles.cpp", ()),
    "pool": ("handles.cpp", ()),
}


@pytest.mark.parametrize("interface", WITH)
def test_every_result_is_one_that_the_model_accepts(interface: str, tmp_path: Path) -> None:
    source, extra = WITH[interface]
    tests = tuple(generate(load_interface(interface)).tests)[:MOST_TESTS]
    assert tests
    with session(build(tmp_path, "adapter", source, extra=extra)) as running:
        jobs = [Job(test, order) for test in tests for order in range(len(test.orders))]
        records = list(running.run(jobs))
    assert [
        (record.job.test.id, record.wrong, record.crashed) for record in records if record.wrong or record.crashed
    ] == []
    # All of them are behind one lock, so that no two calls are free of each other.
    assert all(record.findings for record in records)


def test_a_wrong_library_is_found(tmp_path: Path) -> None:
    """A stack is no queue."""
    tests = tuple(generate(load_interface("queue")).tests)
    with session(build(tmp_path, "adapter", "collections.cpp", extra=("-DSTACK",))) as running:
        records = list(running.run([Job(test, 0) for test in tests]))
    assert any(record.wrong for record in records)


def test_containers_of_cpp_have_types_and_exceptions_fail_their_call(tmp_path: Path) -> None:
    tests = tuple(generate(load_interface("map-relaxed")).tests)
    with session(build(tmp_path, "adapter", "shared_map.cpp")) as running:
        (failed,) = running.run([Job(pair("fail"), 0)])
        names = {
            variable(finding) for record in running.run([Job(test, 0) for test in tests]) for finding in record.findings
        }
    assert "it threw: no room" in (failed.wrong or "")
    assert any(name.startswith("Store.lock") for name in names)
    assert any(name.startswith("_Hash_node<") for name in names), sorted(names)
