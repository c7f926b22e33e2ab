"""The wheel of `scalefs` alone is all that a program with files needs: the pages' programs run in an empty one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import scalefs
from build_wheel import SCALEFS, build
from tests.repository.tree import BIN, ROOT, toml

WHEELS = BIN.parent / "wheels"
MOST_BYTES = 3_000_000
WITH_FSSPEC = """
import fsspec
with fsspec.open("scalefs://trees/oak", "w") as file:
    file.write("20")
with fsspec.open("scalefs://trees/oak", "rt") as file:
    print(file.read())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `make wheel` builds it."""
    return build(tmp_path_factory.mktemp("dist"), SCALEFS)


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        return message_from_bytes(archive.read(f"scalefs-{scalefs.__version__}.dist-info/METADATA"))


def installed(wheel: Path, folder: Path, *extras: str) -> Path:
    """The Python of a new virtual environment that has the wheel, and what its extras ask for."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    python = folder / "bin" / "python"
    what = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    install = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-index"]
    subprocess.run([*install, "--find-links", str(WHEELS), what], check=True, timeout=300)
    return python


def output(python: Path, program: str, folder: Path) -> str:
    """What a program prints, outside of the repository; nothing but its own packages is there."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [str(python), "-W", "error", "-c", program]
    result = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_wheel_holds_the_package_alone(wheel: Path, metadata: Message) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    of_package = {name.removeprefix("scalefs/") for name in names if name.startswith("scalefs/")}
    sources = {
        file.name for file in (SCALEFS / "src" / "scalefs").iterdir() if file.suffix in (".py", ".pyi", ".typed")
    }
    assert of_package == {*sources, "py.typed", "_native.abi3.so"}
    assert not [name for name in names if not name.startswith(("scalefs/", f"scalefs-{scalefs.__version__}."))]
    assert wheel.stat().st_size < MOST_BYTES
    assert "-abi3-" in wheel.name
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert any(name.endswith(f"licenses/{licence}") for name in names)
    needed = metadata.get_all("Requires-Dist", [])
    assert [one for one in needed if "extra ==" not in one] == []
    text = metadata.get_payload()
    assert isinstance(text, str) and not re.findall(r"\]\((?!https://)[^)]*\)|<img", text)


def test_the_programs_of_the_pages_run_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path / "empty")
    listed = output(python, "import importlib.metadata as m; print(*(one.name for one in m.distributions()))", tmp_path)
    assert {"scalefs"} <= set(listed.split()) <= {"pip", "scalefs", "setuptools"}
    for page in ("docs/guides/files.md", "docs/guides/transactions.md", "packages/scalefs/README.md"):
        program = (ROOT / page).read_text().split("```python\n")[1].split("```")[0]
        told = output(python, program, tmp_path)
        assert page != "docs/guides/files.md" or told.startswith("Dear Bob\n['letter']\n[Errno 2]")


def test_with_its_extra_fsspec_finds_it(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path / "with", "fsspec")
    assert output(python, WITH_FSSPEC, tmp_path) == "20\n"


def test_versions_and_licences_are_those_of_the_repository() -> None:
    project, ours = toml("packages/scalefs/pyproject.toml")["project"], toml("pyproject.toml")["project"]
    assert project["version"] == ours["version"] == scalefs.__version__
    assert project["requires-python"] == ours["requires-python"]
    assert project["license"] == toml("Cargo.toml")["workspace"]["package"]["license"]
    for licence in project["license-files"]:
        assert (SCALEFS / licence).readlink() == Path("../..") / licence
