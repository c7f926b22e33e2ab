"""Python's search for cycles, paused where millions of objects are made and none in a cycle.

They would be looked through again and again, which takes more time than all the rest of reading a corpus, and a fifth
of what it takes to make a page.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """Pauses the search, and goes on with it afterwards if it was on before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
