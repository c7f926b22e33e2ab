"""posix18 and posix-commutative against the kernel that runs these tests: generated tests in both orders, on two file
systems.

`commutant check` does the same on the kernel of a release in a virtual machine; this finds an error of the model in
seconds and on another kernel.
"""

from __future__ import annotations

import json
import platform
import random
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from commutant.analyzer.analysis import sets_of_calls
from commutant.lang import load_interface
from commutant.testgen import TestCase, generate
from tests.interfaces.host import Host, Pairing, wrong_orders

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="the model follows Linux")

PAIRS = [
    *(("posix18", *calls) for calls in sets_of_calls(load_interface("posix18"), None, 2)),
    *(
        ("posix-commutative", *calls)
        for calls in sets_of_calls(load_interface("posix-commutative"), None, 2)
        if {"open", "pipe", "fstatx"} & set(calls)
    ),
]
SHARED_MEMORY = Path("/dev/shm")


@cache
def generated(pair: tuple[str, ...], level: str) -> list[TestCase]:
    interface, *calls = pair
    corpus = generate(load_interface(interface), calls, level=level)
    return [test for test in corpus.tests if test.set_name == "-".join(calls)]


@pytest.fixture(params=["tmpfs", "temporary"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A place that does not exist yet, on a file system in memory and on that of temporary files."""
    if request.param == "temporary":
        yield tmp_path / "run"
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as directory:
        yield Path(directory) / "run"


def check(test: TestCase, root: Path) -> None:
    wrong = wrong_orders(test, root)
    assert not wrong, f"{test.id} ({test.equivalence_class}): {json.dumps(test.to_json())} came: {wrong}"


@pytest.mark.parametrize(
    "pair",
    [
        ("posix18", "open", "rename"),
        ("posix18", "open", "unlink"),
        ("posix18", "open", "memread"),
        ("posix18", "link", "stat"),
        ("posix18", "lseek", "write"),
        ("posix18", "pipe", "close"),
        ("posix18", "read", "fstat"),
        ("posix18", "pread", "pwrite"),
        ("posix18", "mmap", "memwrite"),
        ("posix18", "munmap", "mprotect"),
        ("posix-commutative", "open", "pipe"),
        ("posix-commutative", "write", "fstatx"),
    ],
    ids="-".join,
)
def test_the_host_does_what_the_model_says(pair: tuple[str, ...], root: Path) -> None:
    tests = generated(pair, "path")
    for test in random.Random("-".join(pair)).sample(tests, min(4, len(tests))):
        check(test, root)


@pytest.mark.long
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_host_does_what_the_model_says_of_every_pair(pair: tuple[str, ...], root: Path) -> None:
    for test in generated(pair, "conflict"):
        check(test, root)


def test_wrong_values_are_found() -> None:
    inum = [{"sort": "Inum", "id": number} for number in range(2)]
    assert Pairing().fits({"seq": [inum[0], inum[1], inum[0]]}, {"seq": [inum[1], inum[0], inum[1]]})
    assert not Pairing().fits({"seq": [inum[0], inum[0]]}, {"seq": [inum[0], inum[1]]})
    assert not Pairing().fits({"seq": [inum[0], inum[1]]}, {"seq": [inum[0], inum[0]]})
    times = [{"time": number} for number in range(2)]
    assert Pairing().fits({"seq": times}, {"seq": [times[0], times[0]]})
    assert not Pairing().fits({"seq": times}, {"seq": [times[1], times[0]]})
    pipes = [{"pipe": True, "mtime": time} for time in times]
    assert Pairing().fits({"seq": [times[0], *pipes]}, {"seq": [times[1], pipes[0], pipes[0]]})
    assert not Pairing().fits(1, True)
    assert not Pairing().fits({"errno": "ENOENT"}, 0)


def test_any_descriptor_is_none_that_a_call_names(root: Path) -> None:
    """The lowest one was: close(0) after an open that may return any number closed that very file."""
    with Host(root) as host:
        arguments = {"name": "n0", "creat": True, "excl": False, "trunc": False, "readable": True, "writable": True}
        host.call(0, "enter_directory", {"directory": "d0"})
        assert host.call(0, "open", {**arguments, "anyfd": 1})["sort"] == "Handle"
        assert host.call(0, "close", {"fd": 0}) == {"errno": "EBADF"}
