"""Where a verb's result goes (standard output or a new file), and the runs and suppressions that it is made from."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from commutant.cli import console
from commutant.support import RunError, UsageError, plural, whole_file

if TYPE_CHECKING:
    from rich.console import Console

    from commutant.compare import Suppressions
    from commutant.runs import Run

FILE_WIDTH = 120
"""Columns of a text that goes to a file."""


def refuse_existing(path: Path | None) -> None:
    """Raises UsageError if `-o` names something that exists, or a file in no folder, or in one that cannot be written;
    for the time before the work, which would be lost."""
    if path is None:
        return
    if path.exists():
        raise UsageError(f"{path} exists already; -o takes the name of a new file")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is no folder; -o takes the name of a new file in one that exists")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}; nothing was run") from error


def put(pieces: Iterable[str], path: Path | None) -> None:
    """Writes the pieces to standard output, or to a new file, all of it or nothing; raises UsageError or RunError."""
    if path is None:
        for piece in pieces:
            console.write(piece)
        return
    refuse_existing(path)
    try:
        with whole_file(path) as file:
            file.writelines(piece.encode() for piece in pieces)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    console.write_path(path)


def draw(paint: Callable[[Console], None], path: Path | None) -> None:
    """Lets `paint` print on standard output, or into a new file as plain text; errors as with `put`."""
    from rich.console import Console

    if path is None:
        paint(console.results())
        return
    text = io.StringIO()
    paint(Console(file=text, width=FILE_WIDTH, highlight=False, color_system=None))
    put([text.getvalue()], path)


def say_if_interrupted(run: Run) -> None:
    """Tells on standard error that a run is not complete."""
    if not run.complete:
        console.message(f"{run.path} was interrupted after {run.summary.tests:,} of {plural(run.info.tests, 'test')}")


def say_if_named_otherwise(*runs: Run) -> None:
    """Tells on standard error which runs that are compared are so old that what they saw can count as new or gone."""
    from commutant.mtrace import NAMING

    for run in runs:
        if run.info.naming < NAMING:
            console.message(
                f"note: {run.path} is of an earlier version (commutant {run.info.commutant}), which named locks and "
                "generic types otherwise: what it calls so can count as new or gone though it stayed; "
                f"`commutant repeat {run.path / 'run.json'}` makes it with today's names"
            )


def load_suppressions(path: Path | None) -> Suppressions:
    """The suppressions of a file, none without one; expired ones are named on standard error."""
    from commutant.compare import Suppressions, read_suppressions

    if path is None:
        return Suppressions()
    suppressions = read_suppressions(path)
    for entry in suppressions.expired:
        console.message(f"{path}: expired on {entry.expires}: {entry.title} ({entry.reason})")
    return suppressions


def say_unused(path: Path | None, suppressions: Suppressions) -> None:
    """Tells on standard error which suppressions meant nothing; after they were applied."""
    for entry in suppressions.unused:
        console.message(f"{path}: means no finding any more: {entry.title} ({entry.reason})")


def patches_of(run: Run) -> str:
    """The patches of the kernel that a run is of, in words after its release; empty if there are none."""
    build = run.info.target_description.get("kernel_build")
    patches = build.get("patches") if isinstance(build, dict) else None
    titles = [str(one.get("title")) for one in patches if isinstance(one, dict)] if isinstance(patches, list) else []
    return f" with {'; '.join(repr(title) for title in titles)}" if titles else ""
