"""Put and max: samples are recorded, and the largest so far is returned (paper, section 3.6).

`put(1), put(1), max` commutes in every order if 1 was put before, or will have been by the other put. No one
implementation is free of conflicts in all of it: maxima per core serve the two puts, and then max reads what they
write; a shared maximum that put only reads where it is not less serves the second put and max, and then the first put
writes what both read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from commutant.lang import Interface, Invocation, Range, call, invoke

Sample = Annotated[int, Range(0, None)]


class PutMax(Interface):
    """The largest sample so far; 0 is the least there is."""

    interface_name = "put-max"

    largest: Sample

    @call
    def put(self, value: Sample) -> None:
        """Records a sample."""
        if value > self.largest:
            self.largest = value

    @call
    def max(self) -> int:
        """The largest sample."""
        return self.largest

    def setup(self) -> Iterable[Invocation]:
        """Puts what is the largest."""
        if self.largest > 0:
            yield invoke("put", value=self.largest)

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Asks for it."""
        yield invoke("max")
