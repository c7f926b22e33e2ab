"""Programs with known critical sections under the recorder: what comes out must be what is known."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from commutant.lock_view import LockClass, LockStudy, record_program, study
from commutant.support.errors import UsageError
from tests.repository.tree import ROOT

HERE = Path(__file__).parent
INCLUDE = ROOT / "crates" / "locks" / "lock-annotation" / "include"
THREADS, ROUNDS = 4, 400
PATIENCE_SECONDS = 300.0
"""A program that takes longer hangs."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    built = tmp_path_factory.mktemp("programs") / "programs"
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{INCLUDE}"]
    subprocess.run(["cc", *flags, "-o", built, HERE / "programs.c"], check=True)
    return str(built)


def studied(*command: str) -> LockStudy:
    run = record_program(command, timeout_seconds=PATIENCE_SECONDS)
    assert (run.exit_code, run.timed_out) == (0, False)
    return study(run.records[0])


def lock(result: LockStudy, name: str) -> LockClass:
    return next(one for one in result.classes if one.name == name)


@pytest.mark.parametrize("private_percent", [0, 13, 29, 50, 100])
def test_known_independence_is_measured(programs: str, private_percent: int) -> None:
    known = lock(studied(programs, "known", str(private_percent)), "known_lock")
    assert known.acquired == THREADS * ROUNDS
    # Two sections conflict if both write the common place.
    expected = 100 * (1 - (1 - private_percent / 100) ** 2)
    measured = known.independence_percent()
    assert measured is not None and abs(measured - expected) < 2
    if private_percent < 100:
        assert known.fields[0].name == "common_place"
        assert known.fields[0].sides[0][1][0].function == "known"
        assert known.fields[0].sides[0][1][0].line
    assert (known.callers[0].name.split()[0], known.callers[0].sections) == ("known", THREADS * ROUNDS)
    assert known.callers[0].independence_percent == measured
    speed_up = known.speed_up(0)
    assert speed_up is not None
    # A crowd has as many threads as were seen so far: two at first, four in the end.
    assert {0: speed_up == 1, 100: 2 <= speed_up <= 4}.get(private_percent, 1 < speed_up < 4)


@pytest.mark.parametrize(("writes", "independence"), [(1, 0), (0, 100)])
def test_sections_that_write_to_a_file_conflict(programs: str, writes: int, independence: int) -> None:
    output = lock(studied(programs, "output", str(writes)), "output_lock")
    assert output.independence_percent() == independence
    assert output.total(lambda one: one.device_sections) == writes * THREADS * 20


def test_an_independent_count_of_acquires_agrees(programs: str, tmp_path: Path) -> None:
    """The C library's functions are counted without the emulator, by a library of the test's own."""
    source = tmp_path / "count.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n"
        "static long count;\n"
        "int pthread_mutex_lock(pthread_mutex_t *lock) { __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);\n"
        'return ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock"))(lock); }\n'
        '__attribute__((destructor)) static void tell(void) { printf("%ld", count); }\n'
    )
    library = tmp_path / "count.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    environment = {"LD_PRELOAD": str(library)}
    told = subprocess.run([programs, "known", "50"], env=environment, capture_output=True, check=True, text=True)
    assert int(told.stdout) == lock(studied(programs, "known", "50"), "known_lock").acquired


def test_readers_are_not_compared_with_readers(programs: str) -> None:
    shared = lock(studied(programs, "readers"), "shared_lock")
    writers = ROUNDS // 10
    assert (shared.acquired, shared.total(lambda one: one.shared_acquires)) == (
        THREADS * ROUNDS,
        THREADS * ROUNDS - writers,
    )
    assert shared.independence_percent() == 0  # whatever is compared has the writer on one side
    assert [field.name for field in shared.fields] == ["read_value"]


def test_custom_locks_are_told_or_found(programs: str) -> None:
    result = studied(programs, "spinning")
    annotated, plain = lock(result, "annotated_lock"), lock(result, "plain_lock")
    assert not annotated.locks[0].inlined and plain.locks[0].inlined
    assert annotated.acquired == THREADS * ROUNDS
    assert annotated.independence_percent() == 100
    # Another thread may run between an atomic instruction and the look at its word. A section that is known too late
    # for it counts, and is compared with none: on a busy machine sections were invented, and independent of the others.
    assert plain.acquired == THREADS * ROUNDS
    assert plain.independence_percent() == 0


