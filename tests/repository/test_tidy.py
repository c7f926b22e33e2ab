"""What a reader may expect of every file, and what no linter checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.repository.tree import ROOT, python_files, texts, tracked

MACHINE_PATH = re.compile(r"(?<![\w.\-])/(?:root|work|home/\w+)/")
REGISTRY_HOST = re.compile(r"pypi\.or[g]|pythonhosted\.or[g]|crates\.i[o]|proxy\.golang\.or[g]")
LEFTOVER = re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X])\b|\b(?:todo|unimplemented)!\(|NotImplementedErro[r]")
GENERATED = {".lock", ".json"}
MADE_BY_BENCH = Path("docs/notes/benchmark-samples.md")
"""Every sample of every figure: a table that grows with what is measured."""


def test_no_file_is_longer_than_800_lines() -> None:
    long = {
        str(path): text.count("\n")
        for path, text in texts()
        if path.suffix not in GENERATED and path != MADE_BY_BENCH and text.count("\n") > 800
    }
    assert not long


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY_HOST, LEFTOVER], ids=["path", "host", "leftover"])
def test_nothing_of_a_developers_desk_is_left(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        if path.suffix != ".lock"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_texts_end_with_one_newline_and_have_no_carriage_returns() -> None:
    wrong = [str(path) for path, text in texts() if text and (not text.endswith("\n") or "\r" in text)]
    assert not wrong


def test_nothing_built_is_tracked() -> None:
    built = {".so", ".pyc", ".whl", ".rlib", ".parquet"}
    assert not [str(file.relative_to(ROOT)) for file in tracked() if file.suffix in built]


@pytest.mark.parametrize("file", python_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_python_module_opens_with_its_idea(file: Path) -> None:
    docstring = ast.get_docstring(ast.parse(file.read_text()))
    assert docstring is not None, f"{file.relative_to(ROOT)} has no docstring"
    assert len(docstring.split()) >= 3, f"{file.relative_to(ROOT)}: {docstring!r} says nothing"


def test_every_rust_module_opens_with_its_idea() -> None:
    without = [
        str(path)
        for path, text in texts()
        if path.suffix == ".rs" and not re.match(r"(#!\[[^\n]*\]\n|//[^!\n][^\n]*\n|\s)*//!", text)
    ]
    assert not without


def test_every_module_of_the_package_is_used() -> None:
    """A module is used if another one imports it, or names it or its package (`f"package.{module}"`) in a string."""
    package = ROOT / "src" / "commutant"
    modules = {_dotted(file): file for file in python_files("src/commutant")}
    users = {file: _mentions(file) for file in [*modules.values(), *python_files("scripts")]}
    entry_points = {"commutant.cli", "commutant.__main__"}
    orphans = [
        name
        for name, file in modules.items()
        if file.name != "__init__.py"
        and name not in entry_points
        and not any(_is_named(name, mentioned) for user, mentioned in users.items() if user != file)
    ]
    assert not orphans, f"nothing in {package.name} uses {', '.join(orphans)}"


def _is_named(module: str, mentioned: set[str]) -> bool:
    return module in mentioned or f"{module.rpartition('.')[0]}." in mentioned


def _dotted(file: Path) -> str:
    parts = file.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _mentions(file: Path) -> set[str]:
    """The dotted names that a module imports, or names in strings as `package.module` or `package.module:object`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("commutant."):
            found.add(node.value.partition(":")[0])
    return found
