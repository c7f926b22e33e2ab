"""Transfers of lines on the planted library: what a change is predicted to save is what the changed build has less."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from commutant.mtrace import AccessKind, CourseAccess, LineField, pack_course, unpack_course
from commutant.remedy import (
    Change,
    Mix,
    Sense,
    Traffic,
    Way,
    prove_transfers,
    rank_savings,
    read_change,
    read_mix,
    saving_of,
    savings,
    scene_of,
    traffic_of,
)
from commutant.remedy.scene import Fields, Line, Scene
from commutant.remedy.traffic import Meeting, _add_up
from commutant.support import UsageError
from tests.remedy.test_planted import CHANGES, TESTS, verdicts

CALLS = {test.id: tuple(call.call for call in test.calls) for test in TESTS}
ALL_ALIKE = Mix({})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


def traffic(folder: Path, macros: tuple[str, ...], cores: int = 2) -> Traffic:
    found = verdicts(folder, macros)
    return traffic_of(found, scene_of(found), CALLS, (), cores)


def plain(traffic: Traffic) -> Mapping[str, float]:
    return {test: total.plain for test, total in traffic.totals.items()}


def test_a_course_has_what_each_core_did_in_order(folder: Path) -> None:
    (found,) = (one for one in verdicts(folder, ()) if CALLS[one.test_id] == ("read_limit", "note_hit"))
    first, second = found.courses
    assert first is not None and second is not None
    (met,) = first.objects
    by_core: dict[int, list[CourseAccess]] = {}
    for access in unpack_course(met.lines[0]):
        by_core.setdefault(access.core, []).append(access)
    reader, writer = (by_core[core] for core in sorted(by_core))
    assert [(one.kind, one.offset, one.size_bytes) for one in reader] == [(AccessKind.READ, 0, 8)]
    kinds = [(one.kind, one.offset, one.size_bytes) for one in writer]
    assert kinds == [(AccessKind.READ, 8, 8), (AccessKind.WRITE, 8, 8)]
    assert writer[0].position < writer[1].position
    for core, made in by_core.items():
        assert all(one.position < first.periods[core] for one in made)


@pytest.mark.parametrize("macros", [*((macro,) for macro in CHANGES), ("OWN_LINE", "SPREAD")])
@pytest.mark.parametrize("cores", [2, 32])
def test_what_is_saved_is_what_the_changed_build_has_less(folder: Path, macros: tuple[str, ...], cores: int) -> None:
    before, after = plain(traffic(folder, (), cores)), plain(traffic(folder, macros, cores))
    base = traffic(folder, (), cores)
    changes = [CHANGES[macro] for macro in macros]
    saved = dict.fromkeys(before, 0.0)
    for number in base.touching(changes):
        ((cost,),) = base.after([number], [changes])
        for test, count in base.by_meeting[number].items():
            saved[test] += (base.before[number] - cost).plain * count
    for test in before:
        assert before[test] - saved[test] == pytest.approx(after[test], abs=0.05), (CALLS[test], before[test])
    assert sum(saved.values()) > 1


def test_a_move_that_frees_nothing_saves_transfers_and_is_listed(folder: Path) -> None:
    base = traffic(folder, (), 32)
    own_line = saving_of(base, [Change(Way.MOVE, "ledger.hits")], ALL_ALIKE)
    assert own_line.best is not None
    assert own_line.saved.plain > 0
    assert "ledger.limit" in own_line.neighbours
    savings = rank_savings(base, Sense(base.scene, ()), ALL_ALIKE, 10)
    shares = [row.share.plain for row in savings.layouts]
    assert shares == sorted(shares, reverse=True)
    assert all(row.share.plain < 0 for row in savings.worse)
    for row in savings.layouts:
        assert row.share.plain == pytest.approx(saving_of(base, row.changes, ALL_ALIKE).share.plain)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stat", "expected CALL=NUMBER"),
        ("stat=x", "expected CALL=NUMBER"),
        ("stat=nan", "expected CALL=NUMBER"),
        ("=3", "expected CALL=NUMBER"),
        ("", "expected CALL=NUMBER"),
        ("stat=-1", "no negative number"),
        ("stat=0,open=0", "sums to nothing"),
        ("stat=1,stat=2", "names 'stat' twice"),
    ],
)
def test_a_mix_that_is_none_is_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_mix(text)
    assert "\n" not in str(caught.value)


def test_fields_of_two_types_do_not_leave_a_line_together() -> None:
    with pytest.raises(UsageError, match=r"lies in 2 types \(dentry, file\); expected fields of one type"):
        read_change(Way.PART, "dentry.d_lockref,file.f_count")
    with pytest.raises(UsageError, match="expected two fields or more"):
        read_change(Way.PART, "dentry.d_lockref")
    change = read_change(Way.PART, "inode.i_lock, inode.i_size")
    assert str(change) == "move i_lock and i_size of inode together to a line of their own"


def test_a_mix_weighs_pairs_by_how_often_they_meet(folder: Path) -> None:
    base = traffic(folder, ())
    weights = Mix({"read_limit": 1, "note_hit": 3}).weights(base.sets)
    assert weights["read_limit", "read_limit"] == pytest.approx(1 / 16)
    assert weights["read_limit", "note_hit"] == pytest.approx(6 / 16)
    assert weights["note_hit", "note_hit"] == pytest.approx(9 / 16)
    with pytest.raises(UsageError, match=r"^--mix: no test .* makes 'stat'; expected calls of "):
        Mix({"stat": 1.0}).weights(base.sets)


@pytest.mark.parametrize("unit", ["1e-200", "1", "1e300"])
def test_a_mix_is_in_any_unit(folder: Path, unit: str) -> None:
    """The square of 1e-200 is 0, and that of 1e300 is no number: the mix was refused, or every share was `nan`."""
    sets = traffic(folder, ()).sets
    found = read_mix(f"read_limit={unit},note_hit={unit}").weights(sets)
    assert found == pytest.approx(read_mix("read_limit=1,note_hit=1").weights(sets))


@pytest.mark.parametrize("macro", CHANGES)
def test_a_proof_holds_the_prediction_against_the_changed_build(folder: Path, macro: str) -> None:
    """One build with and without a change, for each way of changing it."""
    base, change = traffic(folder, (), 32), CHANGES[macro]
    proof = prove_transfers(base, traffic(folder, (macro,), 32), [change])
    assert proof is not None
    every = proof.every
    assert every.right == every.tests > 3
    assert every.median_error <= 0.03
    assert every.predicted.plain == pytest.approx(every.counted.plain, abs=0.05)
    assert every.counted.plain < every.before.plain
    assert proof.alike == (every if change.way in savings.LAYOUTS else None)
    # Where nothing was changed, nothing went as predicted.
    unchanged = prove_transfers(base, traffic(folder, (), 32), [change])
    assert unchanged is not None
    assert unchanged.every.right == 0
    assert unchanged.every.counted == unchanged.every.before


def _of(*meetings: Meeting) -> Traffic:
    """The traffic of a test `a` of two `stat`, which has these meetings."""
    found = Traffic(Scene(), 32, meetings=list(meetings), tests={"a": dict.fromkeys(range(len(meetings)), 1.0)})
    _add_up(found, {"a": ("stat", "stat")})
    return found


MOVED = (50, AccessKind.WRITE, 8)
BESIDE = (10, AccessKind.READ, 0)


@pytest.mark.parametrize(
    ("new", "is_alike", "error"),
    [
        ([[MOVED]], True, 0.0),
        ([[(55, AccessKind.WRITE, 8)]], True, 0.0),
        ([[MOVED], [BESIDE]], True, 0.0),
        ([[(50, AccessKind.READ, 8), MOVED]], False, 0.0),
        ([[MOVED], [BESIDE, (20, AccessKind.WRITE, 0)]], False, 4.0),
        ([[MOVED, (70, AccessKind.WRITE, 16)]], True, 2.0),
    ],
    ids=["moved", "elsewhere in time", "beside it as before", "read as well", "beside it written", "a new neighbour"],
)
def test_a_kernel_that_does_the_same_is_told_from_one_that_does_not(
    new: list[list[tuple[int, int, int]]], is_alike: bool, error: float
) -> None:
    """Between two versions of a kernel more has changed than a layout; a new neighbour is the layout's own fault."""
    base = _of(_met(BESIDE, MOVED))
    proof = prove_transfers(base, _of(*(_met(*done) for done in new)), [Change(Way.MOVE, "dentry.d_lockref")])
    assert proof is not None
    assert (proof.alike is not None) == is_alike
    assert proof.every.median_error == pytest.approx(error, abs=0.01)


