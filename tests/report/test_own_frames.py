"""What a reader learns of an access: the function in files of his own, wherever code of others did it for him."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from commutant.campaign import Outcome
from commutant.mtrace.finding import Access
from commutant.report.data import JudgedTest
from commutant.report.groups import group_findings
from commutant.report.own_frames import own_frame, own_function
from commutant.report.ranking import rank_shared
from commutant.report.sarif import _location
from commutant.targets.library.adapter import project_of
from tests.campaign.fakes import make_finding, make_test

RUST = (
    "atomic::atomic_compare_exchange library/core/src/sync/atomic.rs:3975",
    "Mutex::lock library/std/src/sync/poison/mutex.rs:492",
    "HashMap::insert hashbrown-0.16.0/src/map.rs:1847",
    "Store::put my-store/src/store.rs:31",
    "map_adapter::put+0x18 src/lib.rs:13",
)
PTHREAD = (
    "lll_mutex_lock_optimized ./nptl/pthread_mutex_lock.c:48",
    "pthread_mutex_lock+0x48 ./nptl/pthread_mutex_lock.c:93",
    "put+0xd one-mutex/cm.c:10",
)
WRAPPED = ("HashMap::count my-map/hashmap.hpp:30", "call_get my-map/adapter.cpp:12")


def access(function: str, stack: tuple[str, ...]) -> Access:
    return Access(0, True, 0, 4, function, stack)


@pytest.mark.parametrize(
    ("function", "stack", "told"),
    [
        ("map_adapter::put", RUST, "Store::put"),
        ("pthread_mutex_lock", PTHREAD, "put"),
        ("void commutant::call<HashMap, &(call_get(HashMap&))>(void*)", WRAPPED, "HashMap::count"),
        ("commutant_adapter::foreign::call", WRAPPED, "HashMap::count"),
        ("down_write", ("down_write+0x19", "path_openat+0x332"), "down_write"),
        (
            "lockref_get",
            ("arch_atomic_inc arch/x86/include/asm/atomic.h:53", "lockref_get+0x1 lib/lockref.c:40"),
            "lockref_get",
        ),
        ("pthread_mutex_lock", PTHREAD[:2], "pthread_mutex_lock"),
        ("f", (), "f"),
    ],
)
def test_the_innermost_function_of_own_files(function, stack, told):
    assert own_function(access(function, stack)) == told


def test_reports_gates_and_sarif_tell_it():
    finding = make_finding("lock", ("pthread_mutex_lock", "pthread_mutex_lock"))
    sides = {"first": finding.first, "second": finding.second}
    finding = structs.replace(finding, **{n: structs.replace(side, stack=PTHREAD) for n, side in sides.items()})
    tests = [JudgedTest(make_test(), Outcome.CONFLICTING, (finding,))]
    assert rank_shared(tests)[0].functions == ("put",)
    (group,) = group_findings(tests).values()
    assert group.place == "struct dentry.lock in put (link, rename; 1 test)"
    assert group.fingerprint.functions == ("pthread_mutex_lock", "pthread_mutex_lock"), "no name of a line"
    assert _location(finding.first)["physicalLocation"] == {
        "artifactLocation": {"uri": "one-mutex/cm.c", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 10},
    }


def test_an_inlined_frame_is_a_place_too():
    assert own_frame(access("f", RUST)) == RUST[3]
    place = _location(access("f", RUST))["physicalLocation"]
    assert place["region"] == {"startLine": 31} and place["artifactLocation"]["uri"] == "my-store/src/store.rs"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/tmp/h/target/release/libmap_adapter.so", "map"),
        ("/tmp/my-map/build/adapter.so", "my-map"),
        ("/tmp/my-map/target/release/libadapter.so", "my-map"),
        ("/tmp/x/table.so", "table"),
        ("/adapter.so", "library"),
    ],
)
def test_runs_are_called_after_the_project(path, name):
    assert project_of(Path(path)) == name
