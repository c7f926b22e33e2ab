"""One path through a set of calls: run every order of them over one unknown state and compare.

SIM commutativity (paper, sections 3.2 and 5.1): each call returns the same in every order, and every subset of the
calls reaches equivalent states whatever its order. The subsets form a cube; each call is run once from each corner,
results and states are compared at every join, and the first difference ends the path. For a pair that is both orders;
for more calls it is also every prefix of every permutation, which is what makes the property monotonic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from commutant.analyzer.faults import ChoiceRefused, Kinds, begin_path, faults_of, placed
from commutant.analyzer.source_checks import check_source
from commutant.errors import UsageError
from commutant.lang.errno import Errno, Signal
from commutant.lang.interface import CallSignature, Interface
from commutant.lang.nondeterminism import answered_by
from commutant.lang.types import (
    IntType,
    MapType,
    SeqType,
    SortType,
    Struct,
    StructType,
    Time,
    TupleType,
    Type,
    struct_fields,
)
from commutant.symbolic import (
    BoolValue,
    Context,
    Infeasible,
    IntValue,
    Literal,
    SortValue,
    clone,
    current,
    unknown,
)
from commutant.symbolic.context import NOT_DETERMINISTIC, install
from commutant.symbolic.state import check_not_shared, fits, may_share, shown, usual_class


@dataclass(slots=True)
class Outcome:
    """What a path showed. `difference` is None if the calls commute on it, else says what a caller could tell apart;
    `choices` are the types of what was left to the implementation, by name."""

    difference: str | None
    decision_count: int
    initial: Interface
    arguments: tuple[dict[str, Any], ...]
    choices: tuple[tuple[str, Type], ...]

    @property
    def commutes(self) -> bool:
        """Whether the calls commute on this path."""
        return self.difference is None


class SymbolicOracle:
    """Answers a model's open questions with one unknown per call and question, the same in every order.

    Values handed out as unused to two calls may be the same one as long as no order needs both at once: an
    implementation may give the number to whoever comes first.
    """

    def __init__(self, label: str, answers: Answers, state: Interface) -> None:
        self._label = label
        self._answers = answers
        self._state = state
        self._asked = 0

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """The call's unknown; ChoiceRefused where it is not allowed."""
        name = self._name(type_)
        if name not in self._answers:
            self._answers[name] = (type_, unknown(type_, name))
        value = self._answers[name][1]
        if not allowed(value):
            raise ChoiceRefused
        return value

    def unused(self, type_: SortType) -> SortValue:
        """A value that differs from every value of the initial state and from those in use on this order."""
        value = self._fresh(self._name(type_), type_)
        sort = type_.sort.__name__
        in_use: tuple[SortValue, ...] = getattr(self._state, IN_USE, ())
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
            self._answers[name] = (type_, value)
        answer: SortValue = self._answers[name][1]
        return answer

    def _name(self, type_: Type) -> str:
        """A name per call, question and type: in another order the call may have something else to ask."""
        self._asked += 1
        return f"{self._label}.choice.{self._asked - 1}.{_kind_of_choice(type_)}"


NOW = "now"
"""The name of the constant for the time at which all calls run; no fact speaks of it, since it is fresh."""

Answers = dict[str, tuple[Type, Any]]
"""The choices of a path: type and value, by name."""


def _kind_of_choice(type_: Type) -> str:
    if isinstance(type_, MapType):
        raise UsageError("choose() was asked for a map: expected a bool, an int, a sort, or a tuple or Struct of these")
    if isinstance(type_, SortType):
        return type_.sort.__name__
    if isinstance(type_, IntType):
        return "int" + "to".join("" if bound is None else str(bound) for bound in (type_.low, type_.high))
    if isinstance(type_, StructType):
        return type_.struct.__name__
    if isinstance(type_, TupleType):
        return "and".join(_kind_of_choice(item) for item in type_.items)
    return f"{_kind_of_choice(type_.item)}s{type_.capacity}" if isinstance(type_, SeqType) else "bool"


