"""Runs commands whose time or output is a figure."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COMMUTANT = ROOT / ".venv" / "bin" / "commutant"


def seconds_of(*argv: str) -> float:
    """Wall-clock seconds of a command run in the repository's root. Raises RuntimeError if it fails."""
    started = time.monotonic()
    _run(list(argv))
    return time.monotonic() - started


def commutant_json(*arguments: str) -> Any:
    """The JSON document that `commutant ARGUMENTS --format json` prints. Raises RuntimeError if it fails."""
    return json.loads(_run([str(COMMUTANT), *arguments, "--format", "json"]))


def _run(argv: list[str]) -> str:
    result = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"`{' '.join(argv)}` returned {result.returncode}:\n{result.stderr}")
    return result.stdout
