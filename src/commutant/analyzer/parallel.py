"""Independent pieces of work over processes, in order, with progress; small work stays in this process.

Workers are forked, so that models loaded from files need no second loading. They leave SIGINT to the parent, which ends
them and lets the interrupt through.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

W = TypeVar("W")
R = TypeVar("R")

Progress = Callable[[int, int], None]
"""Told how many pieces are done, of how many."""

FEW = 24
"""With fewer pieces than this, starting processes costs more than it gains."""


def map_in_processes(
    function: Callable[[W], R], pieces: Sequence[W], jobs: int, progress: Progress | None = None
) -> list[R]:
    """`[function(piece) for piece in pieces]` over `jobs` processes; the first exception of a piece is raised."""
    results: list[R] = []
    if jobs <= 1 or len(pieces) < FEW:
        for piece in pieces:
            results.append(function(piece))
            if progress:
                progress(len(results), len(pieces))
        return results
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), initializer=_ignore_interrupts)
    try:
        chunk = max(1, len(pieces) // (jobs * 8))
        for result in pool.map(function, pieces, chunksize=chunk):
            results.append(result)
            if progress:
                progress(len(results), len(pieces))
    except BaseException:
        # A piece may take long, or for ever: whoever waits for nothing any more ends the workers.
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
    return results


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
