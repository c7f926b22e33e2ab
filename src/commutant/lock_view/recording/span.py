"""Which part of a program's run is recorded, where not all of it is: given by its annotations, by a signal, or by time.

The recorder looks at the first byte of a file that it shares with this process: not 0 while a span lasts.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SPAN_SIGNAL = signal.SIGUSR2
"""Begins a span, and ends it."""


@dataclass(slots=True)
class RecordedSpan:
    """A span of a run: between annotations, between signals to this process, or a number of seconds after the start
    for another number of seconds. `announce` is given what a user must know to begin and end it."""

    by: Literal["annotations", "signal", "time"]
    from_seconds: float = 0.0
    for_seconds: float = 0.0
    announce: Callable[[str], None] = print
    _file: Path | None = None

    @property
    def hint(self) -> str:
        """What to do if it never began."""
        return {
            "annotations": "expected it to execute COMMUTANT_LOCK_SPAN_BEGIN (`commutant locks --annotations`)",
            "signal": f"expected the signal {SPAN_SIGNAL.name} to this process while it runs",
            "time": f"expected it to run for longer than {self.from_seconds:g} s",
        }[self.by]

    def prepare(self, folder: Path) -> str:
        """Makes the switch in this folder; gives the recorder's arguments."""
        self._file = folder / "span"
        self._file.write_bytes(b"\0")
        return f"span={self._file},span_annotations={'on' if self.by == 'annotations' else 'off'}"

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Begins and ends the span while the program runs, if this process is to."""
        if self.by == "time":
            with self._by_time():
                yield
        elif self.by == "signal":
            before = signal.signal(SPAN_SIGNAL, lambda *_: self._switch(not self._is_on()))
            self.announce(f"`kill -{SPAN_SIGNAL.name.removeprefix('SIG')} {os.getpid()}` begins the span, and ends it")
            try:
                yield
            finally:
                signal.signal(SPAN_SIGNAL, before)
        else:
            yield

    @contextmanager
    def _by_time(self) -> Iterator[None]:
        ended = threading.Event()

        def follow() -> None:
            if not ended.wait(self.from_seconds):
                self._switch(True)
                if not ended.wait(self.for_seconds):
                    self._switch(False)

        thread = threading.Thread(target=follow, name="span", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _is_on(self) -> bool:
        assert self._file is not None
        return self._file.read_bytes() != b"\0"

    def _switch(self, on: bool) -> None:
        assert self._file is not None
        with self._file.open("r+b") as file:  # never shorter: it is mapped
            file.write(b"\1" if on else b"\0")
        self.announce("the span has begun" if on else "the span has ended")
