"""The document of `generate`, and what is kept of a set in the cache next to its tests: each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from commutant.corpus import Level, Untested
from commutant.documents import Count, Document, Measure, Part


class GeneratedSetEntry(Part, frozen=True):
    """A set of calls: what its analysis counted (see the document of `analyze`), and its tests."""

    calls: Annotated[tuple[str, ...], Meta(min_length=1)]
    paths: Count
    commutative_paths: Count
    unknown: Count
    tests: Count
    left_out: Count


class GenerateDocument(Document, frozen=True):
    """An analysis with the number of tests per set; `corpus` is the file that was written.

    `left_out` counts the tests of level `conflict` that level `cover` leaves out at most: some of them might have no
    set-up, which is not looked for. Per set of calls, `without_setup` counts the classes that have no test, and
    `untested` says why.
    """

    interface: str
    size: Annotated[int, Meta(ge=1)]
    seconds: Measure
    level: Level
    corpus: str
    tests: Count
    left_out: Count
    without_setup: Mapping[str, Count]
    untested: Mapping[str, tuple[Untested, ...]]
    sets: tuple[GeneratedSetEntry, ...]


class KeptCounts(Part, frozen=True):
    """What the first line of the kept tests of a set says (see `GeneratedSet`)."""

    calls: tuple[str, ...]
    tests: Count
    left_out: Count
    paths: Count
    commutative_paths: Count
    untested: tuple[Untested, ...]
    has_searched: bool
