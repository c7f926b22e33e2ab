"""Dividing a lock frees the tests that share nothing but it and what lies under it, and no lock's word is left out."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from msgspec import structs
from rich.console import Console

from commutant.campaign import Outcome, Verdict
from commutant.cli.remedy import worth_in
from commutant.mtrace.finding import LineField, Touched
from commutant.remedy import Sense, Way, divided_locks, print_divided, read_change, scene_of
from commutant.remedy.places import member_of, path_of
from commutant.support.errors import UsageError
from tests.campaign.fakes import make_finding, make_test

LOCK = structs.replace(make_finding("lock", ("mutex_lock", "mutex_lock")), object="struct map")
DATA = structs.replace(make_finding("count", ("put", "put")), object="struct map", under="struct map.lock")
ALONE = make_finding("statistics", ("get", "get"))
INLINED = structs.replace(make_finding("inner", ("put", "put")), object="Mutex<..>")
UNDER_INLINED = structs.replace(DATA, under="Mutex<..>.inner")


def verdict(number: int, *findings, outcome=Outcome.CONFLICTING) -> Verdict:
    return Verdict(f"test-{number}", outcome, findings)


def test_a_lock_takes_what_lies_under_it_with_it():
    locks = divided_locks(
        [
            verdict(0, LOCK, DATA),
            verdict(1, LOCK, DATA, ALONE),
            verdict(2, ALONE),
            verdict(3, DATA, outcome=Outcome.UNSTABLE),
            verdict(4, LOCK, outcome=Outcome.CRASHED),
            verdict(5, INLINED),
            verdict(6, UNDER_INLINED),
        ]
    )
    assert [(one.name, sorted(one.freed), len(one.tests)) for one in locks] == [
        ("struct map.lock", ["test-0", "test-3"], 3),
        ("Mutex<..>.inner", ["test-5", "test-6"], 2),
    ]
    out = io.StringIO()
    print_divided(locks, Console(file=out, width=200))
    assert "divide the lock struct map.lock, with all that is touched under it: frees 2 tests of 3" in out.getvalue()


def test_a_lock_that_frees_nothing_is_no_remedy():
    assert divided_locks([verdict(0, LOCK, ALONE)]) == []
    out = io.StringIO()
    print_divided([], Console(file=out))
    assert out.getvalue() == ""


def test_no_lock_is_told_by_a_name_that_says_nothing():
    """A kernel without types: the slab cache is all that is known of a line."""
    nameless = structs.replace(DATA, object="inode_cache", field="", under="inode_cache")
    assert divided_locks([verdict(0, nameless)]) == []


def test_the_write_of_a_lock_is_never_left_out():
    fields = (LineField(8, 4, "struct map.lock"), LineField(16, 4, "Mutex<..>.inner"), LineField(24, 4, "struct map.n"))
    touched = tuple(Touched(core, (), ((8, 4), (16, 4), (24, 4))) for core in (0, 1))
    scene = scene_of([verdict(0, structs.replace(LOCK, fields=fields, touched=touched))])
    sense = Sense(scene, {"test-0"}, ["Mutex<..>.inner (make, adapter.rs:9; by container)"])
    assert Way.DROP_WRITE not in sense.ways("map.lock", False)
    assert Way.DROP_WRITE not in sense.ways("Mutex<..>.inner", False)
    assert Way.DROP_WRITE in sense.ways("map.n", False)


def test_dots_in_a_types_arguments_part_nothing():
    assert member_of("Mutex<..>.data.table.items") == ("Mutex<..>.data", False)
    assert path_of("vm_area_struct.shared.rb") == ["vm_area_struct", "shared", "rb"]
    assert read_change(Way.DROP_WRITE, "Mutex<..>.inner").place == "Mutex<..>.inner"
    for wrong in ("Mutex<.", "a..b", ".a", "a."):
        with pytest.raises(UsageError):
            read_change(Way.DROP_WRITE, wrong)


def test_the_first_cause_and_the_first_remedy_are_one():
    """`report --first` and `remedy` name the same lock, by one function."""
    fields, touched = (LineField(8, 4, "struct map.lock"),), tuple(Touched(core, (), ((8, 4),)) for core in (0, 1))
    verdicts = [verdict(0, structs.replace(LOCK, fields=fields, touched=touched))]
    run = SimpleNamespace(tests={"test-0": make_test()}, verdicts=lambda: verdicts)
    worth = worth_in(run)
    assert worth(LOCK)[0] == "divide the lock struct map.lock, with all that is touched under it: frees 1"
    assert not any("do not write" in line for line in worth(LOCK))
