"""How far work is: what every function that takes long says now and then to those who asked for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How many pieces are done, of how many (0 where that is not known), and what is being done."""

    done: int = 0
    total: int = 0
    text: str = ""


OnProgress = Callable[[Progress], None]
"""The parameter `on_progress` of functions that take long; what it raises ends them."""


def no_progress(progress: Progress) -> None:
    """For those who do not want to know."""