def test_a_lock_in_reused_memory_is_another_lock(programs: str) -> None:
    fleeting = lock(studied(programs, "fleeting"), "lock of fleeting")
    assert fleeting.acquired == fleeting.total(lambda one: one.generations) == THREADS * (ROUNDS // 10)
    assert len(fleeting.locks) <= THREADS * 2, "a record of each took 40 KB"
    assert fleeting.independence_percent() is None


def test_a_lock_that_its_maker_stored_zeros_into_is_another_lock(programs: str) -> None:
    """C++ reports no mutex that is made or destroyed: sections of all that lay there were compared."""
    renewed = lock(studied(programs, "renewing"), "renewed")
    assert renewed.acquired == renewed.total(lambda one: one.generations) == THREADS * 20
    assert renewed.independence_percent() is None


def test_what_lies_beside_a_stack_is_shared(programs: str) -> None:
    """All that was mapped together with a stack was taken for the thread's own: these sections were independent."""
    known = lock(studied(programs, "own_stacks"), "known_lock")
    assert (known.acquired, known.independence_percent()) == (THREADS * ROUNDS, 0)
    assert known.mean_conflicting_bytes == 9


def test_start_up_is_apart(programs: str) -> None:
    """What one thread did before there was another: its sections counted among those of the work, and with them."""
    result = studied(programs, "start_up", "100")
    known, start_up = lock(result, "known_lock"), result.record.start_up
    assert (known.acquired, known.independence_percent()) == (THREADS * ROUNDS, 100)
    assert [caller.name.split()[0] for caller in known.callers] == ["known"]
    assert not [one.name for one in result.classes if one.name == "output_lock"], "the work took none of it"
    assert start_up is not None and start_up.acquires >= 700 and start_up.locks >= 2
    assert 0 < start_up.instructions < result.record.instructions + start_up.instructions


def test_a_program_of_one_thread_has_no_start_up(programs: str) -> None:
    run = record_program([programs, "alone"], timeout_seconds=PATIENCE_SECONDS)
    assert run.records[0].start_up is None
    assert lock(study(run.records[0]), "known_lock").acquired == ROUNDS


def test_instances_are_named_by_their_memory(programs: str) -> None:
    run = record_program([programs, "start_up", "100"], timeout_seconds=PATIENCE_SECONDS)
    own = [one.name for one in study(run.records[0], by="instance").classes if "guards" in one.name]
    assert sorted(own) == [
        "lock of guards (on the heap)",
        "lock of guards (on the heap, 2)",
        "lock of guards (on the stack of main)",
    ]
    assert lock(study(run.records[0], by="instance"), "known_lock").acquired == THREADS * ROUNDS


def test_locks_have_names_after_the_first_thread_has_ended(programs: str) -> None:
    """A process shows its mappings no more then, but its threads do."""
    assert lock(studied(programs, "leave", "50"), "known_lock").acquired == THREADS * ROUNDS


def test_what_a_program_leaves_running_is_stopped(programs: str) -> None:
    run = record_program([programs, "daemon"])
    assert (run.exit_code, run.left_behind) == (0, 1)
    assert lock(study(run.records[0]), "known_lock").acquired == THREADS * ROUNDS


def test_waiting_for_a_condition_ends_the_section(programs: str) -> None:
    turns = lock(studied(programs, "turns"), "turn_lock")
    waits = turns.acquired - THREADS * 10
    assert waits > 0
    assert turns.total(lambda one: one.sections) == turns.acquired
    assert turns.total(lambda one: one.releases_without_acquire) == 0


def test_misuse_is_counted(programs: str) -> None:
    result = studied(programs, "misuse", "100")
    assert lock(result, "known_lock").total(lambda one: one.releases_without_acquire) == 1
    assert lock(result, "known_lock").acquired == THREADS * ROUNDS


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("crash", "11"), -11),
        (("crash", "9"), -9),
        (("fault", "0"), -11),
        (("exec",), 0),
        (("fork",), 0),
    ],
)
def test_a_program_that_ends_badly_leaves_what_was_recorded(
    programs: str, arguments: tuple[str, ...], exit_code: int
) -> None:
    run = record_program([programs, *arguments], timeout_seconds=PATIENCE_SECONDS)
    assert (run.exit_code, run.timed_out) == (exit_code, False)
    assert lock(study(run.records[0]), "known_lock").acquired >= THREADS * ROUNDS
    assert len(run.records) == (2 if arguments == ("fork",) else 1)


def test_a_program_that_takes_too_long_leaves_what_was_recorded(programs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is over when it says that it has done what is looked for."""
    ready, its_output = os.pipe()
    wait = subprocess.Popen.wait

    def wait_until_ready(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout == PATIENCE_SECONDS and os.read(ready, 1):
            raise subprocess.TimeoutExpired(process.args, timeout)
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait_until_ready)
    run = record_program([programs, "forever"], timeout_seconds=PATIENCE_SECONDS, output=its_output)
    os.close(ready)
    os.close(its_output)
    assert run.timed_out
    assert lock(study(run.records[0]), "known_lock").acquired >= THREADS * ROUNDS


def _script(folder: Path) -> Path:
    path = folder / "script"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _not_executable(folder: Path) -> Path:
    path = folder / "text"
    path.write_text("text")
    return path


def _other_processor(folder: Path) -> Path:
    path = folder / "other"
    path.write_bytes(b"\x7fELF\x02" + bytes(13) + b"\xb7\x00")
    path.chmod(0o755)
    return path


def test_a_folder_for_temporary_files_may_have_any_name(
    programs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The emulator splits its arguments at commas, the linker at blanks and colons."""
    folder = tmp_path / "a b,c:d"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert lock(studied(programs, "known", "50"), "known_lock").acquired == THREADS * ROUNDS


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda folder: folder / "missing", "expected a program"),
        (lambda folder: folder, "expected a program, got a folder"),
        (_not_executable, "expected a program, got a file that may not be executed"),
        (_script, "expected a compiled program"),
        (_other_processor, "expected a program for x86-64"),
    ],
)
def test_what_cannot_be_run_is_said(make: Callable[[Path], Path], expected: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=expected):
        record_program([str(make(tmp_path))])
