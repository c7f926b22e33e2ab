"""A planted library whose changes are macros: what its run foretells is what the changed builds show."""

from __future__ import annotations

import functools
import itertools
import subprocess
from pathlib import Path

import pytest

from commutant import _native
from commutant.campaign.verdict import Judge, Outcome, Verdict
from commutant.guest import find_user_emulator
from commutant.mtrace import Access, Finding, LineField, Picture, PictureLine, Touched, TraceReader
from commutant.remedy import Change, Scene, Sense, Way, foretell, prove, rank, scene_of
from commutant.report import JudgedTest
from commutant.support import artifacts
from commutant.targets.base import Job, WindowRecord
from tests.campaign.fakes import make_test

SOURCE = Path(__file__).parent / "planted.c"
CALLS = ("read_limit", "note_hit", "keep_open", "count", "ask", *(f"put{index}" for index in range(16)))
PAIRS = list(itertools.combinations_with_replacement(range(len(CALLS)), 2))
TESTS = [make_test(number, (CALLS[one], CALLS[other])) for number, (one, other) in enumerate(PAIRS)]
ALL = frozenset(test.id for test in TESTS)

OWN_LINE = Change(Way.MOVE, "ledger.hits")
SPREAD = Change(Way.SPREAD, "ledger.entries")
CHECK_FIRST = Change(Way.DROP_WRITE, "ledger.closed")
DIVIDED = Change(Way.SPLIT, "ledger.calls")
NO_PREFETCH = Change(Way.DROP_PREFETCH, "ledger.asked")
MACROS = {
    "OWN_LINE": OWN_LINE,
    "SPREAD": SPREAD,
    "CHECK_FIRST": CHECK_FIRST,
    "DIVIDED": DIVIDED,
    "NO_PREFETCH": NO_PREFETCH,
}
"""Changes that can be made together."""
PARTED = Change(Way.PART, "ledger.closed,ledger.hits")
CHANGES = {**MACROS, "PARTED": PARTED}


@functools.cache
def verdicts(folder: Path, macros: tuple[str, ...]) -> list[Verdict]:
    """All pairs of calls judged, on the library built with these macros."""
    name = "-".join(("planted", *macros))
    program, trace = folder / name, folder / f"{name}.trace"
    flags = [f"-D{macro}" for macro in macros]
    subprocess.run(["cc", "-O1", "-static", "-pthread", *flags, "-o", program, SOURCE], check=True)
    arguments = [str(call) for pair in PAIRS for call in pair]
    tracer = f"{artifacts.plugin_path()},out={trace},mode=user"
    listing = subprocess.run(
        [*find_user_emulator().command, "-plugin", tracer, program, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout
    fields = [line.split(" ", 2) for line in listing.splitlines()]
    names = _native.ProgramNames([(int(start, 16), int(end, 16), name) for start, end, name in fields])
    with trace.open("rb") as file:
        reader = TraceReader(file.fileno(), names)
        windows = [window for batch in iter(reader.read_batch, None) for window in batch]
    assert len(windows) == 2 * len(TESTS)
    judged = []
    for test, pair in zip(TESTS, zip(windows[::2], windows[1::2], strict=True), strict=True):
        judge = Judge(test, 1)
        for order, window in enumerate(pair):
            known = [
                (finding, picture)
                for finding, picture in zip(window.findings, window.pictures, strict=True)
                if finding.object.startswith("struct ledger")
            ]
            found, drawn = tuple(one[0] for one in known), tuple(one[1] for one in known)
            judge.add(WindowRecord(Job(test, order), found, pictures=drawn, course=window.course))
        assert judge.verdict is not None
        judged.append(judge.verdict)
    return judged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def scene(folder: Path) -> Scene:
    return scene_of(verdicts(folder, ()))


def free(found: list[Verdict]) -> frozenset[str]:
    return frozenset(one.test_id for one in found if not one.findings)


def judged_tests(found: list[Verdict]) -> list[JudgedTest]:
    by_id = {test.id: test for test in TESTS}
    return [JudgedTest(by_id[one.test_id], one.outcome, one.findings) for one in found]


def test_the_library_shares_as_it_is(scene: Scene) -> None:
    assert scene.has_pictures
    assert 60 < len(scene.tests) < len(TESTS)


@pytest.mark.parametrize("macros", [*((macro,) for macro in CHANGES), ("OWN_LINE", "CHECK_FIRST"), tuple(MACROS)])
def test_what_is_foretold_is_what_comes(folder: Path, scene: Scene, macros: tuple[str, ...]) -> None:
    base, new = verdicts(folder, ()), verdicts(folder, macros)
    foretold = foretell(scene, [CHANGES[macro] for macro in macros])
    freed = free(new) - free(base)
    assert foretold.freed == freed
    assert freed
    proof = prove(judged_tests(base), judged_tests(new), foretold.freed)
    assert (proof.as_foretold, proof.besides, proof.not_freed) == (freed, frozenset(), frozenset())


def test_the_macros_are_among_the_best_changes(scene: Scene) -> None:
    ranking = rank(scene, Sense(scene, ()), 10)
    listed = [one.change for one in ranking.changes]
    assert listed[0] == SPREAD
    assert {"ledger.hits", "ledger.closed"} <= {change.place for change in listed}
    assert [one.together for one in ranking.changes] == sorted(one.together for one in ranking.changes)
    for one in ranking.changes:
        assert one.alone.freed == foretell(scene, (one.change,)).freed


def wrapped() -> Scene:
    """An adapter's type around a library's, whose counter lies next to what each call reads."""
    names = ("Map.entries.m_ItemCounter.m_Counter", "Map.entries.m_nHashBitmask", "Map.entries.m_Buckets[]")
    fields = tuple(LineField(8 * at, 8, name) for at, name in enumerate(names))
    touched = (
        Touched(0, ((0, 8), (8, 8)), ((0, 8),)),
        Touched(1, ((8, 8),), ()),
    )
    access = [Access(core, core == 0, 8 * core, 8, "put", ("put+0x1 map.h:3",)) for core in (0, 1)]
    finding = Finding(0, "Map", "entries.m_ItemCounter.m_Counter", "false", *access, fields, touched)
    picture = Picture("Map (make, adapter.cpp:4)", (PictureLine(0, fields, touched),))
    return scene_of([Verdict("one", Outcome.CONFLICTING, findings=(finding,), pictures=((picture,),))])


def test_what_an_adapter_wraps_has_places_of_its_own() -> None:
    """To move the adapter's member as a whole frees nothing, as all of it goes together."""
    scene = wrapped()
    ranking = rank(scene, Sense(scene, ()))
    assert [str(one.change) for one in ranking.changes] == ["move Map.entries.m_ItemCounter to a line of its own"]
    assert scene.cases[0].lines[0].fields.members_of(0xFF) == ("Map.entries",)
