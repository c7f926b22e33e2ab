"""The wheel is all that a user needs: it installs into an empty virtual environment and works there, off line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import commutant
import steps
from tests.repository.tree import BIN, ROOT

WHEELS = BIN.parent / "wheels"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `make wheel` builds it."""
    folder = tmp_path_factory.mktemp("dist")
    steps.run([BIN / "maturin", "build", "--quiet", "--release", "--offline", "--out", folder])
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new virtual environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    install = [*pip, "install", "--no-compile", "--no-index", "--find-links", str(WHEELS), str(wheel)]
    subprocess.run(install, check=True, timeout=300)
    return folder / "bin"


def _run(program: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs an installed command outside of the repository, without what the test's own environment adds."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    argv = [str(program), *arguments]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_wheel_holds_native_module_artifacts_types_and_licences(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "commutant/_native.abi3.so",
        "commutant/_artifacts/commutant-runner",
        "commutant/_artifacts/docs/guides/patterns.md",
        "commutant/_artifacts/include/commutant_locks.h",
        "commutant/_artifacts/commutant-scalefs-runner",
        "commutant/_artifacts/commutant-library-runner",
        "commutant/targets/library/include/commutant.h",
        "commutant/targets/library/include/commutant.hpp",
        "commutant/_artifacts/libcommutant_mtrace_plugin.so",
        "commutant/py.typed",
    ):
        assert wanted in names
    for licence in ("LICENSE-MIT", "LICENSE-APACHE", "crates/emulator/LICENSE"):
        assert any(name.endswith(f"licenses/{licence}") for name in names)
    strange = [name for name in names if not name.startswith(("commutant/", f"commutant-{commutant.__version__}."))]
    assert not strange


def test_runner_is_static() -> None:
    """It is the only file in the guest: there is no loader and no library."""
    from commutant.support.artifacts import runner_path

    headers = subprocess.run(
        ["readelf", "--wide", "--program-headers", str(runner_path())], capture_output=True, text=True, check=True
    ).stdout
    assert "LOAD" in headers
    assert "INTERP" not in headers


def test_installed_command_tells_its_version(installed: Path, tmp_path: Path) -> None:
    result = _run(installed / "commutant", "--version", folder=tmp_path)
    assert (result.returncode, result.stdout.split()[-1]) == (0, commutant.__version__)


def test_installed_command_analyzes(installed: Path, tmp_path: Path) -> None:
    arguments = ["analyze", "figure4", "--calls", "rename,rename", "--format", "json"]
    result = _run(installed / "commutant", *arguments, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    (pair,) = json.loads(result.stdout)["sets"]
    assert pair["calls"] == ["rename", "rename"]
    assert pair["commutative_paths"] > 0
    assert pair["unknown"] == 0


def test_installed_command_examines_the_machine(installed: Path, tmp_path: Path) -> None:
    result = _run(installed / "commutant", "doctor", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert str(ROOT) not in result.stdout, "the installed command uses the checkout"
