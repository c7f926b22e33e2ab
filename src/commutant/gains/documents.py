"""The document of `compare`, declared once."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from commutant.documents import Count, Document, Measure, Part

Calls = Annotated[tuple[str, ...], Meta(min_length=1)]
"""A set of calls, by name."""


class ExampleEntry(Part, frozen=True):
    """A state with arguments in which one interface's calls commute and the other's do not, in words. `confirmed`: both
    models, run on these values, show it; of a loss, the second one with every value of its own parameters."""

    first: str
    second: str
    confirmed: bool


class ChangedEntry(Part, frozen=True):
    """Situations gained or lost: how many, how many of them in every state and how many only in some, which values of
    the second interface's own parameters serve (the fewest of them; none do in what is lost), how many of the smallest
    examples were confirmed, and the smallest of all."""

    situations: Count
    wholly: Count
    in_part: Count
    parameters: tuple[str, ...]
    confirmed: Count
    example: ExampleEntry


class ComparedSetEntry(Part, frozen=True):
    """A set of calls of the first interface, and the calls of the second that correspond to them.

    `refused` counts the situations in which the first interface's calls do not commute, `commuting` those in which they
    do; `same`: both interfaces have the same code, so that nothing was explored.
    """

    calls: Calls
    calls_of_second: Calls
    same: bool
    refused: Count
    commuting: Count
    gained: ChangedEntry | None
    lost: ChangedEntry | None


class CallChangeEntry(Part, frozen=True):
    """What a changed call has to do with: the situations gained and lost in sets in which it is the only changed call,
    and in those in which it meets another changed one."""

    call: str
    call_of_second: str
    parameters: tuple[str, ...]
    gained_alone: Count
    gained_with_others: Count
    lost_alone: Count
    lost_with_others: Count


class CompareDocument(Document, frozen=True):
    """What one interface gains and loses over another; `only_first` and `only_second` name the calls that correspond to
    none."""

    first: str
    second: str
    size: Annotated[int, Meta(ge=1)]
    seconds: Measure
    gained: Count
    lost: Count
    unconfirmed: Count
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    sets: tuple[ComparedSetEntry, ...]
    changes: tuple[CallChangeEntry, ...]
