"""C programs: they compile without a warning, do what the test says, and notice when the outcome is another one."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from commutant.corpus import ExpectedOutcome, Order, PlacedCall, SetupStep, Step, TestCase, Value
from commutant.lang.load import load_interface
from commutant.report import c_program
from commutant.report.cprogram import expected_text
from commutant.report.cprogram.calls import C_CALLS
from commutant.report.cprogram.literal import comment_lines, file_name, string_literal
from commutant.support.errors import UsageError
from commutant.testgen.generation import generate
from tests.report.invented import HOSTILE_NAMES, hostile_test, with_id
from tests.report.snapshots import assert_snapshot

COMPILE = ("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-x", "c", "-", "-o")
SAMPLE_SIZE = 40
ENOENT: Value = {"errno": "ENOENT"}
EEXIST: Value = {"errno": "EEXIST"}


def _open(name: str, process: int = 0, result: Value = 0) -> SetupStep:
    return SetupStep("open", {"name": name, "creat": True, "excl": True}, process, result)


def _stat(inode: int, links: int) -> Value:
    return {"struct": {"ino": {"sort": "Inum", "id": inode}, "nlink": links}}


def _case(
    calls: Sequence[tuple[str, dict[str, Value]]],
    setup: Sequence[Step],
    observed: Sequence[str],
    orders: Sequence[Sequence[ExpectedOutcome]],
    processes: int = 1,
) -> TestCase:
    placed = tuple(
        PlacedCall(call, args, index if processes > 1 else 0, 0 if processes > 1 else index, index)
        for index, (call, args) in enumerate(calls)
    )
    observe = tuple(Step("stat", {"name": name}, 0) for name in observed)
    both = tuple(Order(order, tuple(outcomes)) for order, outcomes in zip(((0, 1), (1, 0)), orders, strict=True))
    return with_id(TestCase("", "conflict", 0, "by hand", placed, tuple(setup), observe, both))


def _cases_by_hand() -> Iterator[TestCase]:
    """One test for each call, known from POSIX and Linux, not from any model."""
    done = [ExpectedOutcome((0, 0), (ENOENT, _stat(5, 2), _stat(5, 2)))]
    yield _case(
        [("link", {"old": "a", "new": "b"}), ("rename", {"src": "a", "dst": "c"})],
        [_open("a")],
        ["a", "b", "c"],
        [done, [ExpectedOutcome((ENOENT, 0), (ENOENT, ENOENT, _stat(0, 1)))]],
        processes=2,
    )
    yield _case(
        [("unlink", {"name": "a"}), ("access", {"name": "b"})],
        [_open("a"), SetupStep("link", {"old": "a", "new": "b"}, 0, 0)],
        ["a", "b"],
        [[ExpectedOutcome((0, 0), (ENOENT, _stat(7, 1)))]] * 2,
    )
    yield _case(
        [("open", {"name": "a", "creat": True, "excl": True}), ("open", {"name": "a", "creat": False, "excl": False})],
        [],
        ["a"],
        [[ExpectedOutcome((0, 0), (_stat(1, 1),))], [ExpectedOutcome((0, ENOENT), (_stat(1, 1),))]],
        processes=2,
    )
    yield _case(
        [("stat", {"name": "a"}), ("stat", {"name": "b"})],
        [_open("a"), _open("b"), _open("a", result=EEXIST)],
        ["b", "a"],
        [[ExpectedOutcome((_stat(4, 1), _stat(9, 1)), (_stat(9, 1), _stat(4, 1)))]] * 2,
    )
    yield _case(
        [("stat", {"name": "a"}), ("stat", {"name": "b"})], [], [], [[ExpectedOutcome((ENOENT, ENOENT), ())]] * 2
    )


BY_HAND = tuple(_cases_by_hand())


def _build(test: TestCase, folder: Path) -> Path:
    program = folder / f"{abs(hash(test.id)):x}"
    built = subprocess.run([*COMPILE, str(program)], input=c_program(test).encode(), capture_output=True, timeout=120)
    assert built.returncode == 0, built.stderr.decode()
    return program


def _run(program: Path, order: str, folder: Path) -> subprocess.CompletedProcess[str]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(work), "LC_ALL": "C"}
    ran = subprocess.run([str(program), order], capture_output=True, text=True, timeout=120, env=environment)
    assert list(work.iterdir()) == [], "the program left files behind"
    return ran


@pytest.mark.parametrize("test", BY_HAND, ids=lambda test: test.set_name)
def test_programs_give_an_expected_outcome_in_every_order(test: TestCase, tmp_path: Path) -> None:
    program = _build(test, tmp_path)
    for index, order in enumerate(test.orders):
        ran = _run(program, str(index), tmp_path)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
        assert ran.stdout in {expected_text(test, outcome) + "acceptable\n" for outcome in order.outcomes}


def test_a_sample_of_the_generated_corpus_agrees_with_the_kernel(tmp_path: Path) -> None:
    tests = random.Random(20).sample(generate(load_interface("names")).tests, SAMPLE_SIZE)
    for test in tests:
        program = _build(test, tmp_path)
        for index in range(len(test.orders)):
            ran = _run(program, str(index), tmp_path)
            assert ran.returncode == 0, f"{test.id}, order {index}:\n{ran.stdout}{ran.stderr}"


def test_a_sample_of_posix18_agrees_with_the_kernel(tmp_path: Path) -> None:
    """Without pipes: newer kernels than the model's leave their times alone (pipe_write, since Linux 6.15)."""
    interface = load_interface("posix18")
    pairs = [("open", "rename"), ("read", "mmap"), ("pwrite", "memread"), ("mprotect", "memwrite"), ("lseek", "close")]
    tests = [test for pair in pairs for test in generate(interface, pair, level="path").tests]
    without_pipes = [test for test in tests if not any("pipe" in step.call for step in test.setup)]
    for test in random.Random(20).sample(without_pipes, SAMPLE_SIZE):
        program = _build(test, tmp_path)
        for index in range(len(test.orders)):
            ran = _run(program, str(index), tmp_path)
            assert ran.returncode == 0, f"{test.id}, order {index}:\n{ran.stdout}{ran.stderr}"


