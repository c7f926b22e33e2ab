"""The scalability faults that COMMUTER found in sv6, and those found here: calls that commute and must share no line.

Each test is one pair of calls on ScaleFS, in a few windows of both orders; that most windows are clean tells a fault
from a hash collision, which strikes another pair of names in every window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from msgspec import structs

from commutant.corpus import SetupStep, Value
from commutant.targets.base import Job
from commutant.targets.process.session import ProcessSession
from commutant.targets.registry import load_target
from commutant.testgen import TestCase
from tests.targets.handwritten import ENOENT, Call, Outcomes, create, make_test, same, status

WINDOWS = 5
EEXIST = {"errno": "EEXIST"}
EBADF = {"errno": "EBADF"}
EINVAL = {"errno": "EINVAL"}


def rename(src: str, dst: str) -> Call:
    return ("rename", {"src": src, "dst": dst}, 1)


def link(old: str, new: str) -> Call:
    return ("link", {"old": old, "new": new}, 0)


def linked_test(
    calls: Sequence[Call], outcomes: Outcomes, links: Sequence[tuple[str, str]], **names: Sequence[str]
) -> TestCase:
    """A test whose set-up gives files more names."""
    test = make_test(calls, outcomes, **names)
    setup = (*test.setup, *(SetupStep("link", {"old": old, "new": new}, 0, 0) for old, new in links))
    test = structs.replace(test, setup=setup)
    return structs.replace(test, id=test.content_id())


FILE = {"sort": "Inum", "id": 0}


def data_test(calls: Sequence[Call], results: Sequence[Value], length: int, fd: Mapping[str, Value] | None) -> TestCase:
    """A test of calls on data in a directory with one file, which one descriptor leads to or none."""
    test = make_test(calls, same(results))
    leads = [SetupStep("open_file", {**fd, "file": 0, "offset": 0}, 0, None)] if fd else []
    setup = (
        SetupStep("make_file", {"file": 0, "length": length}, 0, FILE),
        SetupStep("name_file", {"file": 0, "directory": "d0", "name": "a"}, 0, None),
        SetupStep("enter_directory", {"directory": "d0"}, 0, None),
        *leads,
        SetupStep("forget_file", {"file": 0}, 0, None),
    )
    test = structs.replace(test, setup=setup)
    return structs.replace(test, id=test.content_id())


OPEN_TO_WRITE: Mapping[str, Value] = {
    "name": "a",
    "creat": False,
    "excl": False,
    "trunc": False,
    "readable": False,
    "writable": True,
}
BOTH_WAYS: Mapping[str, Value] = {"fd": 0, "readable": True, "writable": True}

FAULTS: Sequence[tuple[str, TestCase]] = [
    (
        "sv6: open(O_CREAT|O_EXCL) of an existing file locks its directory",
        make_test([("open", create("a"), 0), ("open", create("a"), 1)], same([EEXIST, EEXIST]), files="a"),
    ),
    (
        "sv6: link with an existing target against rename of another file: both names are looked up with their inodes",
        make_test(
            [link("a", "b"), rename("c", "b")],
            same([EEXIST, 0], [status(0, 1), status(1, 1), ENOENT]),
            files="abc",
            observe="abc",
        ),
    ),
    (
        "sv6: stat against rename of another name of the same file: the inode is written",
        linked_test(
            [("stat", {"name": "a"}, 0), rename("b", "c")],
            same([status(0, 2), 0], [status(0, 2), ENOENT, status(0, 2)]),
            [("a", "b")],
            files="a",
            observe="abc",
        ),
    ),
    (
        "sv6: link with a missing source against rename of another name: the directory is locked before the look",
        make_test(
            [link("a", "b"), rename("c", "d")],
            same([ENOENT, 0], [ENOENT, ENOENT, ENOENT, status(0, 1)]),
            files="c",
            observe="abcd",
        ),
    ),
    (
        "here: rename of a name to itself reads what the name leads to, which a rename over it replaces",
        make_test([("rename", {"src": "a", "dst": "a"}, 0), rename("b", "a")], same([0, 0]), files="ab"),
    ),
    (
        "the paper, 6.3: access needs no inode, so it shares nothing with a rename over the name",
        make_test([("access", {"name": "b"}, 0), rename("a", "b")], same([0, 0]), files="ab"),
    ),
    (
        "here: a read of a number that another thread opens for writing looked at what the number leads to",
        data_test([("open", OPEN_TO_WRITE, 0), ("read", {"fd": 0}, 0)], [0, EBADF], 0, None),
    ),
    (
        "here: a write through a descriptor that another thread closes, and that is not open for it",
        data_test(
            [("close", {"fd": 0}, 0), ("pwrite", {"fd": 0, "page": 0, "data": 1}, 0)],
            [0, EBADF],
            0,
            {**BOTH_WAYS, "writable": False},
        ),
    ),
    (
        "here: lseek from the end to before the beginning asked for the size, which a write raises",
        data_test(
            [("lseek", {"fd": 0, "offset": -2, "whence": 2}, 0), ("pwrite", {"fd": 0, "page": 0, "data": 1}, 0)],
            [EINVAL, 1],
            0,
            BOTH_WAYS,
        ),
    ),
    (
        "here: lseek from the end of a file that is long enough looked at a page that is written",
        data_test(
            [("lseek", {"fd": 0, "offset": -1, "whence": 2}, 0), ("pwrite", {"fd": 0, "page": 0, "data": 1}, 0)],
            [0, 1],
            1,
            BOTH_WAYS,
        ),
    ),
    (
        "the paper, section 1: two creations of different names in one directory",
        make_test([("open", create("a"), 0), ("open", create("b"), 1)], same([0, 0])),
    ),
]


@pytest.fixture(scope="module")
def session() -> Iterator[ProcessSession]:
    """A session of the target, whose self-test has found a planted conflict."""
    target = load_target("scalefs")
    target.start(lambda _: None, 1)
    (session,) = target.sessions(1)
    assert isinstance(session, ProcessSession)
    yield session
    session.close()
    target.close()


@pytest.mark.parametrize(
    ("fault", "test"), FAULTS, ids=[fault.split(":")[0] + f" {n}" for n, (fault, _) in enumerate(FAULTS)]
)
def test_calls_that_commute_share_nothing(session: ProcessSession, fault: str, test: TestCase) -> None:
    jobs = [Job(test, order) for order in range(2) for _ in range(WINDOWS)]
    records = list(session.run(jobs))
    assert [record.wrong for record in records] == [None] * len(jobs)
    shared = [record for record in records if record.findings]
    assert len(shared) <= 1, (fault, [finding.object for record in shared for finding in record.findings])
