"""Conditions in the model's own names: literals over terms, and cubes (conjunctions) of them.

Paths speak of numbered unknowns, and the same unknown has another number on another path. A `Fact` speaks of terms such
as `names_has(rename.0.src)`, so facts of different paths can be compared. `contradictory` decides conjunctions by
congruence closure and linear integer arithmetic. It may miss a contradiction that follows only from a case split over
integers; nothing relies on finding all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from commutant.analyzer.document import FactEntry, SummandEntry, TermEntry
from commutant.lang import Type
from commutant.symbolic import Context, Decision, Literal, Term


class Fact(NamedTuple):
    """A literal over terms. `kind`: `bool` (`left` is a term), `same` (two terms of one sort), `<=` or `==` (`left` is
    a tuple of (integer term, coefficient), `right` a constant: their sum against 0). `holds` is its side."""

    kind: str
    left: Any
    right: Any
    holds: bool

    def negated(self) -> Fact:
        """The opposite fact."""
        return Fact(self.kind, self.left, self.right, not self.holds)

    def atom(self) -> Hashable:
        """What the fact is about, whichever its side and however it is written down."""
        if self.kind == "same":
            return (self.kind, frozenset((self.left, self.right)))
        return (self.kind, self.left if self.kind == "bool" else frozenset(self.left), self.right)


Conjunction = tuple[Fact, ...]
"""A conjunction of facts."""

Sum = tuple[dict[Term, int], int]
"""Coefficients of integer terms, and a constant."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One explored path: its facts in the order decided, whether the model's restrictions admit it, and, where the
    calls do not commute on it, what a caller could tell apart; and the types of the choices that it made, by name."""

    facts: Conjunction
    feasible: bool
    difference: str | None
    choices: tuple[tuple[str, Type], ...] = ()

    @property
    def commutes(self) -> bool:
        """Whether the calls commute on this path."""
        return self.feasible and self.difference is None


def fact_entry(fact: Fact) -> FactEntry:
    """A fact as the document of an analysis has it."""
    if fact.kind == "bool":
        return FactEntry("bool", fact.holds, term=_term(fact.left))
    if fact.kind == "same":
        return FactEntry("same", fact.holds, left=_term(fact.left), right=_term(fact.right))
    return FactEntry(
        "at_most_zero" if fact.kind == "<=" else "zero", fact.holds, terms=_summands(fact.left), constant=fact.right
    )


def _term(term: Term) -> TermEntry:
    if term[0] == "constant":
        return TermEntry(constant=term[1])
    if term[0] == "apply":
        return TermEntry(function=term[1], arguments=tuple(_term(argument) for argument in term[2]))
    if term[0] == "sum":
        return TermEntry(terms=_summands(term[1]), constant=term[2])
    return TermEntry(value=term[1])


def _summands(terms: Sequence[tuple[Term, int]]) -> tuple[SummandEntry, ...]:
    return tuple(SummandEntry(_term(term), coefficient) for term, coefficient in terms)


def facts_of(context: Context, decisions: Sequence[Decision]) -> Conjunction:
    """The decisions of a path as facts."""
    return tuple(_fact(context, literal, holds) for literal, holds in decisions)


def _fact(context: Context, literal: Literal, holds: bool) -> Fact:
    if literal.kind == "bool":
        return Fact("bool", resolve(context, context.bool_terms[literal.left]), None, holds)
    if literal.kind == "same":
        left = resolve(context, context.sort_terms[literal.left])
        right = resolve(context, context.sort_terms[literal.right])
        return Fact("same", left, right, holds)
    coefficients, constant = literal.left
    terms = tuple((resolve(context, context.int_terms[v]), c) for v, c in coefficients)
    return Fact(literal.kind, terms, constant, holds)


def resolve(context: Context, term: Term) -> Term:
    """The term with numbered integer unknowns replaced by the terms that they stand for."""
    if term[0] == "apply":
        arguments = term[2] if isinstance(term[2], tuple) else term[2].arguments
        return ("apply", term[1], tuple(resolve(context, argument) for argument in arguments))
    if term[0] == "linear":
        coefficients, constant = term[1]
        terms = tuple((resolve(context, context.int_terms[v]), c) for v, c in coefficients)
        return (
            terms[0][0] if terms and len(terms) == 1 and terms[0][1] == 1 and not constant else ("sum", terms, constant)
        )
    return term


def as_sum(fact: Fact) -> Sum:
    """What a `==` fact compares with 0, or what a `<=` fact, on the side that it takes, says is at most 0."""
    sign = -1 if fact.kind == "<=" and not fact.holds else 1
    return {term: sign * coefficient for term, coefficient in fact.left}, sign * fact.right + (1 if sign < 0 else 0)


def sum_term(terms: Mapping[Term, int], constant: int) -> Term:
    """The simplest term for a sum."""
    present = tuple((term, c) for term, c in sorted(terms.items(), key=repr) if c)
    if not present:
        return ("value", constant)
    return present[0][0] if len(present) == 1 and present[0][1] == 1 and not constant else ("sum", present, constant)


def rename_constants(cube: Conjunction, names: Mapping[str, str]) -> Conjunction:
    """The cube with some constants under other names."""

    def rename(term: Term) -> Term:
        if term[0] == "constant":
            return ("constant", names.get(term[1], term[1]))
        if term[0] == "apply":
            return ("apply", term[1], tuple(rename(argument) for argument in term[2]))
        if term[0] == "sum":
            return ("sum", tuple((rename(inner), c) for inner, c in term[1]), term[2])
        return term

    def renamed(fact: Fact) -> Fact:
        if fact.kind == "bool":
            return Fact("bool", rename(fact.left), None, fact.holds)
        if fact.kind == "same":
            return Fact("same", rename(fact.left), rename(fact.right), fact.holds)
        return Fact(fact.kind, tuple((rename(term), c) for term, c in fact.left), fact.right, fact.holds)

    return tuple(renamed(fact) for fact in cube) if names else cube


def constants_of(fact: Fact) -> Iterable[str]:
    """The names of all constants (arguments, plain attributes, choices) in the fact."""
    for term in _terms_of(fact):
        yield from _constants(term)


def _terms_of(fact: Fact) -> list[Term]:
    if fact.kind == "bool":
        return [fact.left]
    if fact.kind == "same":
        return [fact.left, fact.right]
    return [term for term, _ in fact.left]


def _constants(term: Term) -> Iterable[str]:
    if term[0] == "constant":
        yield term[1]
    elif term[0] == "apply":
        for argument in term[2]:
            yield from _constants(argument)
    elif term[0] == "sum":
        for inner, _ in term[1]:
            yield from _constants(inner)
