"""Errors of a model's annotations, with the file and line where they are written."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from commutant.support import UsageError


@contextmanager
def errors_at(place: Callable[[], str]) -> Iterator[None]:
    """A UsageError that leaves the `with` block begins with the place, unless it says one already."""
    try:
        yield
    except UsageError as error:
        if error.is_placed:
            raise
        raise placed_error(place(), str(error)) from None


def placed_error(place: str, text: str) -> UsageError:
    """A UsageError that begins with the place where it is."""
    error = UsageError(f"{place}{text}")
    error.is_placed = bool(place)
    return error


def place_of_function(function: Any) -> str:
    """`FILE:LINE: ` of a function; empty for what is none."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code is not None else ""


def place_of_annotation(owner: type, name: str) -> str:
    """`FILE:LINE: ` of an annotated attribute of a class or its bases; empty where there is no text to read."""
    for base in owner.__mro__:
        if name in inspect.get_annotations(base):
            break
    try:
        lines, first = inspect.getsourcelines(base)
        (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
        file = inspect.getsourcefile(base)
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return f"{file}:{first + node.lineno - 1}: "
    return ""