def test_times_in_another_order_are_not_acceptable(tmp_path: Path) -> None:
    """A file's ctime moves when it is linked, long after its mtime."""
    linked = _case(
        [("access", {"name": "a"})] * 2,
        [_open("a"), SetupStep("access", {"name": "a"}, 0, 0), SetupStep("link", {"old": "a", "new": "b"}, 0, 0)],
        ["a"],
        [[ExpectedOutcome((0, 0), ({"struct": {"mtime": {"time": time}, "ctime": {"time": 5}}},))] for time in (1, 9)],
    )
    # Thousands of steps take longer than a tick of the coarsest clock.
    patient = replace(linked, setup=(linked.setup[0], *[linked.setup[1]] * 3000, linked.setup[2]))
    program = _build(with_id(patient), tmp_path)
    assert _run(program, "0", tmp_path).returncode == 0
    assert _run(program, "1", tmp_path).returncode == 1


def test_another_outcome_is_not_acceptable(tmp_path: Path) -> None:
    good = BY_HAND[0]
    bad = replace(
        good,
        orders=(
            replace(good.orders[0], outcomes=(ExpectedOutcome((0, EEXIST), (ENOENT, ENOENT, ENOENT)),)),
            good.orders[1],
        ),
    )
    ran = _run(_build(bad, tmp_path), "0", tmp_path)
    assert ran.returncode == 1
    assert "call 1 rename: 0\n" in ran.stdout
    assert "not acceptable; expected:" in ran.stdout
    assert "call 1 rename: EEXIST\n" in ran.stdout


def test_two_files_for_one_inode_are_not_acceptable(tmp_path: Path) -> None:
    good = BY_HAND[3]
    same = ExpectedOutcome((_stat(4, 1), _stat(4, 1)), (_stat(4, 1), _stat(4, 1)))
    bad = replace(good, orders=tuple(replace(order, outcomes=(same,)) for order in good.orders))
    assert _run(_build(bad, tmp_path), "0", tmp_path).returncode == 1


def test_any_of_several_outcomes_will_do(tmp_path: Path) -> None:
    good = BY_HAND[0]
    other = ExpectedOutcome((EEXIST, EEXIST), (ENOENT, ENOENT, ENOENT))
    orders = tuple(replace(order, outcomes=(other, *order.outcomes)) for order in good.orders)
    assert _run(_build(replace(good, orders=orders), tmp_path), "1", tmp_path).returncode == 0


@pytest.mark.parametrize("order", ["2", "-1", "x", "0x", ""])
def test_a_wrong_order_is_wrong_use(order: str, tmp_path: Path) -> None:
    ran = _run(_build(BY_HAND[0], tmp_path), order, tmp_path)
    if order == "":
        assert ran.returncode == 0, "an empty argument counts as order 0"
    else:
        assert ran.returncode == 2
        assert "with ORDER from 0 to 1" in ran.stderr


def test_program_text() -> None:
    assert_snapshot("program.c", c_program(BY_HAND[0]))


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_hostile_names_compile_to_harmless_programs(name: str, tmp_path: Path) -> None:
    test = hostile_test(name)
    program = c_program(test)
    assert program.isascii()
    ran = _run(_build(test, tmp_path), "1", tmp_path)
    assert ran.returncode == 0, ran.stdout


@given(st.text(st.characters(codec=None)))
def test_literals_and_comments_hold_any_text(text: str) -> None:
    literal = string_literal(text)
    assert literal.isascii()
    assert literal.isprintable()
    assert "??" not in literal
    assert '"' not in literal[1:-1].replace("\\\\", "").replace('\\"', "")
    comment = "".join(comment_lines(text))
    assert comment.isascii()
    assert not {"*/", "/*", "??"} & {comment[index : index + 2] for index in range(len(comment))}
    assert all(line.startswith(" *") and line.index("\n") == len(line) - 1 for line in comment_lines(text))


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_file_names_are_plain_and_as_distinct_as_the_names(one: str, other: str) -> None:
    assert "/" not in file_name(one)
    assert file_name(one) not in ("", ".", "..")
    assert len(file_name(one)) <= 64
    assert (file_name(one) == file_name(other)) == (one == other)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("fly", {}), "got fly"),
        (("mmap", {}), "got none"),
        (("lseek", {"fd": True, "offset": 0, "whence": 0}), "got True"),
        (("unlink", {"path": "a"}), "got path"),
        (("unlink", {"name": 3}), "got 3"),
        (("open", {"name": "a", "creat": 1, "excl": False}), "got 1"),
    ],
)
def test_what_has_no_c_form_is_refused_in_one_line(call: tuple[str, dict[str, Value]], said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        c_program(_case([call, call], [], [], [[ExpectedOutcome((0, 0), ())]] * 2))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "result", [{"time": 3}, {"seq": [1]}, {"struct": {"colour": 1}}, {"struct": {"ino": {"seq": []}}}, True, "text"]
)
def test_results_that_c_cannot_check_are_refused(result: Value) -> None:
    for call in ("stat", "unlink"):
        with pytest.raises(UsageError, match="--as json"):
            c_program(_case([(call, {"name": "a"})] * 2, [], [], [[ExpectedOutcome((result, result), ())]] * 2))


def test_every_call_of_names_has_a_c_form() -> None:
    assert set(C_CALLS) >= {"open", "link", "unlink", "rename", "stat", "access"}
