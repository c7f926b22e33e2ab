"""What `_native.pyi` says of the native module is what the module has: names, parameters, what may be subclassed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.repository.tree import ROOT

PACKAGE = ROOT / "src" / "commutant"
STUB = (PACKAGE / "_native.pyi").read_text()
OF_ITS_LAYOUT = "--ignore-disjoint-bases"
"""Each class has a layout of its own and can be no other's base beside a second one: of no use to a reader."""


def compared(folder: Path, stub: str) -> tuple[int, list[str]]:
    """What mypy's stubtest returns and prints of a package, made here, that is the native module with this stub."""
    package = folder / "commutant"
    package.mkdir()
    (package / "__init__.py").touch()
    (native,) = PACKAGE.glob("_native*.so")
    (package / native.name).symlink_to(native)
    (package / "_native.pyi").write_text(stub)
    environment = {**os.environ, "MYPYPATH": str(folder), "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", OF_ITS_LAYOUT, "commutant._native"]
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return result.returncode, (result.stdout + result.stderr).splitlines()


def test_the_stub_says_what_the_native_module_has(tmp_path: Path) -> None:
    assert compared(tmp_path, STUB) == (0, [])


def test_a_planted_difference_is_found(tmp_path: Path) -> None:
    wrong = STUB.replace("def scale(linear: _Linear, factor: int)", "def scale(linear: _Linear, times: int)")
    assert wrong != STUB
    status, (line,) = compared(tmp_path, wrong)
    assert status == 1
    assert line.startswith("commutant._native.scale is inconsistent, ")
