"""The wheel is all that a user needs: it installs into an empty virtual environment and works there, off line."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import commutant
from build_wheel import build
from tests.repository.tree import BIN, ROOT

WHEELS = BIN.parent / "wheels"


MOST_BYTES = 16_000_000

NEEDS_Z3 = '''
"""Two numbers that stand between multiples."""

from commutant.lang import Interface, call


class Between(Interface):
    """Two numbers."""

    x: int
    y: int

    @call
    def look(self) -> bool:
        """Elimination alone does not know whether there are such numbers."""
        return 0 < 3 * self.x - 5 * self.y < 3 and 0 < 2 * self.x + 3 * self.y < 8
'''


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `make wheel` builds it."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What the wheel says of itself."""
    return message_from_bytes(_files(wheel)[f"commutant-{commutant.__version__}.dist-info/METADATA"])


def _files(wheel: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


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
        "commutant/_artifacts/commutant-scale-runner",
        "commutant/_artifacts/commutant-try",
        "commutant/_artifacts/libcommutant_transfers_plugin.so",
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


def test_man_finds_the_pages_of_the_installed_command(installed: Path) -> None:
    """`man` looks next to each folder of PATH."""
    page = installed.parent / "share" / "man" / "man1" / "commutant-check.1"
    assert page.read_text(encoding="utf-8").startswith('.TH "COMMUTANT\\-CHECK" "1"')


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


def test_two_wheels_of_one_commit_are_equal(wheel: Path, tmp_path: Path) -> None:
    """At another time, in another time zone, with other permissions of new files, and after files were touched."""
    source = ROOT / "src" / "commutant" / "__init__.py"
    before = source.stat()
    mask = os.umask(0o077)
    try:
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 10**11))
        again = build(tmp_path, TZ="Asia/Tokyo", LC_ALL="C")
    finally:
        os.umask(mask)
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    one, other = _files(wheel), _files(again)
    assert one.keys() == other.keys()
    assert not [name for name in one if one[name] != other[name]]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, again)]
    assert digests[0] == digests[1], "the files are equal, and what the archive says of them is not"


def _with_lines(wheel: Path, folder: Path) -> Iterator[str]:
    """The names of the wheel's programs and libraries that have debug information."""
    for name, content in _files(wheel).items():
        if content.startswith(b"\x7fELF"):
            file = folder / "program"
            file.write_bytes(content)
            if ".debug_info" in subprocess.run(["readelf", "-SW", file], capture_output=True, text=True).stdout:
                yield name.rpartition("/")[2]


def test_the_wheel_has_no_debug_information_but_what_findings_name(wheel: Path, tmp_path: Path) -> None:
    assert list(_with_lines(wheel, tmp_path)) == ["commutant-scale-runner", "commutant-scalefs-runner"]
    assert wheel.stat().st_size < MOST_BYTES, wheel.stat().st_size


def test_what_the_wheel_says_of_itself_needs_no_other_file(metadata: Message) -> None:
    """A page of an index shows this text alone: a link to a file of the repository would lead nowhere."""
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert text.rstrip() == (ROOT / "src" / "commutant" / "README.md").read_text().rstrip()
    assert not re.findall(r"\]\((?!https://)[^)]*\)|<img", text)
    assert metadata["Version"] == commutant.__version__
    assert not [line for line in metadata.get_all("Project-URL", []) if "example" in line], "an invented address"


def test_extras_are_named_where_they_are_missed(installed: Path, tmp_path: Path, metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {"dask", "parquet", "z3"}
    (tmp_path / "between.py").write_text(NEEDS_Z3)
    result = _run(installed / "commutant", "analyze", "between.py", folder=tmp_path)
    (line,) = result.stderr.splitlines()
    assert result.returncode == 2
    assert re.search(r"between\.py:\d+: Between\.look: the model's integers need Z3, .*'commutant\[z3\]'$", line)
