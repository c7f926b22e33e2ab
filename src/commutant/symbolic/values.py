"""Unknown values that a model computes with: booleans, values of a sort, integers.

Comparisons are decided at once (see `context`), so a comparison is a plain bool and a model's `if`, `and` and `not`
need no help. An unknown boolean is decided when Python asks for its truth. Unknown values are not hashable: a Python
dict or set would compare them behind the engine's back.
"""

from __future__ import annotations

from typing import Any

from commutant.errors import UsageError
from commutant.symbolic import integers
from commutant.symbolic.context import Literal, current
from commutant.symbolic.integers import Linear


def _unhashable(self: Any) -> int:
    raise UsageError(
        "an unknown value was used as a key of a Python dict or set: use a Map of the model's state, or a list"
    )


class SortValue:
    """A value of an uninterpreted sort; only `==` and `!=` make sense."""

    __slots__ = ("index", "sort")

    def __init__(self, index: int, sort: str) -> None:
        self.index = index
        self.sort = sort

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SortValue):
            return False
        if self.sort != other.sort:
            raise UsageError(f"a {self.sort} was compared with a {other.sort}: values of different sorts never meet")
        left, right = self.index, other.index
        context = current()
        known = context.implied_same(left, right)
        if known is None:
            known = context.branch(Literal("same", left, right) if left < right else Literal("same", right, left))
        return known

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        raise UsageError(f"a {self.sort} was used as a truth value: compare it instead")

    __hash__ = _unhashable

    def __repr__(self) -> str:
        return f"<{self.sort} {self.index}>"


class BoolValue:
    """An unknown truth value."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __bool__(self) -> bool:
        context = current()
        known = context.bool_values.get(self.index)
        return context.branch(Literal("bool", self.index, None)) if known is None else known

    def __eq__(self, other: object) -> bool:
        if self is other or (isinstance(other, BoolValue) and other.index == self.index):
            return True
        if isinstance(other, BoolValue | bool):
            return bool(self) == bool(other)
        if isinstance(other, int | IntValue):  # as for Python, True is 1
            return int(bool(self)) == other
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = _unhashable

    def __repr__(self) -> str:
        return f"<bool {self.index}>"


class IntValue:
    """A linear expression over unknown integers."""

    __slots__ = ("linear",)

    def __init__(self, linear: Linear) -> None:
        self.linear = linear

    @classmethod
    def variable(cls, index: int) -> IntValue:
        """The unknown of this index."""
        return cls((((index, 1),), 0))

    def __add__(self, other: Any) -> Any:
        right = _linear(other)
        return NotImplemented if right is None else _simplify(integers.add(self.linear, right))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        right = _linear(other)
        return NotImplemented if right is None else _simplify(integers.add(self.linear, right, -1))

    def __rsub__(self, other: Any) -> Any:
        left = _linear(other)
        return NotImplemented if left is None else _simplify(integers.add(left, self.linear, -1))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, IntValue):
            raise UsageError("two unknown integers were multiplied: only sums and constant factors can be analysed")
        return _simplify(integers.scale(self.linear, other)) if isinstance(other, int) else NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return _simplify(integers.scale(self.linear, -1))

    def __pos__(self) -> IntValue:
        return self

    def __eq__(self, other: object) -> bool:
        right = _linear(other)
        if right is None:
            return False
        difference = integers.add(self.linear, right, -1)
        if not difference[0]:
            return difference[1] == 0
        if difference[0][0][1] < 0:
            difference = integers.scale(difference, -1)
        return current().decide(Literal("==", difference, None))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __le__(self, other: Any) -> bool:
        return _at_most(integers.add(self.linear, _required(other), -1))

    def __lt__(self, other: Any) -> bool:
        return _at_most(integers.add(integers.add(self.linear, _required(other), -1), ((), 1)))

    def __ge__(self, other: Any) -> bool:
        return _at_most(integers.add(_required(other), self.linear, -1))

    def __gt__(self, other: Any) -> bool:
        return _at_most(integers.add(integers.add(_required(other), self.linear, -1), ((), 1)))

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        raise UsageError(
            "an unknown integer was used where Python needs a number (an index, range() or a bit operation)"
        )

    __hash__ = _unhashable

    def __repr__(self) -> str:
        return f"<int {self.linear}>"


def _linear(value: object) -> Linear | None:
    if isinstance(value, IntValue):
        return value.linear
    return ((), int(value)) if isinstance(value, int) else None


def _required(value: object) -> Linear:
    linear = _linear(value)
    if linear is None:
        raise UsageError(f"an unknown integer was compared with {value!r}: expected an integer")
    return linear


def _simplify(linear: Linear) -> IntValue | int:
    return IntValue(linear) if linear[0] else linear[1]


def _at_most(linear: Linear) -> bool:
    """Whether `linear <= 0`. Both polarities share one literal: the leading coefficient is made positive."""
    if not linear[0]:
        return linear[1] <= 0
    if linear[0][0][1] > 0:
        return current().decide(Literal("<=", linear, None))
    return not current().decide(Literal("<=", integers.add(((), 1), linear, -1), None))
