"""Programs whose operations are marked: their threads take turns, what is planted is named, and seeds repeat."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from commutant.cli.main import run
from commutant.documents import text
from commutant.scale import ScaleConditions, ScaleDocument, marked_program, read_constants, scaling
from commutant.support import UsageError, marks_folder

HERE = Path(__file__).parent
FEW = ScaleConditions(operations=60, warm_up=60, hand_over=16)
FEW_OPTIONS = ("--operations", "60", "--warm-up", "60", "--hand-over", "16")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    built = tmp_path_factory.mktemp("marked") / "marked"
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{marks_folder()}"]
    subprocess.run(["cc", *flags, HERE / "marked.c", "-o", built], check=True)
    return str(built)


def scaled(words: tuple[str, ...], cores: tuple[int, ...], conditions: ScaleConditions = FEW) -> ScaleDocument:
    *_, document = scaling(marked_program(words), cores, conditions, read_constants(None))
    return document


def test_a_planted_counter_is_named_with_the_cores_at_which_it_stops(program: str) -> None:
    document = scaled((program, "counted", "{cores}"), (1, 2, 16))
    assert document.engine == "threads"
    alone, two, many = document.steps
    assert alone.transfers == 0.0
    assert 0.3 < two.transfers < many.transfers <= 1.1
    assert many.variables[0].name == "entry_count"
    for stack in (many.variables[0].first, many.variables[0].second):
        assert any(frame.startswith("insert") and "marked.c:" in frame for frame in stack), stack
        assert not any("commutant_scale" in frame for frame in stack), stack
    assert document.stops is not None
    assert (document.stops.cores, document.stops.variable) == (16, "entry_count")


def test_its_control_passes_the_gate_that_it_fails(
    program: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gate = ("--cores", "2,64", *FEW_OPTIONS, "--fail-on", "transfers>0.1@64")
    path = tmp_path / "counted.json"
    assert run(["scale", *gate, "--format", "json", "-o", str(path), "--", program, "counted", "{cores}"]) == 1
    assert "most of it entry_count" in capfd.readouterr().err
    assert json.loads(path.read_text())["steps"][1]["stalls"] == 0
    assert run(["scale", *gate, "--", program, "plain", "{cores}"]) == 0
    assert "Up to 64 cores" in capfd.readouterr().out


def test_a_lock_of_a_real_library_is_named(program: str) -> None:
    document = scaled((program, "random", "{cores}"), (1, 8))
    assert document.stops is not None
    assert document.stops.cores == 8
    # The C library's one state of all threads, or its lock; by the function where no debug information is installed.
    assert document.stops.variable is not None
    assert document.stops.variable.startswith(("libc.so.6: unsafe_state", "libc.so.6: lock", "memory of "))
    assert any("random" in frame for frame in document.steps[1].variables[0].first)
    assert document.steps[1].transfers > 1


def test_the_same_seed_gives_the_same_document_and_another_seed_another(program: str) -> None:
    words = (program, "turns", "{cores}")
    one, again, other = (
        text(scaled(words, (4,), ScaleConditions(seed=seed, operations=30, warm_up=30))) for seed in (3, 3, 4)
    )
    assert one == again
    assert one != other


def test_interruptions_let_operations_interleave_inside(program: str) -> None:
    whole, interrupted = (
        scaled((program, "counted", "4"), (4,), ScaleConditions(operations=60, warm_up=60, hand_over=rate))
        for rate in (0, 512)
    )
    assert whole.steps[0].transfers != interrupted.steps[0].transfers


@pytest.mark.parametrize("kind", ["barrier", "turns", "endless"])
def test_threads_that_wait_for_each_other_come_to_an_end(program: str, kind: str) -> None:
    document = scaled((program, kind, "{cores}"), (8,))
    assert document.complete
    assert document.steps[0].stalls == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("unmarked", "{cores}"), "no thread marked an operation: expected COMMUTANT_SCALE_BEGIN()"),
        (("plain", "3"), "expected 4 threads with marked operations, one for each core, got 3"),
        (("plain", "5"), "expected 4 threads with marked operations, one for each core, got more"),
        (("nested", "{cores}"), "an operation begins in another one"),
        (("leaves", "{cores}"), "and that neither ends by _exit or quick_exit nor"),
        (("ends", "{cores}"), "a thread ends inside an operation: expected COMMUTANT_SCALE_END()"),
        (("crash", "{cores}"), "failed (exit code -11)"),
        (("deadlock", "{cores}"), "all threads wait: thread 0 for the end of thread"),
    ],
)
def test_what_a_program_does_wrong_is_named(
    program: str, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert run(["scale", "--cores", "4", *FEW_OPTIONS, "--", program, *words]) == 3
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_who_waits_for_what_is_named(program: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["scale", "--cores", "4", *FEW_OPTIONS, "--", program, "deadlock", "4"]) == 3
    assert capfd.readouterr().err.count("for the mutex at 0x") == 4


def test_an_operation_that_never_ends_is_stopped(program: str, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--cores", "2", *FEW_OPTIONS, "--timeout", "2")
    assert run(["scale", *arguments, "--", program, "stands-still", "{cores}"]) == 3
    assert "did not end within 2 s" in capfd.readouterr().err


def test_what_a_program_forks_ends_with_it(program: str, tmp_path: Path) -> None:
    words = (program, "forks", "{cores}", str(tmp_path / "child"))
    assert scaled(words, (2,), replace(FEW, timeout_seconds=20.0)).complete
    child = Path("/proc", (tmp_path / "child").read_text(), "stat")
    until = time.monotonic() + 10
    while child.exists() and child.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until, "it lives on"
        time.sleep(0.01)


def test_a_folder_that_would_be_split_is_left_alone(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b,c").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a b,c"))
    assert scaled((program, "plain", "{cores}"), (2,)).complete


def test_a_program_that_ends_early_says_how_far_it_came(program: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["scale", "--cores", "2", "--", program, "plain", "{cores}"]) == 3
    assert "ended after 800 operations of all cores, expected 4048, 2048 of them to warm up" in capfd.readouterr().err


def test_a_static_program_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", tmp_path / "empty.c", "-o", tmp_path / "empty"], check=True)
    assert run(["scale", "--cores", "2", "--", str(tmp_path / "empty")]) == 3
    assert "linked to the C library as usual" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("open", "--", "true", "a b"), "or a program after --, got both: open and true 'a b'"),
        (("--",), "expected a program after --, got nothing"),
        (("--", "/nowhere/at-all"), "expected a program"),
    ],
)
def test_bad_use_is_one_line(capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert run(["scale", *arguments]) == 2
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_program_by_itself_does_what_it_did(program: str) -> None:
    printed = subprocess.run([program, "counted", "4"], capture_output=True, text=True, check=True).stdout
    assert printed == "1600\n"


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(UsageError):
        marked_program(("/etc/hostname",))