def test_of_accesses_that_go_no_tests_are_chosen_by_the_outcome() -> None:
    """Where they are gone is what was to be found out."""
    proof = prove_transfers(_of(_met(BESIDE, MOVED)), _of(_met(BESIDE)), [Change(Way.DROP, "dentry.d_lockref")])
    assert proof is not None
    assert (proof.every.right, proof.alike) == (1, None)


def test_a_run_without_courses_says_so(folder: Path) -> None:
    from dataclasses import replace

    found = [replace(one, courses=()) for one in verdicts(folder, ())]
    with pytest.raises(UsageError, match=r"does not say in which order lines were touched, .* earlier version$"):
        traffic_of(found, scene_of(found), CALLS, ())


def test_a_field_in_two_lines_is_told_from_an_array_over_many() -> None:
    def traffic_with(size_bytes: int, offset: int) -> Traffic:
        low = Line(Fields("struct a", 0, (LineField(offset, 64 - offset, "struct a.b"),)), ())
        high = Line(Fields("struct a", 64, (LineField(0, size_bytes, "struct a.b"),)), ())
        return Traffic(Scene(), 2, meetings=[Meeting((low, high), (b"", b""), (1, 1))])

    assert traffic_with(4, 60).crosses_border("a.b")
    assert not traffic_with(64, 60).crosses_border("a.b")
    assert not traffic_with(4, 60).crosses_border("a.c")


