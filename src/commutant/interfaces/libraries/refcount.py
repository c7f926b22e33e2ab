"""A shared object that lives as long as somebody has a reference, as smart pointers count them.

In `refcount`, nothing tells how many references there are, so that those who take and give back
their own need not meet. In `refcount-exact`, `count` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commutant.lang import Errno, Interface, Invocation, Set, Sort, call, invoke, unused


class Reference(Sort, opaque=True, word="reference"):
    """A reference, picked by the library."""


class ReferenceCount(Interface):
    """References to one object, which its maker keeps alive."""

    interface_name = "refcount"

    references: Set[Reference]

    @call
    def acquire(self) -> Reference:
        """One more reference."""
        reference = unused(Reference)
        self.references.add(reference)
        return reference

    @call
    def release(self, reference: Reference) -> Errno | None:
        """Gives a reference back; one that was given back before is none."""
        if reference not in self.references:
            return Errno.EINVAL
        self.references.remove(reference)
        return None

    @call
    def read(self, reference: Reference) -> Errno | bool:
        """Looks at the object through a reference."""
        return True if reference in self.references else Errno.EINVAL

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterable[Invocation]:
        """Reads by every reference that there is."""
        for reference in self.references:
            yield invoke("read", reference=reference)


class ExactReferenceCount(ReferenceCount):
    """The same, and everybody may ask how many there are."""

    interface_name = "refcount-exact"

    @call
    def count(self) -> int:
        """How many references there are, but for the maker's."""
        return len(self.references)
