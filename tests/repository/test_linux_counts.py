"""The counts of the page on Linux: which tests a row takes, and that one wrong verdict changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.choices import Seen
from bench.linux_counts import Row, counts, main
from commutant.campaign import Outcome, Verdict
from commutant.corpus import Corpus, ExpectedOutcome, Order, PlacedCall, SetupStep, TestCase, Value
from commutant.mtrace import Access, Finding
from commutant.report import JudgedTest
from commutant.runs.directory import HostDescription, RunInfo, RunWriter

Call = tuple[str, Mapping[str, Value], int]
"""A call, its arguments and its process."""

FREE, BAD, UNSTABLE = Outcome.CONFLICT_FREE, Outcome.CONFLICTING, Outcome.UNSTABLE
ERROR: Value = {"errno": "ENOENT"}
FAULT: Value = {"signal": "SIGSEGV"}


def case(*calls: Call, setup: Sequence[Call] = (), results: Sequence[Value] = (0, 0)) -> TestCase:
    """A test of two calls, with the same results in both orders."""
    test = TestCase(
        id="",
        level="conflict",
        path=0,
        equivalence_class="by hand",
        calls=tuple(PlacedCall(call, args, process, core, core) for core, (call, args, process) in enumerate(calls)),
        setup=tuple(SetupStep(call, args, process, None) for call, args, process in setup),
        observe=(),
        orders=tuple(Order(order, (ExpectedOutcome(tuple(results), ()),)) for order in ((0, 1), (1, 0))),
    )
    return replace(test, id=test.content_id())


def enter(directory: str, process: int) -> Call:
    return "enter_directory", {"directory": directory}, process


def opened(fd: int, file: int, process: int = 0) -> Call:
    return "open_file", {"fd": fd, "file": file}, process


def line(object_name: str, field: str = "", false: bool = False) -> Finding:
    """A shared line of that name."""
    first, second = (Access(core, True, 8 * core, 8, "f", ("f+0x1",)) for core in (0, 1))
    return Finding(0x1000, object_name, field, "false" if false else "true", first, second)


LOCKREF, RWSEM = line("struct dentry", "d_lockref"), line("struct inode", "i_rwsem")
COUNT, LOCK = line("struct file", "f_count"), line("rename_lock")
TABLE = line("struct files_struct", "fd_array[] | file_lock", false=True)
USER, SIGNAL = line("init_ucounts", "count"), line("struct sighand_struct", "siglock")

HERE, THERE = [enter("d0", 0), enter("d0", 1)], [enter("d0", 0), enter("d1", 1)]
STAT = case(("stat", {"name": "a"}, 0), ("stat", {"name": "a"}, 1), setup=HERE)
STATS = case(("stat", {"name": "a"}, 0), ("stat", {"name": "b"}, 1), setup=HERE)
APART = case(("rename", {"src": "a", "dst": "b"}, 0), ("unlink", {"name": "a"}, 1), setup=THERE)
MAKE = {"name": "c", "creat": True}
CHANGE = case(("open", MAKE, 0), ("unlink", {"name": "a"}, 1), setup=HERE)
FAILS = case(("open", MAKE, 0), ("unlink", {"name": "a"}, 1), setup=HERE, results=(0, ERROR))
OLD = case(("open", MAKE, 0), ("unlink", {"name": "a"}, 1), setup=[*HERE, ("name_file", {"name": "c"}, 0)])
LINKS = case(("link", {"old": "a", "new": "b"}, 0), ("link", {"old": "a", "new": "c"}, 0), setup=HERE[:1])
FSTAT = case(("fstat", {"fd": 0}, 0), ("fstat", {"fd": 0}, 0), setup=[opened(0, 0)])
CLOSED = case(("fstat", {"fd": 0}, 0), ("fstat", {"fd": 0}, 0), setup=[opened(1, 0)])
TWO = case(("read", {"fd": 0}, 0), ("read", {"fd": 1}, 0), setup=[opened(0, 0), opened(1, 0)])
OPEN = case(("open", MAKE, 0), ("close", {"fd": 0}, 0))
EMPTY = {"address": 1, "anonymous": False, "fd": 0}
NOTHING = case(("munmap", {"address": 0}, 0), ("mmap", EMPTY, 0), results=(0, ERROR))
MAPS = case(("munmap", {"address": 0}, 0), ("mprotect", {"address": 1}, 0))
FAULTS = case(("memread", {"address": 0}, 0), ("memread", {"address": 1}, 0), results=(FAULT, FAULT))

JUDGED = [
    JudgedTest(STAT, BAD, (LOCKREF,)),
    JudgedTest(STATS, FREE),
    JudgedTest(APART, BAD, (LOCK,)),
    JudgedTest(CHANGE, BAD, (RWSEM, LOCKREF)),
    JudgedTest(FAILS, FREE),
    JudgedTest(OLD, FREE),
    JudgedTest(LINKS, BAD, (RWSEM, LOCKREF)),
    JudgedTest(FSTAT, BAD, (COUNT,)),
    JudgedTest(CLOSED, FREE),
    JudgedTest(TWO, UNSTABLE, (line("struct inode", "i_size"),)),
    JudgedTest(OPEN, BAD, (TABLE,)),
    JudgedTest(MAPS, BAD, (line("struct mm_struct", "mmap_lock"),)),
    JudgedTest(NOTHING, FREE),
    JudgedTest(FAULTS, BAD, (USER, SIGNAL)),
]


def rows(judged: Sequence[JudgedTest], others: Sequence[JudgedTest] = ()) -> dict[str, tuple[int, int]]:
    """Tests and of, by what."""
    found: list[Row] = list(counts([*map(Seen, judged)], "posix18", [*map(Seen, others)]))
    assert len({row.what for row in found}) == len(found)
    return {row.what: (row.tests, row.of) for row in found}


def planted(test: TestCase, outcome: Outcome, *findings: Finding) -> list[JudgedTest]:
    """The run with another verdict on one test."""
    return [JudgedTest(test, outcome, findings) if one.test is test else one for one in JUDGED]


EXPECTED = {
    "all: not conflict-free": (9, 14),
    "not conflict-free: unstable": (1, 9),
    "all: variables that tests share, added up": (12, 14),
    "in two processes: not conflict-free": (3, 6),
    "not conflict-free: only by false sharing": (1, 9),
    "shared lines: variable": (2, 12),
    "two stat, one name: share d_lockref": (1, 1),
    "two stat, two names in one directory: not conflict-free": (0, 1),
    "pairs of calls: share d_lockref in a test": (3, 10),
    "both change other names of one directory: share i_rwsem, d_lockref": (2, 2),
    "names in two directories: share only rename_lock": (1, 1),
    "two fstat on one open descriptor: share only f_count": (1, 1),
    "two descriptors of a process, not conflict-free: on one file or pipe": (1, 1),
    "open beside a descriptor of its process: share files_struct": (1, 1),
    "not conflict-free: only the line of fd_array and file_lock": (1, 9),
    "so, and on different pages: not conflict-free": (1, 2),
    "so, and conflict-free: an mmap names a descriptor that is not open": (1, 1),
    "not conflict-free: only mmap_lock": (1, 9),
    "both fault, in one process: share init_ucounts and siglock": (1, 1),
}


def test_each_row_counts_the_tests_that_it_says() -> None:
    found = rows(JUDGED)
    assert {what: found[what] for what in EXPECTED} == EXPECTED


@pytest.mark.parametrize(
    ("run", "what", "count"),
    [
        (planted(STAT, FREE), "two stat, one name: share d_lockref", (0, 1)),
        (planted(STATS, BAD, LOCKREF), "two stat, two names in one directory: not conflict-free", (1, 1)),
        (planted(STATS, Outcome.WRONG_RESULT), "all: wrong result, crashed or skipped", (1, 14)),
        (planted(APART, BAD, LOCK, RWSEM), "names in two directories: share only rename_lock", (0, 1)),
        (planted(CHANGE, BAD, RWSEM), "both change other names of one directory: share i_rwsem, d_lockref", (1, 2)),
        (planted(FSTAT, BAD, COUNT, LOCK), "two fstat on one open descriptor: share only f_count", (0, 1)),
        (planted(TWO, FREE), "two descriptors of a process: not conflict-free", (0, 1)),
        (planted(OPEN, BAD, LOCK), "open beside a descriptor of its process: share files_struct", (0, 1)),
        (planted(FAULTS, BAD, USER), "both fault, in one process: share init_ucounts and siglock", (0, 1)),
    ],
)
def test_one_wrong_verdict_changes_a_count(run: list[JudgedTest], what: str, count: tuple[int, int]) -> None:
    assert rows(run)[what] == count != rows(JUDGED)[what]


def test_verdicts_are_compared_with_another_run() -> None:
    found = rows(JUDGED, planted(OPEN, FREE))
    assert found["in both runs: another verdict there"] == (1, 14)
    assert found["not conflict-free only here: by false sharing alone"] == (1, 1)
    assert found["not conflict-free only there: by false sharing alone"] == (0, 0)
    assert rows(JUDGED, JUDGED[:3])["in both runs: another verdict there"] == (0, 3)


def test_a_rename_between_two_names_of_one_file_changes_none() -> None:
    def renames(files: Sequence[int]) -> JudgedTest:
        names = [("name_file", {"name": name, "file": file}, 0) for name, file in zip("abc", files, strict=True)]
        calls = ("rename", {"src": "a", "dst": "b"}, 0), ("rename", {"src": "c", "dst": "d"}, 1)
        return JudgedTest(case(*calls, setup=[*HERE, *names]), FREE)

    changing = "both change other names of one directory: share i_rwsem, d_lockref"
    assert rows([renames([0, 1, 2])])[changing] == (0, 1)
    assert rows([renames([0, 0, 1])])[changing] == (0, 0)


def test_sets_of_three_calls_have_the_rows_for_any() -> None:
    three = case(*[("fstat", {"fd": 0}, 0)] * 3, setup=[opened(0, 0)])
    assert len(rows([JudgedTest(three, BAD, (COUNT,))])) < len(rows(JUDGED))


def write_run(path: Path, judged_tests: Sequence[JudgedTest] = JUDGED) -> None:
    """The run as a directory, of which only these tests have verdicts."""
    corpus = Corpus("posix18", "conflict", "0123abcd", [judged.test for judged in JUDGED])
    info = RunInfo(
        commutant="0",
        python="3",
        command=["commutant"],
        interface="posix18",
        level="conflict",
        model="0123abcd",
        tests=len(JUDGED),
        target="fake",
        target_description={},
        seed=0,
        repeats=3,
        jobs=1,
        started="2026-01-01T00:00:00+00:00",
        machine=HostDescription("Linux", "6", "x86_64", 2, 1),
    )
    path.mkdir()
    with RunWriter.create(path, info, corpus) as writer:
        for judged in judged_tests:
            writer.append(Verdict(judged.test.id, judged.outcome, judged.findings, windows=2), 1.0)


def test_the_command_prints_a_table_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run")
    assert main([str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:4] == ["posix18 on fake: 28 windows", "", "| what | tests | of |", "| --- | --- | --- |"]
    assert "| two stat, one name: share d_lockref | 1 | 1 |" in printed
    assert printed[-1] == "sets of calls whose tests are all conflict-free (1): munmap + mmap"


def test_runs_that_are_incomplete_or_have_no_test_in_common_are_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "some", JUDGED[:3])
    write_run(tmp_path / "others", JUDGED[3:])
    assert main([str(tmp_path / "some")]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("windows, incomplete: 3 of 14 tests")
    assert main([str(tmp_path / "some"), str(tmp_path / "others")]) == 2
    assert "has none of the tests of" in capsys.readouterr().err


def test_what_is_no_run_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path)]) != 0
    assert capsys.readouterr().err.splitlines()[1].startswith(f"{tmp_path} has no run.json")
