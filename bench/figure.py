"""A measured figure: all its samples, the command that makes it, and the goal that it is held against."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure has to reach: its median is `at_least` or `at_most` this bound, in the figure's unit."""

    kind: str
    bound: float

    def __post_init__(self) -> None:
        assert self.kind in ("at_least", "at_most"), self.kind

    def met_by(self, median: float) -> bool:
        """Whether a median reaches the goal."""
        return median >= self.bound if self.kind == "at_least" else median <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.kind == 'at_least' else '≤'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the page: `samples` are repeated measurements of `name` in `unit`, made by `command`."""

    name: str
    unit: str
    samples: tuple[float, ...]
    command: str
    goal: Goal | None = None

    def __post_init__(self) -> None:
        assert self.samples, f"{self.name}: nothing was measured"

    @property
    def median(self) -> float:
        """The middle of the samples."""
        return statistics.median(self.samples)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        return None if self.goal is None else self.goal.met_by(self.median)

    @property
    def goal_text(self) -> str:
        """The goal, and whether it is reached; empty without a goal."""
        return "" if self.goal is None else f"{self.goal}, {'reached' if self.met else '**missed**'}"

    def to_json(self) -> dict[str, Any]:
        """The figure as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Figure:
        """The figure that `to_json` wrote."""
        goal = document["goal"]
        return cls(
            name=document["name"],
            unit=document["unit"],
            samples=tuple(document["samples"]),
            command=document["command"],
            goal=None if goal is None else Goal(goal["kind"], goal["bound"]),
        )


def number(value: float) -> str:
    """A number with three significant digits and without an exponent: 0.0123, 4.56, 1780."""
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"
