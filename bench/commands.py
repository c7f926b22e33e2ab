"""Runs commands whose time or output is a figure."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMMUTANT = ROOT / ".venv" / "bin" / "commutant"


def seconds_of(*argv: str) -> float:
    """Wall-clock seconds of a command run in the repository's root. Raises RuntimeError if it fails."""
    started = time.monotonic()
    _run(list(argv))
    return time.monotonic() - started


@dataclass(frozen=True, slots=True)
class Run:
    """What a command printed and took: by the clock, of the processors, and at most in one of its processes."""

    output: str
    wall_seconds: float
    processor_seconds: float
    peak_memory_mib: float

    def document(self) -> Any:
        """The output as JSON."""
        return json.loads(self.output)


MEASURE = """
import json, resource, subprocess, sys, time
started = time.monotonic()
result = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, check=True)
wall = time.monotonic() - started
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
json.dump([result.stdout, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024], sys.stdout)
"""
"""Runs a command from a process of its own, whose children are the command's processes alone."""


def commutant_run(*arguments: str) -> Run:
    """Runs `commutant ARGUMENTS`. Raises RuntimeError if it fails."""
    return Run(*json.loads(_run([sys.executable, "-c", MEASURE, str(COMMUTANT), *arguments])))


def text_of(*argv: str, shows_progress: bool = False) -> str:
    """What a command prints. Raises RuntimeError if it fails. `shows_progress` shows its standard error as it comes."""
    return _run(list(argv), shows_progress=shows_progress)


def text_with_progress(*argv: str) -> str:
    """As `text_of`, for what takes minutes: what the command says on standard error is seen while it runs.

    Raises RuntimeError if it fails.
    """
    result = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"`{' '.join(argv)}` returned {result.returncode}: see above")
    return result.stdout


def json_of(*argv: str) -> Any:
    """The JSON document that a command prints. Raises RuntimeError if it fails."""
    return json.loads(text_of(*argv))


def _run(argv: list[str], *, shows_progress: bool = False) -> str:
    error = None if shows_progress else subprocess.PIPE
    result = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=error, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"`{' '.join(argv)}` returned {result.returncode}:\n{result.stderr or ''}")
    return result.stdout
