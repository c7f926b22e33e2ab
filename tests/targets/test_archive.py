"""Archives that lie are given up early, on every Python that is here: `tarfile` differs from one to the next."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commutant.guest import open_sources
from commutant.guest import tar as archive_module
from commutant.support import Budget, UsageError
from tests.targets.hostile_archives import ARCHIVES, GRANTED_BYTES, header

ARCHIVE = Path(archive_module.__file__)
HERE = Path(__file__).parent
PLACES = ("/usr/bin", "/usr/local/bin", "~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin")


def _pythons() -> dict[str, Path]:
    """Every Python from 3.11 on, by its whole version, with the one that runs this."""
    found = {_version(path): path for place in PLACES for path in _matching(place)}
    found[_version(Path(sys.executable))] = Path(sys.executable)
    return {version: path for version, path in sorted(found.items()) if version}


def _matching(place: str) -> list[Path]:
    folders = Path("/").glob(str(Path(place).expanduser()).lstrip("/"))
    return [path for folder in folders for path in folder.glob("python3.*") if re.fullmatch(r"python3\.\d+", path.name)]


def _version(path: Path) -> str:
    """A Python's version; nothing if it is older than 3.11, or does not start."""
    if path.name.startswith("python3.") and int(path.name.removeprefix("python3.")) < 11:
        return ""
    answer = subprocess.run([path, "-I", "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.removeprefix("Python ").strip()


PYTHONS = _pythons()

EXPECTED = {
    "a name of a gigabyte": "headers of more than 16,384 bytes",
    "a link of a gigabyte": "headers of more than 16,384 bytes",
    "names of names": "headers of more than 16,384 bytes",
    "an extended header of a gigabyte": "headers of more than 16,384 bytes",
    "a global header of a gigabyte": "headers of more than 16,384 bytes",
    "Solaris' header of a gigabyte": "headers of more than 16,384 bytes",
    "an extended header": "'z' is of a kind that no package holds",
    "a global header": "'y' is of a kind that no package holds",
    "sparse by an extended header": "of a kind that no package holds",
    "a sparse file": "'x' is of a kind that no package holds",
    "a table of a sparse file without end": "headers of more than 16,384 bytes",
    "a kind that is not known": "'x' is of a kind that no package holds",
    "a file of a terabyte": "1099511627776 bytes are too many",
    "files without end": "more than 100,000 files",
    "a file that is cut off": "'x' is cut off",
}
"""Texts of ours; what else is refused, `tarfile` refuses in words that differ from one Python to the next."""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    """By version, what each Python made of each archive."""
    results = {}
    for version, python in PYTHONS.items():
        command = [str(python), "-I", str(HERE / "hostile_archives.py"), str(ARCHIVE)]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert answer.returncode == 0, f"{version}: {answer.stderr[-2000:]}"
        results[version] = json.loads(answer.stdout)
    return results


@pytest.mark.parametrize("version", PYTHONS)
def test_what_an_archive_announces_is_not_believed(outcomes: dict[str, dict[str, Any]], version: str) -> None:
    most = archive_module.HEADER_LIMIT_BYTES + (20 << 10)  # two reads of `tarfile` beyond
    assert outcomes[version].keys() == ARCHIVES.keys()
    for name, outcome in outcomes[version].items():
        if name == "good":
            continue
        assert outcome["error"], f"{version}: {name} was taken"
        assert EXPECTED.get(name, "") in outcome["error"], f"{version}: {name}"
        if name != "files without end":
            assert outcome["read_bytes"] <= most, f"{version}: {name}"


@pytest.mark.parametrize("version", PYTHONS)
def test_what_packages_hold_is_read_alike_on_every_python(outcomes: dict[str, dict[str, Any]], version: str) -> None:
    outcome = outcomes[version]["good"]
    assert outcome["error"] == ""
    long_name = "./usr/" + 2000 * "l"
    assert outcome["contents"] == {
        "./usr": -1, "./usr/a": 100_000, long_name: 513, "./usr/b": -1, "./usr/c": 0, "./usr/d": 512,
    }  # fmt: skip


def test_nothing_rests_on_what_is_private_in_tarfile() -> None:
    """A guard that replaced a private method was off in 3.13, where that method has another name."""
    tree = ast.parse(ARCHIVE.read_text())
    own = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_self(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            assert node.attr in own or node.attr == "__init__", f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.ClassDef):
            assert "tarfile" not in "".join(map(ast.dump, node.bases)), f"line {node.lineno}: a class of tarfile's"
        if isinstance(node, ast.keyword):
            assert node.arg != "tarinfo", "headers of a class of ours"


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def test_an_archive_of_sources_is_read_within_its_budget(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(b"".join(ARCHIVES["good"]()))
    with open_sources(path, Budget(str(path), GRANTED_BYTES, 60)) as archive:
        assert sum(len(archive.read(member)) for member in archive if member.isfile()) == 101_025
    with (
        pytest.raises(UsageError, match="unpacks to more than 0 MiB"),
        open_sources(path, Budget(str(path), 1000, 60)),
    ):
        pass
    path.write_bytes(header("x", b"0", 1 << 40) + bytes(1024))
    with (
        pytest.raises(UsageError, match="damaged archive of sources"),
        open_sources(path, Budget(str(path), GRANTED_BYTES, 60)) as archive,
    ):
        for member in archive:
            archive.read(member)