IN_USE = "_commutant_in_use"
"""The attribute of a state that holds the unused values handed out on the way to it."""


class CallSet:
    """A set of calls of one interface, ready to be explored."""

    def __init__(self, interface: type[Interface], calls: tuple[str, ...]) -> None:
        check_source(interface)
        self.interface = interface
        self.calls = calls
        self.signatures: tuple[CallSignature, ...] = tuple(interface.signature(name) for name in calls)
        self._functions = tuple(getattr(interface, name) for name in calls)
        self._state_types = interface.state_types()
        self._kinds = Kinds(interface)
        self._may_share = any(may_share(type_) for type_ in self._state_types.values())
        self._usual_classes = {name: usual_class(type_) for name, type_ in self._state_types.items()}
        self._runs_to_verify = 2
        self._hooks = interface.well_formedness()
        self._inner_hooks: dict[str, list[str]] = {}
        for name in self._hooks:
            attribute, _, field = name.partition(".")
            if not _is_map(self._state_types.get(attribute), field):
                raise UsageError(
                    f"{interface.__name__}: @well_formed({name!r}) expects the name of a Map attribute, or of a Map "
                    "that is a field of its values, such as 'inodes.pages'"
                )
            if field:
                self._inner_hooks.setdefault(attribute, []).append(field)

    def run(self, context: Context) -> Outcome:
        """Runs all orders on the path that the context prescribes, and compares; the first runs are made twice."""
        begin_path()
        outcome, results = self._run(context)
        if self._runs_to_verify:
            self._runs_to_verify -= 1
            self._verify(context, outcome, results)
        return outcome

    def _verify(self, context: Context, outcome: Outcome, results: list[Any]) -> None:
        """UsageError if another run of the same path ends differently."""
        again = Context(tuple(context.trail))
        before = install(again)
        try:
            second, second_results = self._run(again)
            same = (again.trail, second.difference, second_results) == (context.trail, outcome.difference, results)
        except Infeasible:
            same = False
        finally:
            install(before)
        if not same:
            raise UsageError(f"{self.interface.__name__}: {', '.join(self.calls)}: {NOT_DETERMINISTIC}")

    def _run(self, context: Context) -> tuple[Outcome, list[Any]]:
        initial = self._unknown_state()
        arguments = tuple(
            {
                parameter: unknown(type_, f"{signature.name}.{index}.{parameter}")
                for parameter, type_ in signature.parameters.items()
            }
            for index, signature in enumerate(self.signatures)
        )
        answers: Answers = {}
        results: list[Any] = []
        try:
            difference = self._difference(initial, arguments, answers, results)
        except ChoiceRefused:
            difference = "no choice is allowed in every order"
        choices = tuple((name, type_) for name, (type_, _) in answers.items() if name != NOW)
        return Outcome(difference, len(context.trail), initial, arguments, choices), results

    def _difference(
        self, initial: Interface, arguments: tuple[dict[str, Any], ...], answers: Answers, fingerprints: list[Any]
    ) -> str | None:
        with faults_of(self.interface, "touch"):
            for given in arguments:
                initial.touch(given)
        states: dict[tuple[int, ...], Interface] = {(): initial}
        results: dict[int, Any] = {}
        everyone = range(len(self.calls))
        for size in range(1, len(self.calls) + 1):
            for subset in combinations(everyone, size):
                for last in reversed(subset):
                    before = tuple(index for index in subset if index != last)
                    state = copy_state(states[before])
                    result = self._perform(last, state, clone_arguments(arguments[last]), answers)
                    fingerprints.append(_fingerprint(result))
                    if last not in results:
                        results[last] = result
                    elif not same_result(results[last], result):
                        return f"result of {self.calls[last]}.{last}"
                    if subset not in states:
                        states[subset] = state
                    elif not self._equivalent(states[subset], state):
                        return "state after " + " and ".join(f"{self.calls[i]}.{i}" for i in subset)
        return None

    def _equivalent(self, left: Interface, right: Interface) -> bool:
        try:
            return bool(left.equivalent(right))
        except (Exception, SystemExit) as error:
            raise placed(error, self.interface, "equivalent") from None

    def _perform(self, index: int, state: Interface, arguments: dict[str, Any], answers: Answers) -> Any:
        call = self.calls[index]
        with answered_by(SymbolicOracle(f"{call}.{index}", answers, state)):
            try:
                result = self._functions[index](state, **arguments)
                self._check_attributes(state)
            except (Exception, SystemExit) as error:
                raise placed(error, self.interface, call) from None
        self._kinds.check(call, result)
        return result

    def _check_attributes(self, state: Interface) -> None:
        """UsageError if a call has put something into the state that no order can compare."""
        values = vars(state)
        for name, usual in self._usual_classes.items():
            if name not in values:
                raise UsageError(f"self.{name} was deleted: expected every attribute of the state to stay")
            value, type_ = values[name], self._state_types[name]
            if value.__class__ is not usual and not fits(value, type_):
                hint = f"; expected self.{name}.clear() and new entries" if isinstance(type_, MapType) else ""
                raise UsageError(f"self.{name} has type {shown(type_)}, and was assigned {value!r}{hint}")
        if self._may_share or current().may_share:
            check_not_shared(values)
            current().may_share = False
        if len(values) > len(self._usual_classes):
            for name in values:
                if name not in self._state_types and name != IN_USE:
                    raise UsageError(
                        f"self.{name} was assigned and is no part of the state: annotate it in the class body"
                    )

    def _unknown_state(self) -> Interface:
        initial = object.__new__(self.interface)
        for name, type_ in self._state_types.items():
            hook = self._hook(initial, name) if name in self._hooks or name in self._inner_hooks else None
            value = unknown(type_, name, hook=hook)
            setattr(initial, name, value)
        return initial

    def _hook(self, initial: Interface, name: str, *outer: Any) -> Callable[[Any, Any], bool]:
        """What is asked of an entry that becomes known to be present; `outer`: the entry that its map belongs to."""
        hooks = self._hooks.get(name, [])
        fields = self._inner_hooks.get(name, [])

        def holds(key: Any, value: Any) -> bool:
            for field in fields:
                getattr(value, field).content.hook = self._hook(initial, f"{name}.{field}", key, value)
            return all(bool(hook(initial, *outer, key, value)) for hook in hooks)

        return holds


