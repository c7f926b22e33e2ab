"""Where a model's calls are written, found by reading the sources: nothing of the model runs."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from commutant.lang.load import SHIPPED

_LARGEST_SOURCE_BYTES = 4 << 20


def call_places(argument: str) -> dict[str, tuple[str, int]]:
    """For each call of the interface that an argument names, its file and line. The path is relative where the
    argument's was, and for shipped models begins at the package; empty if it names no source that can be read."""
    places: dict[str, tuple[str, int]] = {}
    for shown, path in _sources(argument):
        for name, line in _functions(path):
            places.setdefault(name, (shown, line))
    return places


def _sources(argument: str) -> Iterator[tuple[str, Path]]:
    """The files, the model's own first, each with the path by which it is shown."""
    if argument in SHIPPED:
        module = importlib.util.find_spec(SHIPPED[argument].partition(":")[0])
        if module is None or module.origin is None:
            return
        own = Path(module.origin)
        root = Path(__file__).resolve().parents[2]
        for path in [own, *sorted(own.parent.glob("*.py")), *sorted(own.parent.glob("*/*.py"))]:
            yield path.resolve().relative_to(root).as_posix(), path
        return
    text = argument.partition(":")[0]
    if text.endswith(".py"):
        yield text, Path(text)


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    """The decorated functions of a file; none of one that cannot be read."""
    try:
        source = path.read_bytes()
        tree = ast.parse(source) if len(source) <= _LARGEST_SOURCE_BYTES else ast.Module([], [])
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield node.name, node.lineno
