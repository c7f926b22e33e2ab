"""What each `_native.pyi` says of its native module is what that has: names, parameters, what may be subclassed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.tree import ROOT

PACKAGES = {"commutant": ROOT / "src" / "commutant", "scalefs": ROOT / "packages" / "scalefs" / "src" / "scalefs"}
STUBS = {name: (package / "_native.pyi").read_text() for name, package in PACKAGES.items()}
OF_ITS_LAYOUT = "--ignore-disjoint-bases"
"""Each class has a layout of its own and can be no other's base together with a second one: of no use to a reader."""


def compared(folder: Path, name: str, stub: str) -> tuple[int, list[str]]:
    """What mypy's stubtest returns and prints of a package, made here, that is the native module with this stub."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").touch()
    for types in PACKAGES[name].glob("types.py"):
        (package / types.name).symlink_to(types)
    (native,) = PACKAGES[name].glob("_native*.so")
    (package / native.name).symlink_to(native)
    (package / "_native.pyi").write_text(stub)
    environment = {**os.environ, "MYPYPATH": str(folder), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", OF_ITS_LAYOUT, f"{name}._native"]
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return result.returncode, (result.stdout + result.stderr).splitlines()


@pytest.mark.parametrize("name", PACKAGES)
def test_the_stub_says_what_the_native_module_has(tmp_path: Path, name: str) -> None:
    assert compared(tmp_path, name, STUBS[name]) == (0, [])


def test_a_planted_difference_is_found(tmp_path: Path) -> None:
    for name, right, planted, of in (
        ("commutant", "def scale(linear: _Linear, factor: int)", "def scale(linear: _Linear, times: int)", "scale"),
        ("scalefs", "def end(self, commits: bool)", "def end(self, commit: bool)", "Files.end"),
    ):
        wrong = STUBS[name].replace(right, planted)
        assert wrong != STUBS[name]
        status, (line,) = compared(tmp_path, name, wrong)
        assert status == 1
        assert line.startswith(f"{name}._native.{of} is inconsistent, ")
