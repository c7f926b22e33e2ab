"""Level `cover`: a part of the tests of `conflict` that shows what these show, and finds the faults that these find."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from commutant.cli.main import run
from commutant.corpus import TestCase
from commutant.interfaces.names import Names
from commutant.lang import Errno, load_interface
from commutant.testgen import generate

Lines = dict[Any, bool]
"""What a call touches: True where it writes."""


def placed(test: TestCase) -> Iterator[tuple[str, Mapping[str, Any], Names]]:
    """Each call of a test with a state as the set-up left it."""
    for one in test.calls:
        state = Names()
        for step in test.setup:
            getattr(state, step.call)(**step.args)
        yield one.call, one.args, state


def own_path(call: str, arguments: Mapping[str, Any], state: Names) -> tuple[Any, ...]:
    """The lines of the model that a call runs from a state, and what it returns, up to which file it is."""
    lines: list[int] = []

    def trace(frame: Any, event: str, _: Any) -> Any:
        if "/interfaces/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            lines.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = getattr(state, call)(**arguments)
    finally:
        sys.settrace(before)
    return call, tuple(lines), result if isinstance(result, Errno) else None


def paths_of(tests: Sequence[TestCase]) -> set[tuple[Any, ...]]:
    """Which own paths meet, and where their names are the same."""
    found = set()
    for test in tests:
        own = [own_path(*one) for one in placed(test)]
        processes = tuple(call.process for call in test.calls)
        for (one, mine), (other, theirs) in combinations(enumerate(own), 2):
            found.add(("paths", mine, theirs))
            found.add(("placed", mine, processes))
            found.add(("placed", theirs, processes))
            for (name, value), (also, its) in _names(test, one, other):
                same = (one, name, other, also, value == its)
                found |= {(mine, same), (theirs, same)}
    return found


def _names(test: TestCase, one: int, other: int) -> Iterator[tuple[tuple[str, Any], tuple[str, Any]]]:
    for mine in test.calls[one].args.items():
        for theirs in test.calls[other].args.items():
            if isinstance(mine[1], str) and isinstance(theirs[1], str):
                yield mine, theirs


@pytest.mark.parametrize("size", [2, 3])
def test_every_meeting_of_own_paths_is_kept(size: int) -> None:
    model = load_interface("names")
    calls = ["open", "unlink", "rename"] if size == 3 else None
    conflict = generate(model, calls, size)
    cover = generate(model, calls, size, level="cover")
    kept = {test.id for test in cover.tests}
    assert kept <= {test.id for test in conflict.tests}
    assert len(kept) * 3 < len(conflict.tests) + 30
    assert sum(cover.left_out.values()) == len(conflict.tests) - len(kept)
    assert not conflict.left_out
    assert paths_of(tuple(cover.tests)) == paths_of(tuple(conflict.tests))


def inode(state: Names, name: str) -> Any:
    """The file of a name in the set-up's state."""
    return state.names.get(name)


FAULTS: dict[str, Callable[[str, Mapping[str, Any], Names, int], Lines]] = {
    "a count of files": lambda c, a, s, p: {"count": True} if c == "open" and inode(s, a["name"]) is None else {},
    "a lock of the directory for every change": lambda c, a, s, p: {"lock": c not in ("stat", "access")},
    "a lock of renames": lambda c, a, s, p: {"rename": True} if c == "rename" else {},
    "a count of replaced files": lambda c, a, s, p: (
        {"replaced": True} if c == "rename" and inode(s, a["src"]) and inode(s, a["dst"]) else {}
    ),
    "renames that do nothing": lambda c, a, s, p: (
        {"nothing": True} if c == "rename" and a["src"] == a["dst"] and inode(s, a["src"]) else {}
    ),
    "failing renames": lambda c, a, s, p: {"failed": True} if c == "rename" and not inode(s, a["src"]) else {},
    "a reference for every stat": lambda c, a, s, p: {inode(s, a["name"]): True} if c == "stat" else {},
    "access of a missing name": lambda c, a, s, p: (
        {a["name"]: True} if c == "access" and not inode(s, a["name"]) else {}
    ),
    "the first name's chain": lambda c, a, s, p: {"chain": c in ("link", "unlink")} if "n0" in a.values() else {},
    "a reference by link": lambda c, a, s, p: (
        {inode(s, a["old"]): True} if c == "link" else {inode(s, a["name"]): False} if c == "stat" else {}
    ),
    "a line for each process": lambda c, a, s, p: {("process", p): True},
    "last links": lambda c, a, s, p: (
        {"dead": True}
        if c == "unlink" and inode(s, a["name"]) and list(s.names.values()).count(inode(s, a["name"])) == 1
        else {}
    ),
    "one of several links": lambda c, a, s, p: (
        {"alive": True}
        if c == "unlink" and inode(s, a["name"]) and list(s.names.values()).count(inode(s, a["name"])) > 1
        else {}
    ),
    "exclusive creation that fails": lambda c, a, s, p: (
        {"exclusive": True} if c == "open" and a["creat"] and a["excl"] and inode(s, a["name"]) else {}
    ),
    "renames of one file's two names": lambda c, a, s, p: (
        {"two names": True}
        if c == "rename" and a["src"] != a["dst"] and inode(s, a["src"]) and inode(s, a["src"]) == inode(s, a["dst"])
        else {}
    ),
}
"""Faults of an implementation: what a call touches besides what its interface asks for."""


