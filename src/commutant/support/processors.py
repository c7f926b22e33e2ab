"""How many processors there are to work with."""

from __future__ import annotations

import os


def available_processors() -> int:
    """The processors that this process may use, at least 1 (`sched_getaffinity`)."""
    return len(os.sched_getaffinity(0))