def _is_map(attribute: Type | None, field: str) -> bool:
    """Whether an attribute is a map and, if a field is given, that field of its values one too."""
    if not isinstance(attribute, MapType):
        return False
    if not field:
        return True
    return isinstance(attribute.value, StructType) and isinstance(
        struct_fields(attribute.value.struct).get(field), MapType
    )


def copy_state(state: Interface) -> Interface:
    """A copy of a state that changes alone."""
    copy = object.__new__(type(state))
    for name, value in vars(state).items():
        setattr(copy, name, clone(value))
    return copy


def clone_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a call may change or store without the next order of the calls noticing."""
    return {name: clone(value) for name, value in arguments.items()}


def _fingerprint(result: Any) -> Any:
    """As much of a result as can be compared between two runs without deciding anything."""
    if isinstance(result, SortValue | BoolValue):
        return result.index
    if isinstance(result, IntValue):
        return result.linear
    if isinstance(result, tuple | list):
        return [_fingerprint(item) for item in result]
    return type(result) if isinstance(result, Struct) else result


def same_result(left: Any, right: Any) -> bool:
    """Whether a caller cannot tell two results apart; open equalities are decided on the way."""
    if left is right:
        return True
    if isinstance(left, Errno | Signal) or isinstance(right, Errno | Signal) or left is None or right is None:
        return left is right
    if isinstance(left, tuple | list) and isinstance(right, tuple | list):
        return len(left) == len(right) and all(same_result(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)
