"""Where some path of the second interface's calls commutes: whether states lie there, and which do not.

A path decides parameters and choices of the second interface's own and facts of the state and common arguments, in any
order. A state has some commuting value of what is its own if one commuting path's *other* facts hold of it. So these
are what is compared: each path is a cube of them, and a cube may be covered by several others together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commutant.analyzer import Bounds, Conjunction, Facts

MAX_PARTS = 4096
"""This many parts of a cube are looked at; a cube that falls into more counts as not covered."""


class Coverage:
    """Whether cubes lie in a union of others; `bounds` are those of numbers, by name."""

    def __init__(self, bounds: Mapping[str, Bounds], outside: Sequence[Conjunction]) -> None:
        """`outside`: cubes in which no state is well-formed."""
        self._facts = Facts(bounds)
        self._outside = outside
        self._parts = 0

    def covers(self, cubes: Sequence[Conjunction], cube: Conjunction) -> bool:
        """Whether every state of the cube is in one of the cubes."""
        self._parts = 0
        near = self._near(cubes, cube)
        return self._covered(near, cube) or self._covered([*near, *self._near(self._outside, cube)], cube)

    def meets(self, cubes: Sequence[Conjunction], cube: Conjunction) -> bool:
        """Whether some state of the cube may be in one of the cubes."""
        return bool(self._near(cubes, cube))

    def _near(self, cubes: Sequence[Conjunction], cube: Conjunction) -> list[Conjunction]:
        return [other for other in cubes if not self._facts.contradictory([*cube, *other])]

    def _covered(self, cubes: Sequence[Conjunction], part: Conjunction) -> bool:
        """Divides the part by a fact of a cube that meets it until each part is in a cube or meets none."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            return False
        open_facts = [
            [fact for fact in cube if not self._facts.contradictory([*part, fact.negated()])] for cube in cubes
        ]  # of each cube, the facts that the part does not imply
        fewest = min(open_facts, key=len, default=None)
        if not fewest:
            return fewest is not None or self._facts.contradictory(part)
        fact = fewest[0]
        return all(
            self._facts.contradictory(side) or self._covered(self._near(cubes, side), side)
            for side in ((*part, fact.negated()), (*part, fact))
        )
