"""What the verbs print: results on standard output, messages and progress on standard error.

A reader that goes away (`commutant report RUN | head`) is not an error: what it does not want is dropped, the verb runs
to its end and the exit code says what the verb found. A full disk behind standard output is one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from commutant.documents import text
from commutant.support import Progress, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

_SHOW_AFTER_SECONDS = 0.4
_REFRESH_SECONDS = 0.1
_LINE_SECONDS = 60.0
"""Where there is no terminal, a line so often says how far the work is, whatever part of it that is."""
_line_printed_at = time.monotonic()


_PLAIN_SIGNS = str.maketrans(
    {
        "∥": "||",
        "→": "->",
        "►": ">",
        "≠": "!=",
        "≤": "<=",
        "≥": ">=",
        "…": "...",
        "×": "x",
        "·": ".",
        "–": "-",
        **dict.fromkeys("─━╶╴╸╺", "-"),
        **dict.fromkeys("│┃", "|"),
        **dict(zip("▁▂▃▄▅▆▇█", ".:-=+*%@", strict=True)),
    }
)
"""What stands for signs that a terminal's encoding does not have, as in the C locale."""


class OutputError(Exception):
    """Standard output cannot be written."""


class _GuardedStream:
    """A text stream that swallows the end of its reader and names every other failure."""

    def __init__(self, stream: TextIO | None, name: str) -> None:
        self._stream = stream
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str) -> int:
        if self._stream is None:  # closed by the parent, as with `>&-`
            return len(text)
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            text = text.translate(_PLAIN_SIGNS)
            return self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        except OSError as error:
            self._failed(error)
        return len(text)

    def flush(self) -> None:
        if self._stream is None:
            return
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if self._stream is not None:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, self._stream.fileno())  # so that what is buffered does not fail again at exit
            os.close(devnull)
        if not isinstance(error, BrokenPipeError):
            raise OutputError(f"cannot write {self._name}: {error.strerror or error}") from error


def begin_minute() -> None:
    """The work begins: without a terminal, the first line that says how far it is comes after a minute."""
    global _line_printed_at
    _line_printed_at = time.monotonic()


def guard_streams() -> None:
    """Puts the guard around this process's standard streams; a second call changes nothing."""
    if not isinstance(sys.stdout, _GuardedStream):
        sys.stdout = _GuardedStream(sys.stdout, "standard output")
    if not isinstance(sys.stderr, _GuardedStream):
        sys.stderr = _GuardedStream(sys.stderr, "standard error")


_for_results: TextIO | None = None
"""Standard output while `sys.stdout` leads elsewhere."""


@contextlib.contextmanager
def results_alone() -> Iterator[None]:
    """Standard output has only, until the end, what this module writes there: what a model or an executor prints, also
    in processes that are forked from this one, goes to standard error, and not into the middle of a JSON document.
    """
    global _for_results
    _for_results, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, _for_results = _for_results, None


def _results() -> TextIO:
    return _for_results or sys.stdout


def write(text: str) -> None:
    """Writes a result to standard output."""
    _results().write(text)


def write_path(path: Path) -> None:
    """Tells on standard output where a result was written: a line, whatever the path's name holds."""
    write(one_line(str(path)) + "\n")


def write_document(document: object) -> None:
    """Writes one JSON document to standard output."""
    write(text(document))


def flush() -> None:
    """Makes sure that what was written has gone out; raises OutputError if it cannot."""
    _results().flush()
    sys.stderr.flush()


def message(text: str) -> None:
    """Tells the user something on standard error, on one line."""
    sys.stderr.write(one_line(text) + "\n")
    sys.stderr.flush()


def error(text: str) -> None:
    """Tells the user on standard error what is wrong, on one line."""
    with contextlib.suppress(OutputError):  # then there is nowhere left to say it; the exit code still does
        message(f"commutant: {text}")


def one_line(text: str) -> str:
    """The text on one line, with control characters (which foreign names may hold) shown as escapes."""
    joined = " ".join(text.split("\n"))
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "replace").decode() for char in joined)


def results() -> Console:
    """A rich console on standard output, for the report functions."""
    from rich.console import Console

    # NO_COLOR (no-color.org) is taken to mean plain text: no bold either.
    plain = {"color_system": None} if os.environ.get("NO_COLOR") else {}
    return Console(file=_results(), highlight=False, **plain)  # type: ignore[arg-type]


class ProgressBar:
    """A progress bar on standard error for what takes longer than a moment; without a terminal, a line a minute.

    Use as a context manager, and as `on_progress` of what takes long. A text stands after the bar; where nothing is
    counted, it is shown at once.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._started = time.monotonic()
        self._last = 0.0
        self._wanted = sys.stderr.isatty()
        self._bar: RichProgress | None = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Shows how far it is."""
        done, total, text = progress.done, progress.total, progress.text
        if not done and not total:
            self._say(text)
            return
        now = time.monotonic()
        if not self._wanted:
            share = f" ({percent(done / total)})" if total else ""
            self._say_line(now, f"{done:,}{f' of {total:,}' if total else ''}{share}{f', {text}' if text else ''}")
            return
        if now - self._started < _SHOW_AFTER_SECONDS:
            return
        if now - self._last < _REFRESH_SECONDS and done != total:
            return
        self._last = now
        if self._bar is None:
            self._start()
        assert self._bar is not None
        self._bar.update(self._task, completed=done, total=total or None, detail=text)

    def _say(self, text: str) -> None:
        if self._wanted:
            if self._bar is None:
                self._start()
            assert self._bar is not None
            self._bar.update(self._task, detail=text)
        else:
            self._say_line(time.monotonic(), text)

    def _say_line(self, now: float, text: str) -> None:
        global _line_printed_at
        if now - _line_printed_at >= _LINE_SECONDS:
            _line_printed_at = now
            message(f"{self._title}: {text}")

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
            console=Console(file=sys.stderr),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(self._title, total=None, detail="")
        self._bar.start()
