"""Running the kernel's own build: what it compiles is counted, what it says kept, why it failed said in one line."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commutant.support import OnProgress, Progress, RunError, start_program

_COMPILED = re.compile(rb"^  (?:CC|AS)(?: \[M\])? +(\S+)")
_REASONS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^.*No space left on device.*$",
        r"^.*(?:multiple definition of|undefined reference to|redefinition of) .*$",
        r"^\S+: (?:fatal )?error: .*$",
        r"^.*(?:[Ee]rror: |FAILED).*$",
        r"^make.*\*\*\* .*$",
    )
)
_LOG_READ_BYTES = 4 << 20
_ENVIRONMENT = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_USER": "commutant",
    "KBUILD_BUILD_HOST": "commutant",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}
"""So that equal sources make equal kernels."""


class BuildFailed(RunError):
    """A build that failed; `reason` is the first line that says why."""

    def __init__(self, reason: str, log: Path) -> None:
        super().__init__(f"{reason}; all of it: {log}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Made:
    """What a build took: files compiled, and seconds of processor time."""

    compiled: int
    cpu_seconds: float


def make(tree: Path, targets: Sequence[str], jobs: int, log: Path, on_progress: OnProgress) -> Made:
    """Builds targets in `tree/build`. Raises BuildFailed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    (tree / "build").mkdir(exist_ok=True)
    variables = [f"{name}={value}" for name, value in _ENVIRONMENT.items()]
    command = ["env", "-u", "MAKEFLAGS", *variables, "make", "-C", str(tree), "O=build", f"-j{jobs}", *targets]
    compiled = 0
    with log.open("wb") as kept:
        process = start_program(command, messages=subprocess.STDOUT)
        assert process.stdout is not None
        try:
            with process.stdout, open(process.stdout.fileno(), "rb", closefd=False) as lines:
                for line in lines:
                    kept.write(line)
                    if found := _COMPILED.match(line):
                        compiled += 1
                        on_progress(Progress(compiled, text=found[1].decode(errors="replace")))
            code = process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
    if code != 0:
        raise BuildFailed(_reason(log, tree), log)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Made(compiled, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _reason(log: Path, tree: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_READ_BYTES))
        text = file.read().decode(errors="replace")
    for pattern in _REASONS:
        if found := pattern.search(text):
            line = " ".join(found[0].replace(f"{tree}/", "").split())
            return re.sub(r"(^|\s)(?:\.\./)+", r"\1", line)[:240]
    return "make failed"
