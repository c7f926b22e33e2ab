"""Dividing a lock frees the tests that share nothing but it and what lies under it, and no lock's word is left out."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs
from rich.console import Console

from commutant.campaign import Outcome, Verdict
from commutant.cli.remedy import known_changes, worth_in
from commutant.mtrace.finding import LineField, Touched
from commutant.remedy import Change, Sense, Way, foretell, print_next, print_ranking, rank, read_change, scene_of
from commutant.remedy.places import member_of, path_of
from commutant.support.errors import UsageError
from tests.campaign.fakes import make_finding, make_test

LOCK = structs.replace(make_finding("lock", ("mutex_lock", "mutex_lock")), object="struct map")
DATA = structs.replace(make_finding("count", ("put", "put")), object="struct map", under="struct map.lock")
ALONE = make_finding("statistics", ("get", "get"))
INLINED = structs.replace(make_finding("inner", ("put", "put")), object="Mutex<..>")
UNDER_INLINED = structs.replace(DATA, under="Mutex<..>.inner")


WHERE = {"lock": 8, "count": 16, "statistics": 24, "inner": 32}
"""Where fields lie: each on a line of its own, of which both cores write its bytes."""


def verdict(number: int, *findings, outcome=Outcome.CONFLICTING) -> Verdict:
    shown = []
    for finding in findings:
        at = (WHERE.get(finding.field, 40), 4)
        touched = tuple(Touched(core, (), (at,)) for core in (0, 1))
        shown.append(structs.replace(finding, fields=(LineField(*at, finding.name),), touched=touched))
    return Verdict(f"test-{number}", outcome, tuple(shown))


def divided(*verdicts: Verdict) -> dict[str, list[str]]:
    """Each lock of a run, and the tests that are freed if it is divided."""
    scene = scene_of(verdicts)
    return {lock: sorted(foretell(scene, (Change(Way.DIVIDE, lock),)).freed) for lock in scene.locks()}


def test_a_lock_takes_what_lies_under_it_with_it():
    locks = divided(
        verdict(0, LOCK, DATA),
        verdict(1, LOCK, DATA, ALONE),
        verdict(2, ALONE),
        verdict(3, DATA, outcome=Outcome.UNSTABLE),
        verdict(4, LOCK, outcome=Outcome.CRASHED),
        verdict(5, INLINED),
        verdict(6, UNDER_INLINED),
    )
    assert locks == {"map.lock": ["test-0", "test-3"], "Mutex<..>.inner": ["test-5", "test-6"]}


def listed(scene) -> list[tuple[str, int, int]]:
    return [(str(one.change), len(one.alone.freed), one.together) for one in rank(scene, Sense(scene, ())).changes]


def test_a_divided_lock_stands_in_the_list_with_what_it_frees():
    scene = scene_of([verdict(0, LOCK, DATA), verdict(1, LOCK, DATA, ALONE)])
    assert listed(scene)[0] == ("divide the lock map.lock, with all that is touched under it", 1, 1)


def test_a_lock_that_frees_none_alone_is_listed_once_others_are_divided():
    """The lock of a directory covered most lines of most tests, and no list named it: a count stood in its way."""
    second = structs.replace(make_finding("other_lock", ("spin_lock", "spin_lock")), object="struct map")
    scene = scene_of([verdict(0, LOCK, DATA, second), verdict(1, LOCK, DATA, second), verdict(2, second)])
    rows = listed(scene)
    assert rows[0][1:] == (1, 1)
    assert rows[-1] == ("divide the lock map.lock, with all that is touched under it", 0, 3)
    out = io.StringIO()
    calls = dict.fromkeys(scene.tests, ("put", "put"))
    print_ranking(rank(scene, Sense(scene, ())), calls, Console(file=out, width=200))
    assert "put+put 2" in out.getvalue()


def test_a_lock_that_frees_nothing_is_no_remedy():
    scene = scene_of([verdict(0, LOCK, ALONE, UNDER_INLINED)])
    assert foretell(scene, (Change(Way.DIVIDE, "map.lock"),)).freed == frozenset()


def test_no_lock_is_named_by_a_name_that_says_nothing():
    """A kernel without types: the slab cache is all that is known of a line."""
    nameless = structs.replace(DATA, object="inode_cache", field="", under="inode_cache")
    assert divided(verdict(0, nameless)) == {}


def test_the_write_of_a_lock_is_never_left_out():
    fields = (LineField(8, 4, "struct map.lock"), LineField(16, 4, "Mutex<..>.inner"), LineField(24, 4, "struct map.n"))
    touched = tuple(Touched(core, (), ((8, 4), (16, 4), (24, 4))) for core in (0, 1))
    under = structs.replace(DATA, under="Mutex<..>.inner (make, adapter.rs:9; by container)")
    shown = tuple(structs.replace(one, fields=fields, touched=touched) for one in (LOCK, under))
    scene = scene_of([Verdict("test-0", Outcome.CONFLICTING, shown)])
    sense = Sense(scene, {"test-0"})
    assert Way.DROP_WRITE not in sense.ways("map.lock", False)
    assert Way.DROP_WRITE not in sense.ways("Mutex<..>.inner", False)
    assert Way.DROP_WRITE in sense.ways("map.n", False)


IN_MEMORY = "Mutex<..>.inner (make, adapter.rs:9; by container)"


def test_a_lock_is_named_without_who_asked_for_its_memory():
    """As fields are: `remedy` has listed it with the brackets, and `--divide` refused the name before them."""
    scene = scene_of([verdict(0, LOCK), verdict(1, structs.replace(DATA, under=IN_MEMORY))])
    asked = (Change(Way.DIVIDE, "Mutex<..>.inner"),)
    assert known_changes(scene, asked) == (Change(Way.DIVIDE, IN_MEMORY),)
    assert known_changes(scene, (Change(Way.DIVIDE, IN_MEMORY),)) == (Change(Way.DIVIDE, IN_MEMORY),)
    with pytest.raises(UsageError, match=r"no shared line .* did you mean Mutex<\.\.>\.inner\?"):
        known_changes(scene, (Change(Way.DIVIDE, "Mutex<..>.iner"),))


def test_the_list_ends_with_how_the_first_change_is_proved():
    out = io.StringIO()
    screen = Console(file=out, width=60)
    print_next(Path("runs/base"), "library:path=a.so", Change(Way.DIVIDE, IN_MEMORY), [IN_MEMORY], screen)
    print_next(Path("my run"), "linux:fs=ext4", Change(Way.MOVE, "cred.uid"), [IN_MEMORY], screen)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert "commutant check runs/base --target library:path=a.so -o NEW" in lines
    assert "commutant prove runs/base NEW --divide 'Mutex<..>.inner'" in lines
    assert "commutant check 'my run' --target linux:kernel=NAME -o NEW" in lines
    assert "commutant prove 'my run' NEW --move cred.uid" in lines
    print_next(Path("two"), "scalefs", Change(Way.DIVIDE, IN_MEMORY), [IN_MEMORY, "Mutex<..>.inner (grow)"], screen)
    assert f"--divide '{IN_MEMORY}'" in out.getvalue(), "one of two, and not both"


def test_dots_in_a_types_arguments_part_nothing():
    assert member_of("Mutex<..>.data.table.items") == ("Mutex<..>.data", False)
    assert path_of("vm_area_struct.shared.rb") == ["vm_area_struct", "shared", "rb"]
    assert read_change(Way.DROP_WRITE, "Mutex<..>.inner").place == "Mutex<..>.inner"
    for wrong in ("Mutex<.", "a..b", ".a", "a."):
        with pytest.raises(UsageError):
            read_change(Way.DROP_WRITE, wrong)


def test_the_first_cause_and_the_first_remedy_are_one():
    """`report --first` and `remedy` name the same lock, by one function."""
    verdicts = [verdict(0, LOCK)]
    run = SimpleNamespace(tests={"test-0": make_test()}, verdicts=lambda: verdicts)
    worth = worth_in(run)
    assert worth(LOCK)[0] == "divide the lock map.lock, with all that is touched under it: frees 1"
    assert not any("do not write" in line for line in worth(LOCK))