def test_a_parting_is_of_one_type_as_it_can_be_asked_for() -> None:
    names = ("struct inode.i_count", "struct inode.i_writecount", "struct address_space.i_pages", "struct inode.i_fop")
    fields = [LineField(8 * at, 8, name) for at, name in enumerate(names)]
    line = Line(Fields("struct inode", 64, fields), ((0, 0xFFFFFFFF, 0), (1, 0, 0xFFFFFFFF)))
    traffic = Traffic(Scene(), 2, meetings=[Meeting((line,), (b"",), (1, 1))])
    written = {"inode.i_count": 0.9, "inode.i_writecount": 0.5, "address_space.i_pages": 0.5, "inode.i_fop": 0.0}
    partings = savings._partings(traffic, written)
    assert {change.place for changes in partings.values() for change in changes} == {"inode.i_count,inode.i_writecount"}
    assert all(read_change(Way.PART, change.place) == change for changes in partings.values() for change in changes)


def _met(*touched: tuple[int, int, int]) -> Meeting:
    """Two cores make the same accesses to a line of `dentry`: at which position, of which kind, at which byte."""
    names = ("struct dentry.d_iname", "struct dentry.d_lockref", "struct dentry.d_op")
    fields = Fields("struct dentry", 64, [LineField(8 * at, 8, name) for at, name in enumerate(names)])
    read = sum(0xFF << at for at in {at for _, kind, at in touched if kind == AccessKind.READ})
    written = sum(0xFF << at for at in {at for _, kind, at in touched if kind != AccessKind.READ})
    made = [CourseAccess(position, core, kind, at, 8) for core in (0, 1) for position, kind, at in touched]
    return Meeting((Line(fields, ((0, read, written), (1, read, written))),), (pack_course(made),), (100, 100))


def test_of_two_that_save_the_same_the_smaller_one_stands_first() -> None:
    """A parting of all written members stood above the one of them that all of it came from."""
    stat = _met((10, AccessKind.READ, 0), (50, AccessKind.WRITE, 8), (80, AccessKind.WRITE, 8))
    rename = _met((10, AccessKind.READ, 0), (50, AccessKind.WRITE, 16))
    found = Traffic(Scene(), 32, meetings=[stat, rename], tests={"a": {0: 1.0}, "b": {1: 1.0}})
    _add_up(found, {"a": ("stat", "stat"), "b": ("rename", "rename")})
    listed = rank_savings(found, Sense(found.scene, ()), read_mix("stat=1"), 10).layouts
    assert [one.changes[0] for one in listed][:3] == [
        Change(Way.MOVE, "dentry.d_lockref"),
        Change(Way.MOVE, "dentry.d_iname"),
        Change(Way.PART, "dentry.d_lockref,dentry.d_op"),
    ]
    assert listed[0].share.plain == pytest.approx(listed[2].share.plain)
