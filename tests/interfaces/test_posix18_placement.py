"""posix18: working directories that differ by process (paper, section 3.2), and tests in threads and in processes."""

from __future__ import annotations

import pytest

from commutant.analyzer.analysis import sets_of_calls
from commutant.lang import load_interface
from commutant.testgen import TestCase, generate

POSIX18 = load_interface("posix18")


def generated(calls: tuple[str, ...], level: str = "path") -> list[TestCase]:
    tests = generate(POSIX18, calls, level=level).tests
    return [test for test in tests if sorted(call.call for call in test.calls) == sorted(calls)]


def directories(test: TestCase) -> list[str]:
    """The working directory of each call's process."""
    entered = {step.process: step.args["directory"] for step in test.setup if step.call == "enter_directory"}
    return [str(entered[call.process]) for call in test.calls]


def creations(test: TestCase) -> bool:
    """Whether both calls create a file: the example of section 3.2."""
    return all(call.args["creat"] for call in test.calls) and all(step.call != "name_file" for step in test.setup)


def test_creation_commutes_unless_it_is_exclusive_and_of_one_name_in_one_directory() -> None:
    kinds = set()
    for test in generated(("open", "open"), "conflict"):
        if creations(test):
            one_directory = len(set(directories(test))) == 1
            one_name = test.calls[0].args["name"] == test.calls[1].args["name"]
            exclusive = any(call.args["excl"] for call in test.calls)
            kinds.add((one_directory, one_name))
            assert not (one_directory and one_name and exclusive), test.id
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}


def placements(tests: list[TestCase]) -> set[tuple[tuple[int, int], ...]]:
    return {tuple((call.process, call.thread) for call in test.calls) for test in tests}


TWO_THREADS, TWO_PROCESSES = ((0, 0), (0, 1)), ((0, 0), (1, 0))


@pytest.mark.parametrize("calls", [("stat", "unlink"), ("read", "lseek"), ("write", "write"), ("mmap", "memread")])
def test_pairs_run_in_threads_and_in_processes(calls: tuple[str, ...]) -> None:
    assert placements(generated(calls)) == {TWO_THREADS, TWO_PROCESSES}


@pytest.mark.long
@pytest.mark.parametrize("calls", sets_of_calls(POSIX18, None, 2), ids="-".join)
def test_all_pairs_run_in_threads_and_in_processes(calls: tuple[str, ...]) -> None:
    """All but one: of two pipes in one process, whichever comes first gets the lowest descriptors (POSIX, pipe)."""
    never_commute = {TWO_THREADS} if calls == ("pipe", "pipe") else set()
    assert placements(generated(calls, "conflict")) == {TWO_THREADS, TWO_PROCESSES} - never_commute
