"""Tests written by hand for real machines: their results are Linux's, as its manual pages have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from commutant.corpus import ExpectedOutcome, Order, PlacedCall, SetupStep, Step, TestCase, Value

Call = tuple[str, Mapping[str, Value], int]
"""A call's name, its arguments, and the process that makes it."""

Outcomes = Mapping[tuple[int, ...], tuple[Sequence[Value], Sequence[Value]]]
"""Per order, results of the calls and of the observation."""

ENOENT = {"errno": "ENOENT"}


def status(inode: int, nlink: int) -> Value:
    """What stat returns."""
    return {"struct": {"ino": {"sort": "Inum", "id": inode}, "nlink": nlink}}


def create(name: str) -> Mapping[str, Value]:
    """Arguments of an open that creates."""
    return {"name": name, "creat": True, "excl": True}


def make_test(
    calls: Sequence[Call],
    outcomes: Outcomes,
    *,
    files: Sequence[str] = (),
    observe: Sequence[str] = (),
) -> TestCase:
    """A test on a directory with `files` that stats the names of `observe` at the end; per order, results and stats."""
    test = TestCase(
        id="",
        level="conflict",
        path=0,
        equivalence_class="written by hand",
        calls=tuple(PlacedCall(call, args, process, core, core) for core, (call, args, process) in enumerate(calls)),
        setup=tuple(SetupStep("open", create(name), 0, 0) for name in files),
        observe=tuple(Step("stat", {"name": name}, 0) for name in observe),
        orders=tuple(
            Order(order, (ExpectedOutcome(tuple(results), tuple(stats)),))
            for order, (results, stats) in outcomes.items()
        ),
    )
    return structs.replace(test, id=test.content_id())


def same(results: Sequence[Value], stats: Sequence[Value] = ()) -> Outcomes:
    """Both orders give the same."""
    return {(0, 1): (results, stats), (1, 0): (results, stats)}


STAT_STAT = make_test(
    [("stat", {"name": "a"}, 0), ("stat", {"name": "b"}, 1)], same([status(0, 1), status(1, 1)]), files="ab"
)
CREATE_CREATE = make_test(
    [("open", create("a"), 0), ("open", create("b"), 0)], same([0, 0], [status(0, 1), status(1, 1)]), observe="ab"
)
LINK_LINK = make_test(
    [("link", {"old": "a", "new": "b"}, 0), ("link", {"old": "a", "new": "c"}, 1)],
    same([0, 0], [status(0, 3), status(0, 3), status(0, 3)]),
    files="a",
    observe="abc",
)
LINK_RENAME = make_test(
    [("link", {"old": "a", "new": "b"}, 0), ("rename", {"src": "a", "dst": "c"}, 1)],
    {
        (0, 1): ([0, 0], [ENOENT, status(0, 2), status(0, 2)]),
        (1, 0): ([ENOENT, 0], [ENOENT, ENOENT, status(0, 1)]),
    },
    files="a",
    observe="abc",
)
UNLINK_ACCESS = make_test(
    [("unlink", {"name": "a"}, 1), ("access", {"name": "a"}, 0)],
    {(0, 1): ([0, ENOENT], [ENOENT]), (1, 0): ([0, 0], [ENOENT])},
    files="a",
    observe="a",
)
RENAME_OF_TWO_LINKS = make_test(
    [("rename", {"src": "a", "dst": "a"}, 0), ("open", create("a"), 1)],
    same([0, {"errno": "EEXIST"}], [status(0, 1)]),
    files="a",
    observe="a",
)
RIGHT = (STAT_STAT, CREATE_CREATE, LINK_LINK, LINK_RENAME, UNLINK_ACCESS, RENAME_OF_TWO_LINKS)
"""Tests that Linux passes."""

WRONG_COUNT = make_test(
    [("stat", {"name": "a"}, 0), ("stat", {"name": "a"}, 1)], same([status(0, 1), status(0, 2)]), files="a"
)
WRONG_INODE = make_test(
    [("stat", {"name": "a"}, 0), ("stat", {"name": "b"}, 1)], same([status(0, 1), status(0, 1)]), files="ab"
)
UNKNOWN_CALL = make_test([("stat", {"name": "a"}, 0), ("fly", {}, 1)], same([ENOENT, 0]))
