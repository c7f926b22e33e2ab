"""Loops of freed pairs: they compile without a warning, run, and notice when a call is not what it was in the test."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from commutant.corpus import ExpectedOutcome, Order, PlacedCall, SetupStep, TestCase, Value
from commutant.remedy import ProvenRun, loops, prove
from commutant.report import loop_of, loop_program
from commutant.runs import judged_tests
from tests.remedy.test_kept import kept

COMPILE = ("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-x", "c", "-", "-o")
PAGE: dict[str, Value] = {"address": 1}
MAPPED = SetupStep(
    "mmap", {**PAGE, "fixed": True, "anonymous": True, "shared": False, "writable": True, "fd": 0, "page": 0}, 0, 1
)
FILE = (
    SetupStep("make_file", {"file": 0, "length": 1}, 0, {"sort": "Inum", "id": 0}),
    SetupStep("name_file", {"file": 0, "directory": "d0", "name": "n0"}, 0, None),
    SetupStep("name_file", {"file": 0, "directory": "d0", "name": "n1"}, 0, None),
    SetupStep("enter_directory", {"directory": "d0"}, 0, None),
    SetupStep("open_file", {"fd": 0, "file": 0, "readable": True, "writable": True, "offset": 0}, 0, None),
    SetupStep("forget_file", {"file": 0}, 0, None),
)
OPEN: dict[str, Value] = {"creat": True, "excl": True, "trunc": False, "readable": True, "writable": True}


def case(setup: Sequence[SetupStep], *calls: tuple[str, dict[str, Value], Value]) -> TestCase:
    placed = tuple(PlacedCall(call, args, 0, number, number) for number, (call, args, _) in enumerate(calls))
    outcome = ExpectedOutcome(tuple(result for _, _, result in calls), ())
    test = TestCase("", "conflict", 0, "by hand", placed, tuple(setup), (), (Order((0, 1), (outcome,)),))
    return structs.replace(test, id=test.content_id())


BY_HAND = (
    case(FILE, ("unlink", {"name": "n0"}, 0), ("link", {"old": "n1", "new": "n2"}, 0)),
    case(FILE, ("rename", {"src": "n0", "dst": "n2"}, 0), ("stat", {"name": "n1"}, {"struct": {}})),
    case(FILE, ("open", {"name": "n2", **OPEN}, 1), ("lseek", {"fd": 0, "offset": 1, "whence": 1}, 1)),
    case(FILE, ("close", {"fd": 0}, 0), ("fstat", {"fd": 3}, {"errno": "EBADF"})),
    case(FILE, ("read", {"fd": 0}, {"struct": {"pages": 1, "data": 0}}), ("pipe", {}, {"struct": {}})),
    case(FILE, ("write", {"fd": 0, "data": 1}, 1), ("pread", {"fd": 0, "page": 0}, {"struct": {"pages": 1}})),
    case(FILE, ("pwrite", {"fd": 0, "page": 2, "data": 1}, 1), ("access", {"name": "n5"}, {"errno": "ENOENT"})),
    case([MAPPED], ("munmap", PAGE, 0), ("memread", {"address": 3}, {"signal": "SIGSEGV"})),
    case([MAPPED], ("mprotect", {**PAGE, "writable": False}, 0), ("mmap", {**MAPPED.args, "fixed": False}, 2)),
    case(FILE, ("unlink", {"name": "n0"}, 0), ("unlink", {"name": "n1"}, 0)),
    case([], ("munmap", PAGE, 0), ("mmap", {**MAPPED.args, "address": 2}, 2)),
    case([MAPPED], ("memwrite", {**PAGE, "data": 1}, 0), ("mmap", {**MAPPED.args, "address": 2}, 2)),
)
"""One test for each call that a loop can make."""


def run(program: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "loop"
    subprocess.run([*COMPILE, str(path)], input=program, text=True, check=True)
    environment = {"TMPDIR": str(folder), "PATH": "/usr/bin:/bin"}
    answer = subprocess.run(
        [str(path), *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert not list(folder.glob("commutant-*"))
    return answer


@pytest.mark.parametrize("test", BY_HAND, ids=lambda test: test.set_name)
def test_calls_return_what_they_do_in_the_test(test: TestCase, tmp_path: Path) -> None:
    loop = loop_of(test)
    assert loop is not None
    answer = run(loop_program(loop), tmp_path, "4", "1")
    assert (answer.returncode, answer.stderr) == (0, ""), answer.stdout
    names = [call.call for call in test.calls]
    (average,) = [line for line in answer.stdout.splitlines() if line.startswith("average")]
    rates = {one.partition(":")[0]: int(one.partition(":")[2]) for one in average.split()[1:]}
    assert list(rates) == list(dict.fromkeys(names))
    assert all(rate > 0 for rate in rates.values())


def test_a_state_that_is_not_brought_back_is_noticed(tmp_path: Path) -> None:
    loop = loop_of(BY_HAND[0])
    assert loop is not None
    program = loop_program(loop)
    line = '        must(mknod("n0", S_IFREG | 0666, 0));\n'
    assert line in program
    answer = run(program.replace(line, ""), tmp_path, "2", "1")
    assert answer.returncode == 1
    assert "returned otherwise than in the test: 0\n" not in answer.stdout


def test_wrong_use_is_said(tmp_path: Path) -> None:
    loop = loop_of(BY_HAND[0])
    assert loop is not None
    answer = run(loop_program(loop), tmp_path, "3")
    assert answer.returncode == 2
    assert "usage: " in answer.stderr


def test_what_cannot_be_repeated_has_no_loop() -> None:
    pipe = (
        SetupStep("make_pipe", {"pipe": 0}, 0, {"sort": "Inum", "id": 0}),
        SetupStep("open_pipe", {"fd": 0, "pipe": 0, "write_end": True}, 0, None),
    )
    assert loop_of(case(pipe, ("write", {"fd": 0, "data": 1}, 1), ("pipe", {}, {"struct": {}}))) is None
    assert (
        loop_of(case(FILE, ("open", {"name": "n0", **OPEN, "excl": False, "trunc": True}, 1), ("pipe", {}, 0))) is None
    )
    assert loop_of(case((), ("put", {"key": "a"}, 0), ("get", {"key": "b"}, 0))) is None


def test_each_freed_pair_of_a_patch_has_a_loop(tmp_path: Path) -> None:
    base, new = kept("6.1/cred-non-rcu", tmp_path)
    proof = prove(list(judged_tests(base)), list(judged_tests(new)))
    sides = [ProvenRun(str(one.path), "linux", f"Linux {number}", "") for number, one in enumerate((base, new))]
    verdicts = {verdict.test_id: verdict for verdict in base.verdicts()}
    made = loops(proof, sides[0], sides[1], base.tests, verdicts)
    assert made.programs.keys() == {f"{base.tests[test].set_name}.c" for test in proof.freed}
    assert not made.left_out
    foretold = [text for text in made.programs.values() if "non_rcu" in text]
    assert len(foretold) >= len(made.programs) - 1  # one test was freed besides
    program = foretold[0]
    assert "of these calls shared memory on Linux 0 and share none on Linux 1" in program
    assert run(program, tmp_path, "2", "1").returncode == 0
