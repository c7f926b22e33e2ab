"""What the engine answers where a model leaves something open: unknowns that are the same in every order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commutant.guard import ChoiceRefused
from commutant.lang import (
    EnumType,
    Interface,
    IntType,
    MapType,
    OptionalType,
    SeqType,
    SortType,
    StructType,
    Time,
    TupleType,
    Type,
)
from commutant.support import UsageError
from commutant.symbolic import Literal, SortValue, current, unknown

NOW = "now"
"""The name of the constant for the time at which all calls run; no fact speaks of it, since it is fresh."""

Answers = dict[str, tuple[Type, Any]]
"""The choices of a path: type and value, by name."""

AFTER = ".after"
"""What the name of a choice ends with, before the calls that have run, where it is another one than in other orders."""

IN_USE = "_commutant_in_use"
"""The attribute of a state that holds the unused values handed out on the way to it."""


class SymbolicOracle:
    """Answers a model's open questions with one unknown per call and question, the same in every order.

    Values handed out as unused to two calls may be the same one as long as no order needs both at once: an
    implementation may give the number to the call that comes first. `after` informs of a run that makes choices of its
    own which calls have run before it (a bit for each). `foreign` are answers that another interface got; no call sees
    both, so a new value is none of those.
    """

    def __init__(
        self, label: str, answers: Answers, state: Interface, after: int = 0, foreign: Answers | None = None
    ) -> None:
        self._label = label
        self._answers = answers
        self._state = state
        self._foreign = foreign or {}
        self._after = f"{AFTER}{after}" if after else ""
        self._asked = 0
        self.is_bound = False
        """Whether the call was given what it had chosen in another order."""

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """The call's unknown; ChoiceRefused where it is not allowed."""
        name = self._name(type_) + self._after
        if name in self._answers:
            self.is_bound = True
        else:
            current().put(self._answers, name, (type_, unknown(type_, name)))
        value = self._answers[name][1]
        if not allowed(value):
            raise ChoiceRefused
        return value

    def unused(self, type_: SortType) -> SortValue:
        """A value that differs from every value of the initial state and from those in use on this order."""
        value = self._fresh(self._name(type_), type_)
        sort = type_.sort.__name__
        in_use: tuple[SortValue, ...] = getattr(self._state, IN_USE)
        for other in in_use:
            if other.sort == sort:
                low, high = sorted((other.index, value.index))
                same = Literal("same", low, high)
                if low == high or current().implied(same):
                    raise ChoiceRefused
                current().restrict(same, False)
        setattr(self._state, IN_USE, (*in_use, value))
        return value

    def now(self) -> SortValue:
        """The one time at which all calls run; it differs from every time in the initial state."""
        return self._fresh(NOW, SortType(Time))

    def _fresh(self, name: str, type_: SortType) -> SortValue:
        if name not in self._answers:
            sort = type_.sort.__name__
            value = SortValue(current().new_sort_value(sort, ("constant", name), fresh=True), sort)
            current().put(self._answers, name, (type_, value))
            for _, other in self._foreign.values():
                if isinstance(other, SortValue) and other.sort == sort and current().is_fresh(other.index):
                    current().restrict(Literal("same", *sorted((other.index, value.index))), False)
        answer: SortValue = self._answers[name][1]
        return answer

    def _name(self, type_: Type) -> str:
        """A name per call, question and type: in another order the call may have something else to ask."""
        self._asked += 1
        return f"{self._label}.choice.{self._asked - 1}.{_kind_of_choice(type_)}"


def _kind_of_choice(type_: Type) -> str:
    if isinstance(type_, MapType):
        raise UsageError("choose() cannot choose a map: expected a bool, an int, a sort, or a tuple or Struct of these")
    if isinstance(type_, SortType):
        return type_.sort.__name__
    if isinstance(type_, IntType):
        return "int" + "to".join("" if bound is None else str(bound) for bound in (type_.low, type_.high))
    if isinstance(type_, StructType):
        return type_.struct.__name__
    if isinstance(type_, TupleType):
        return "and".join(_kind_of_choice(item) for item in type_.items)
    if isinstance(type_, OptionalType):
        return f"optional{_kind_of_choice(type_.item)}"
    if isinstance(type_, EnumType):
        return type_.enum.__name__
    return f"{_kind_of_choice(type_.item)}s{type_.capacity}" if isinstance(type_, SeqType) else "bool"
