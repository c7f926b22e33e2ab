"""`make wheel`: builds the wheels into dist/: `commutant`, and `scalefs`, the file system alone.

Two wheels of one commit, built in one folder by one toolchain, are equal.

What it says of when it was made is the time of the commit, unless SOURCE_DATE_EPOCH says another.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from pathlib import Path

from steps import ROOT, VENV, StepFailed, run

MANUAL = ROOT / "target" / "wheel-data" / "data" / "share" / "man" / "man1"
"""Where maturin takes the man pages from (pyproject.toml)."""

_NO_COMMIT = "315532800"
"""Without git: 1 January 1980, before which an archive knows no time."""

SCALEFS = ROOT / "packages" / "scalefs"

PROGRAMS = ROOT / "target" / "scalefs-wheel-data" / "scripts"
"""Where maturin takes the program `scalefs` from (packages/scalefs/pyproject.toml)."""


def build(folder: Path, project: Path = ROOT, **environment: str) -> Path:
    """Builds a project's wheel into a folder and returns its path, with changes of the environment.

    Wheels of the project that were there go. Raises StepFailed if that fails.
    """
    when = os.environ.get("SOURCE_DATE_EPOCH") or _time_of_commit()
    command: list[str | Path] = [VENV / "bin" / "maturin", "build", "--quiet", "--release", "--offline"]
    command += ["--compression-level", "9"]
    with (project / "pyproject.toml").open("rb") as file:
        name = tomllib.load(file)["project"]["name"]
    for before in folder.glob(f"{name}-*.whl"):
        before.unlink()
    if project == ROOT:
        shutil.rmtree(MANUAL, ignore_errors=True)
        run([VENV / "bin" / "commutant", "help", "--man-pages", MANUAL])
    if project == SCALEFS:
        build_program()
    run([*command, "--out", folder], env={"SOURCE_DATE_EPOCH": when, **environment}, folder=project)
    (built,) = folder.glob(f"{name}-*.whl")
    return built


def build_program() -> None:
    """Builds the program `scalefs`, which the wheel of that name installs with the package; it has names, no lines."""
    command = ["cargo", "rustc", "--quiet", "--release", "--locked", "--offline"]
    run([*command, "--package", "scalefs-program", "--bin", "scalefs", "--", "-Cstrip=debuginfo"], folder=ROOT)
    shutil.rmtree(PROGRAMS, ignore_errors=True)
    PROGRAMS.mkdir(parents=True)
    shutil.copy(ROOT / "target" / "release" / "scalefs", PROGRAMS / "scalefs")


def _time_of_commit() -> str:
    try:
        return run(["git", "log", "-1", "--format=%ct"]).strip()
    except StepFailed:
        return _NO_COMMIT


def main() -> int:
    """Builds the wheels into dist/; returns the exit code."""
    try:
        for project in (ROOT, SCALEFS):
            print(build(ROOT / "dist", project).relative_to(ROOT))
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
