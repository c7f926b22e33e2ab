"""posix18 against the kernel that runs these tests: every generated test, in both orders, on two file systems.

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
from tests.interfaces.host import Pairing, wrong_orders

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="the model follows Linux")

POSIX18 = load_interface("posix18")
PAIRS = sets_of_calls(POSIX18, None, 2)
SHARED_MEMORY = Path("/dev/shm")


@cache
def generated(calls: tuple[str, ...], level: str) -> list[TestCase]:
    return [test for test in generate(POSIX18, calls, level=level).tests if test.set_name == "-".join(calls)]


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
    "calls",
    [
        ("open", "rename"),
        ("open", "unlink"),
        ("open", "memread"),
        ("link", "stat"),
        ("lseek", "write"),
        ("pipe", "close"),
        ("read", "fstat"),
        ("pread", "pwrite"),
        ("mmap", "memwrite"),
        ("munmap", "mprotect"),
    ],
    ids="-".join,
)
def test_the_host_does_what_the_model_says(calls: tuple[str, ...], root: Path) -> None:
    tests = generated(calls, "path")
    for test in random.Random("-".join(calls)).sample(tests, min(4, len(tests))):
        check(test, root)


@pytest.mark.long
@pytest.mark.parametrize("calls", PAIRS, ids="-".join)
def test_the_host_does_what_the_model_says_of_every_pair(calls: tuple[str, ...], root: Path) -> None:
    for test in generated(calls, "conflict"):
        check(test, root)


def test_wrong_values_are_found() -> None:
    inum = [{"sort": "Inum", "id": number} for number in range(2)]
    assert Pairing().fits({"seq": [inum[0], inum[1], inum[0]]}, {"seq": [inum[1], inum[0], inum[1]]})
    assert not Pairing().fits({"seq": [inum[0], inum[0]]}, {"seq": [inum[0], inum[1]]})
    assert not Pairing().fits({"seq": [inum[0], inum[1]]}, {"seq": [inum[0], inum[0]]})
    times = [{"time": number} for number in range(2)]
    assert Pairing().fits({"seq": times}, {"seq": [times[0], times[0]]})
    assert not Pairing().fits({"seq": times}, {"seq": [times[1], times[0]]})
    assert not Pairing().fits(1, True)
    assert not Pairing().fits({"errno": "ENOENT"}, 0)
