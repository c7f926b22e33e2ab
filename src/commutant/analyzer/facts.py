"""What contradicts what among facts: congruence, linear arithmetic, and the bounds of types.

Simplifying asks of thousands of conjunctions of the same few hundred facts whether they can hold together. So each fact
gets a number, and its opposite the negative one; what they say is kept natively (crate `symbolic`, `facts`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from commutant._native import Cubes, FactTable
from commutant.analyzer.condition import Fact
from commutant.symbolic import REMAINDER, Term

Bounds = tuple[int | None, int | None]
"""The least and the greatest number that a term can be; None is no bound."""

_LARGEST = (1 << 63) - 1


class Facts:
    """Facts by number, and whether they can hold together; `bounds` are those of constants and functions by name."""

    def __init__(self, bounds: Mapping[str, Bounds] | None = None) -> None:
        self._bounds = bounds or {}
        self._table = FactTable()
        self._symbols: dict[Hashable, int] = {}
        self._terms: dict[Term, int] = {}
        self._atoms: dict[Hashable, int] = {}
        self._numbers: dict[Fact, int] = {}

    def number(self, fact: Fact) -> int:
        """A number for what the fact is about, negative if it does not hold."""
        known = self._numbers.get(fact)
        if known is None:
            atom = fact.atom()
            number = self._atoms.get(atom)
            if number is None:
                number = self._atoms[atom] = self._new_atom(fact)
            known = self._numbers[fact] = number if fact.holds else -number
        return known

    def numbers(self, facts: Iterable[Fact]) -> list[int]:
        """The number of each fact."""
        return [self.number(fact) for fact in facts]

    def contradictory(self, facts: Iterable[Fact]) -> bool:
        """Whether the facts cannot hold together (False may also mean that this was not found out)."""
        return self._table.contradictory(self.numbers(facts))

    def cubes(self, cubes: Iterable[Iterable[Fact]]) -> Cubes:
        """Conjunctions that others are compared with."""
        return self._table.cubes([self.numbers(cube) for cube in cubes])

    def first_compatible(self, numbers: list[int], cubes: Cubes, first: list[int]) -> int | None:
        """The place of a cube that can hold together with the facts of these numbers, or None; those at the places in
        `first` are asked first."""
        return self._table.first_compatible(numbers, cubes, first)

    def implied(self, facts: Iterable[Fact], cubes: Cubes) -> list[int]:
        """The places of the cubes that the facts imply."""
        return self._table.implied(self.numbers(facts), cubes)

    def _new_atom(self, fact: Fact) -> int:
        if fact.kind == "bool":
            return self._table.new_truth(self._term(fact.left))
        if fact.kind == "same":
            return self._table.new_same(self._term(fact.left), self._term(fact.right))
        terms = [(self._term(term), coefficient) for term, coefficient in fact.left]
        return self._table.new_comparison(fact.kind == "==", terms, fact.right)

    def _term(self, term: Term) -> int:
        known = self._terms.get(term)
        if known is None:
            symbol: Hashable = term[1] if term[0] == "apply" else term
            arguments = [self._term(argument) for argument in term[2]] if term[0] == "apply" else []
            low, high = self._bounds_of(term)
            known = self._terms[term] = self._table.new_term(
                self._symbols.setdefault(symbol, len(self._symbols)),
                arguments,
                None if low is None or low < -_LARGEST else low,
                None if high is None or high > _LARGEST else high,
            )
        return known

    def _bounds_of(self, term: Term) -> Bounds:
        if term[0] == "value" and type(term[1]) is int:
            return term[1], term[1]
        if term[0] not in ("constant", "apply"):
            return None, None
        if term[1] == REMAINDER and term[1] not in self._bounds and term[0] == "apply":
            return 0, term[2][1][1] - 1
        return self._bounds.get(term[1], (None, None))


def contradictory(facts: Iterable[Fact]) -> bool:
    """Whether facts cannot hold together, whatever the bounds of their types."""
    return Facts().contradictory(facts)
