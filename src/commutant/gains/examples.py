"""One state and arguments as two interfaces have them, and what concrete runs of both models show of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

from commutant.lang import BoolType, EnumType, IntType, Type
from commutant.testgen import Example, commutes_concretely, difference

MAX_TRIED = 1024
"""This many values of parameters are tried; an example that has more is not confirmed."""


class TwoExamples(NamedTuple):
    """One state and arguments, as each of the two interfaces has them."""

    first: Example
    second: Example

    @property
    def size(self) -> tuple[int, int, int]:
        """Smaller is simpler."""
        return self.first.size

    @property
    def shows_gain(self) -> bool:
        """Whether both models, run on these values, show that only the second one's calls commute."""
        return difference(self.first) is not None and commutes_concretely(self.second)

    def shows_loss(self, own: Sequence[Collection[str]]) -> bool:
        """Whether both models show that only the first one's calls commute, whatever values the second one's `own`
        parameters have, of which these are the names per call. All truth values, members and numbers of a range are
        tried; a parameter of any other type keeps its value."""
        if not commutes_concretely(self.first):
            return False
        signatures = [type(self.second.state).signature(call) for call, _ in self.second.calls]
        places = [
            (number, name, values)
            for number, names in enumerate(own)
            for name in sorted(names)
            if (values := _values_of(signatures[number].parameters[name]))
        ]
        if prod(len(values) for _, _, values in places) > MAX_TRIED:
            return False
        return all(difference(one) is not None for one in self._with(places))

    def _with(self, places: Sequence[tuple[int, str, Sequence[Any]]]) -> Iterator[Example]:
        """The second example with each combination of values at these places."""
        for chosen in product(*(values for _, _, values in places)):
            given = [dict(arguments) for _, arguments in self.second.calls]
            for (number, name, _), value in zip(places, chosen, strict=True):
                given[number][name] = value
            calls = tuple((call, one) for (call, _), one in zip(self.second.calls, given, strict=True))
            yield replace(self.second, calls=calls)


def _values_of(type_: Type) -> Sequence[Any]:
    """All values of a type; none where they are not listed."""
    if isinstance(type_, BoolType):
        return (False, True)
    if isinstance(type_, EnumType):
        return type_.members
    if isinstance(type_, IntType) and type_.low is not None and type_.high is not None:
        return range(type_.low, type_.high + 1)
    return ()