def finds(tests: Sequence[TestCase], fault: str) -> bool:
    """Whether two calls of some test touch one line and one of them writes it."""
    for test in tests:
        touched = [
            FAULTS[fault](call, arguments, state, test.calls[place].process)
            for place, (call, arguments, state) in enumerate(placed(test))
        ]
        for one, other in combinations(touched, 2):
            if any(one[line] or other[line] for line in one.keys() & other.keys()):
                return True
    return False


def test_every_planted_fault_that_conflict_finds_cover_finds() -> None:
    model = load_interface("names")
    conflict = tuple(generate(model).tests)
    found = {fault for fault in FAULTS if finds(conflict, fault)}
    assert found == FAULTS.keys(), "each of them shows in some pair"
    pairs = {tuple(call.call for call in test.calls) for test in conflict}
    cover = tuple(generate(model, level="cover").tests)
    for pair in pairs:
        of_conflict = [test for test in conflict if tuple(call.call for call in test.calls) == pair]
        of_cover = [test for test in cover if tuple(call.call for call in test.calls) == pair]
        missed = {fault for fault in FAULTS if finds(of_conflict, fault) and not finds(of_cover, fault)}
        assert not missed, pair


def test_what_is_left_out_is_said(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "some.jsonl.gz")
    words = ["generate", "names", "--calls", "link,rename", "--level", "cover", "--jobs", "1"]
    assert run([*words, "-o", file]) == 0
    assert "level cover leaves out at most 126 tests of level conflict" in capsys.readouterr().err


def test_tests_without_a_setup_count_as_left_out_at_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: it was said that this many were left out, some of which `conflict` cannot make either."""
    model = tmp_path / "model.py"
    model.write_text(
        "from commutant.lang import Errno, Interface, Map, Sort, call, invoke\n\nclass Key(Sort):\n    pass\n\n"
        "class Model(Interface):\n    entries: Map[Key, int]\n"
        "    @call\n    def put(self, key: Key, value: int) -> None:\n"
        "        self.entries[key] = value if value > 0 else 1\n"
        "    @call\n    def get(self, key: Key) -> Errno | int:\n        if key not in self.entries:\n"
        "            return Errno.ENOENT\n        return 0 if self.entries[key] < -5 else self.entries[key]\n"
        "    def setup(self):\n        for key, value in self.entries.items():\n"
        "            yield invoke('put', key=key, value=value)\n"
        "    def observe(self, values):\n        for key in values[Key]:\n            yield invoke('get', key=key)\n"
    )
    interface = load_interface(str(model))
    cover, conflict = (generate(interface, level=level) for level in ("cover", "conflict"))
    left_out = sum(cover.left_out.values())
    assert left_out > len(conflict.tests) - len(cover.tests), "one has no set-up"
    words = ["generate", str(model), "--level", "cover", "--jobs", "1", "-o", str(tmp_path / "some.jsonl.gz")]
    assert run(words) == 0
    assert f"level cover leaves out at most {left_out} tests of level conflict" in capsys.readouterr().err
