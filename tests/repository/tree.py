"""What the tests of the repository look at: its tracked files, its manifests, its installed command."""

from __future__ import annotations

import functools
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
"""Where the virtual environment has its commands; not resolved, since its python is a link out of it."""


@functools.cache
def tracked() -> tuple[Path, ...]:
    """All files that git tracks and that are there, sorted."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return tuple(sorted(ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()))


def texts() -> Iterator[tuple[Path, str]]:
    """Path, relative to the root, and content of every tracked file that is text."""
    for file in tracked():
        try:
            yield file.relative_to(ROOT), file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def python_files(folder: str = "") -> list[Path]:
    """The tracked Python files below a folder of the repository."""
    return [file for file in tracked() if file.suffix == ".py" and file.is_relative_to(ROOT / folder)]


def toml(path: str) -> dict[str, Any]:
    """A TOML file of the repository."""
    with (ROOT / path).open("rb") as file:
        return tomllib.load(file)


def crates() -> list[str]:
    """The workspace's crates, each by its folder below crates/: group and name. What lies in one's is no member."""
    folder = ROOT / "crates"
    manifests = (file for file in tracked() if file.match("crates/*/*/Cargo.toml"))
    return sorted(str(file.parent.relative_to(folder)) for file in manifests)


def command(*argv: str, status: int = 0) -> str:
    """Standard output of a command of the virtual environment or the system, run in the repository's root."""
    program = BIN / argv[0]
    line = [str(program) if program.exists() else argv[0], *argv[1:]]
    result = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == status, f"`{' '.join(argv)}` returned {result.returncode}:\n{result.stderr}"
    return result.stdout
