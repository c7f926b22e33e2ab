"""The document of `analyze`, and how an analysis is kept in the cache: each declared once."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from commutant.documents import Count, Document, Measure, Part

Calls = Annotated[tuple[str, ...], Meta(min_length=1)]
"""A set of calls, by name."""


class TermEntry(Part, frozen=True):
    """A constant (an argument `<call>.<index>.<parameter>` or an attribute), a function of the state under keys, a
    value, or a sum."""

    constant: str | int | UnsetType = UNSET
    function: str | UnsetType = UNSET
    arguments: tuple[TermEntry, ...] | UnsetType = UNSET
    terms: tuple[SummandEntry, ...] | UnsetType = UNSET
    value: int | bool | UnsetType = UNSET


class SummandEntry(Part, frozen=True):
    """A term of a sum."""

    term: TermEntry
    coefficient: int


class FactEntry(Part, frozen=True):
    """`bool`: the term is true; `same`: left and right are one value; `at_most_zero`, `zero`: the sum is. If not
    `holds`, the opposite."""

    kind: Literal["at_most_zero", "bool", "same", "zero"]
    holds: bool
    term: TermEntry | UnsetType = UNSET
    left: TermEntry | UnsetType = UNSET
    right: TermEntry | UnsetType = UNSET
    terms: tuple[SummandEntry, ...] | UnsetType = UNSET
    constant: int | UnsetType = UNSET


class ConditionEntry(Part, frozen=True):
    """A case in which the calls commute: in words, and as facts that hold together."""

    text: str
    facts: tuple[FactEntry, ...]


class SetEntry(Part, frozen=True):
    """A set of calls: how many paths were explored, on how many the calls commute, and how many questions stayed open.

    `conditions` are there for sets of at most two calls, or for one that is named.
    """

    calls: Calls
    paths: Count
    commutative_paths: Count
    unknown: Count
    conditions: tuple[ConditionEntry, ...] | UnsetType = UNSET
    smt2: Annotated[str, Meta(description="The whole condition as an SMT-LIB script.")] | UnsetType = UNSET


class AnalysisDocument(Document, frozen=True):
    """An analysis of all sets of one size."""

    interface: str
    size: Annotated[int, Meta(ge=1)]
    seconds: Measure
    sets: tuple[SetEntry, ...]


class KeptSet(Part, frozen=True):
    """A set of calls as it is kept: with what `SetAnalysis` knows of its conditions."""

    calls: Calls
    paths: Count
    commutative_paths: Count
    unknown: Count
    conditions: list[str] | None
    smt2: str | None
    data: tuple[ConditionEntry, ...] | None
