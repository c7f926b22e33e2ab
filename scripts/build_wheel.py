"""`make wheel`: builds the wheel into dist/. Two of one commit, built in one folder by one toolchain, are equal.

What it says of when it was made is the time of the commit, unless SOURCE_DATE_EPOCH says another.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from steps import ROOT, VENV, StepFailed, run

MANUAL = ROOT / "target" / "wheel-data" / "data" / "share" / "man" / "man1"
"""Where maturin takes the man pages from (pyproject.toml)."""

_NO_COMMIT = "315532800"
"""Without git: 1 January 1980, before which an archive knows no time."""


def build(folder: Path, **environment: str) -> Path:
    """Builds the wheel into a folder and returns its path, with changes of the environment.

    Raises StepFailed if that fails.
    """
    when = os.environ.get("SOURCE_DATE_EPOCH") or _time_of_commit()
    command: list[str | Path] = [VENV / "bin" / "maturin", "build", "--quiet", "--release", "--offline"]
    for before in folder.glob("*.whl"):
        before.unlink()
    shutil.rmtree(MANUAL, ignore_errors=True)
    run([VENV / "bin" / "commutant", "help", "--man-pages", MANUAL])
    run([*command, "--out", folder], env={"SOURCE_DATE_EPOCH": when, **environment})
    (built,) = folder.glob("*.whl")
    return built


def _time_of_commit() -> str:
    try:
        return run(["git", "log", "-1", "--format=%ct"]).strip()
    except StepFailed:
        return _NO_COMMIT


def main() -> int:
    """Builds the wheel into dist/; returns the exit code."""
    try:
        print(build(ROOT / "dist").relative_to(ROOT))
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
