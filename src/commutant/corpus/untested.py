"""Classes for which no test can be made: how many, why, and a state for which it was tried."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from commutant.documents import Part

MAX_REASONS = 8
"""This many reasons are given for one set of calls; what is beyond is counted with the last."""


class Untested(Part, frozen=True):
    """Classes of one set without a test for the same reason; `example` is the state that was wanted for the first."""

    reason: str
    classes: Annotated[int, Meta(ge=1)]
    example: str

    def __str__(self) -> str:
        """`2 classes without a test: setup() returned None (wanted: names {n0: i0})`."""
        wanted = f" (wanted: {self.example})" if self.example else ""
        return f"{self.classes:,} {'class' if self.classes == 1 else 'classes'} without a test: {self.reason}{wanted}"


class UntestedClasses:
    """The classes of one set without a test, counted by reason."""

    def __init__(self) -> None:
        self._by_reason: dict[str, Untested] = {}

    def add(self, reason: str, example: str) -> None:
        """One more class."""
        if reason not in self._by_reason and len(self._by_reason) >= MAX_REASONS:
            reason = next(reversed(self._by_reason))
        before = self._by_reason.get(reason)
        one = Untested(reason, 1, example) if before is None else Untested(reason, before.classes + 1, before.example)
        self._by_reason[reason] = one

    @property
    def found(self) -> tuple[Untested, ...]:
        """All of them, by reason."""
        return tuple(self._by_reason.values())
