"""One bit: the smallest interface with calls that commute in some states and not in others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commutant.lang import Interface, Invocation, call, invoke


class Flag(Interface):
    """A flag that is set, cleared and tested."""

    is_set: bool

    @call
    def set(self) -> None:
        """Sets it."""
        self.is_set = True

    @call
    def clear(self) -> None:
        """Clears it."""
        self.is_set = False

    @call
    def test(self) -> bool:
        """Whether it is set."""
        return self.is_set

    def setup(self) -> Iterable[Invocation]:
        """Sets what is set."""
        if self.is_set:
            yield invoke("set")

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Tests it."""
        yield invoke("test")
