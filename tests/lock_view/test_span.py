"""Only a span of a run is recorded: between annotations, between signals, for some seconds; several count together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commutant.support import annotations_folder

OWN = {"lock_a", "lock_b", "held"}
SOURCE = Path(__file__).with_name("span.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("span") / "span"
    include = f"-I{annotations_folder()}"
    subprocess.run(("cc", "-O1", "-g", include, SOURCE, "-o", path, "-lpthread"), check=True)
    return path


class _Recorded:
    """A program that is being recorded, and what it and the recorder say."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def wait_for(self, text: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        pytest.fail(f"it ended without saying {text!r}")

    def use(self, lock: str, times: int) -> None:
        self.tell(f"{lock} {times}\n")
        self.wait_for(f"done {lock}")

    def end(self) -> dict[str, dict[str, int]]:
        """Of each lock, acquires and sections."""
        output, messages = self.process.communicate()
        assert self.process.returncode == 0, messages
        document = json.loads(output)
        return {lock["name"]: lock for lock in document["locks"]} | {"": document}


@contextmanager
def _recorded(program: Path, span: str, *arguments: str) -> Iterator[_Recorded]:
    command = (
        sys.executable,
        "-m",
        "commutant",
        "locks",
        "--format",
        "json",
        "--span",
        span,
        "--",
        program,
        *arguments,
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield _Recorded(process)
        finally:
            process.kill()


def _acquired(recorded: _Recorded) -> dict[str, int]:
    """Of the program's own locks; the C library's are taken when a thread is made."""
    locks = recorded.end()
    document = locks.pop("")
    assert document["instructions"] < 10_000_000  # of the span alone
    return {name: lock["acquired"] for name, lock in locks.items() if name in OWN}


def test_between_annotations(program: Path) -> None:
    with _recorded(program, "annotations", "annotated") as recorded:
        for lock, times in (("a", 300), ("b", 100), ("a", 50), ("b", 20), ("a", 10)):
            recorded.use(lock, times)
        assert _acquired(recorded) == {"lock_b": 240}


def test_between_signals(program: Path) -> None:
    with _recorded(program, "signal") as recorded:
        recorded.wait_for("begins the span")
        recorded.use("a", 300)
        for text in ("has begun", "has ended"):
            os.kill(recorded.process.pid, signal.SIGUSR2)
            recorded.wait_for(text)
            recorded.use("b", 100 if text == "has begun" else 40)
        assert _acquired(recorded) == {"lock_b": 200}


def test_for_some_seconds(program: Path) -> None:
    with _recorded(program, "1,8") as recorded:
        recorded.use("a", 300)
        recorded.wait_for("has begun")
        recorded.use("b", 100)
        recorded.wait_for("has ended")
        recorded.use("a", 30)
        assert _acquired(recorded) == {"lock_b": 200}


@pytest.mark.parametrize(
    ("span", "hint"),
    [
        ("annotations", "it ended before a span began; expected it to execute COMMUTANT_LOCK_SPAN_BEGIN"),
        ("1000,1", "it ended before a span began; expected it to run for longer than 1000 s"),
    ],
)
def test_a_span_that_never_began_is_one_line(program: Path, span: str, hint: str) -> None:
    with _recorded(program, span) as recorded:
        output, messages = recorded.process.communicate("a 10\n")
    assert (recorded.process.returncode, output) == (3, "")
    assert hint in messages and "Traceback" not in messages


@pytest.mark.parametrize("span", ["2", "2,0", "-1,5", "nan,1", "now", "1,inf"])
def test_a_bad_span_is_one_line(span: str) -> None:
    command = (sys.executable, "-m", "commutant", "locks", "--span", span, "--", "true")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "expected annotations, signal, or seconds as FROM,FOR" in " ".join(run.stderr.split())


def test_a_kernel_has_spans_of_its_own() -> None:
    command = (sys.executable, "-m", "commutant", "locks", "--span", "1,2", "--target", "linux")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, "recorded: between switches" in run.stderr) == (2, True)
