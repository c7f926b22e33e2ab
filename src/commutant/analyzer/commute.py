"""One path through a set of calls: run every order of them over one unknown state and compare (see `cube`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from commutant.analyzer.cube import NO_DIFFERENCE, REFUSED, Corner, Cube, Difference, Place
from commutant.analyzer.oracle import IN_USE, NOW, Answers, SymbolicOracle
from commutant.guard import CHANGES_STATE, Kinds, begin_path, check_source, placed
from commutant.lang import (
    ESCAPES,
    WHOLE_STATE,
    CallSignature,
    Errno,
    Interface,
    MapType,
    Signal,
    Struct,
    StructType,
    Type,
    answered_by,
    struct_fields,
)
from commutant.support import UsageError
from commutant.symbolic import (
    NOT_DETERMINISTIC,
    BoolValue,
    CallsUnderWay,
    Context,
    EntryHook,
    Infeasible,
    IntValue,
    Literal,
    SortValue,
    changed,
    check_not_shared,
    clone,
    current,
    fits,
    install,
    is_scalar,
    may_share,
    shown,
    unknown,
    unknown_record,
    usual_class,
)


@dataclass(slots=True)
class PathOutcome:
    """What a path showed. `difference` is None if the calls commute on it, else says what a caller could tell apart;
    `choices` are the types of what was left to the implementation, by name."""

    difference: str | None
    decision_count: int
    initial: Interface
    arguments: tuple[dict[str, Any], ...]
    choices: tuple[tuple[str, Type], ...]
    cube: Cube

    @property
    def ends(self) -> list[Interface]:
        """The states that single calls left, of those that have run."""
        return self.cube.first_ends()

    @property
    def commutes(self) -> bool:
        """Whether the calls commute on this path."""
        return self.difference is None


class _World(NamedTuple):
    """What all orders of the calls have in common: the unknown state and arguments, what was left open so far, the runs
    that were bound to a choice of another order, and the steps that find the first difference."""

    initial: Interface
    arguments: tuple[dict[str, Any], ...]
    answers: Answers
    bound: dict[Place, bool]
    cube: Cube
    steps: list[Callable[[], Difference | None]]


class CallSet:
    """A set of calls of one interface, ready to be explored."""

    def __init__(self, interface: type[Interface], calls: tuple[str, ...]) -> None:
        check_source(interface)
        self.interface = interface
        self.calls = calls
        self._names = frozenset(calls)
        self.signatures: tuple[CallSignature, ...] = tuple(interface.signature(name) for name in calls)
        self._functions = tuple(getattr(interface, name) for name in calls)
        self._parameters: list[list[tuple[str, Type, str]]] = [
            [(name, type_, f"{signature.name}.{index}.{name}") for name, type_ in signature.parameters.items()]
            for index, signature in enumerate(self.signatures)
        ]
        self.labels = [f"{call}.{index}" for index, call in enumerate(calls)]
        self._may_change = [not all(map(is_scalar, s.parameters.values())) for s in self.signatures]
        self._state_types = interface.state_types()
        self._scalars = [name for name, type_ in self._state_types.items() if is_scalar(type_)]
        self._kinds = Kinds(interface)
        self._may_share = any(may_share(type_) for type_ in self._state_types.values())
        self._usual_classes = {name: usual_class(type_) for name, type_ in self._state_types.items()}
        self._runs_to_verify = 2
        self._make_world = partial(self._world, None)
        self._hooks = interface.well_formedness()
        self._of_whole_state = self._hooks.pop(WHOLE_STATE, [])
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

    def run(self, context: Context) -> PathOutcome:
        """Runs all orders on the path that the context prescribes, and compares; the first runs are made twice.

        States and arguments in the outcome are those of the context's steps: good until it goes on to another path.
        """
        begin_path()
        CallsUnderWay.names = self._names
        outcome, results = self._run(context)
        if self._runs_to_verify:
            self._verify(context, outcome, results)
            self._runs_to_verify -= 1
        return outcome

    def _verify(self, context: Context, outcome: PathOutcome, results: list[Any]) -> None:
        """UsageError if another run of the same path ends differently."""
        again = Context(tuple(context.trail))
        before = install(again)
        try:
            second, second_results = self._run(again, self._confirm)
            same = (again.trail, second.difference, second_results) == (context.trail, outcome.difference, results)
        except Infeasible:
            same = False
        finally:
            install(before)
        if not same:
            raise self._not_deterministic()

    def _confirm(self, first: Any, second: Any) -> None:
        if not _known_to_agree(first, second):
            raise self._not_deterministic()

    def _not_deterministic(self) -> UsageError:
        return UsageError(f"{self.interface.__name__}: {', '.join(self.calls)}: {NOT_DETERMINISTIC}")

    def _run(
        self, context: Context, confirm: Callable[[Any, Any], None] | None = None
    ) -> tuple[PathOutcome, list[Any]]:
        """What the path shows, and of what the result of each call's first run consists."""
        world = context.step(self._make_world if confirm is None else partial(self._world, confirm))
        cube, found = world.cube, context.first_of(world.steps)
        if found is not None and found is not NO_DIFFERENCE and _may_be_of_choices(found, world.bound):
            cube = context.step(partial(self._own_choices, world, confirm))
            again = context.first_of(cube.steps())
            if again is None or again is NO_DIFFERENCE or found is REFUSED:
                found = again
        difference = None if found is None or found is NO_DIFFERENCE else self._shown(*found)
        if self._of_whole_state:
            self._require_well_formed(world.initial)  # again: calls have touched more of it
        choices = tuple([(name, type_) for name, (type_, _) in world.answers.items() if name != NOW])
        outcome = PathOutcome(difference, context.trail_length, world.initial, world.arguments, choices, cube)
        return outcome, [_fingerprint(result) for result in cube.first_results()] if self._runs_to_verify else []

    def _world(self, confirm: Callable[[Any, Any], None] | None) -> _World:
        initial, arguments = self.begin()
        answers: Answers = {}
        bound: dict[Place, bool] = {}

        def perform(index: int, start: Corner, state: Interface) -> Any:
            oracle = self.oracle(index, answers, state)
            try:
                return self._perform(index, state, arguments[index], oracle)
            finally:
                if oracle.is_bound:
                    current().put(bound, (start, index), True)

        cube = Cube(initial, len(self.calls), perform, same_result, self._equivalent, confirm)
        first = [partial(self._require_well_formed, initial)] if self._of_whole_state else []
        touches = [partial(self._touch, initial, given) for given in arguments]
        return _World(initial, arguments, answers, bound, cube, [*first, *touches, *cube.steps()])

    def _own_choices(self, world: _World, confirm: Callable[[Any, Any], None] | None) -> Cube:
        """The orders of the calls once more, each run choosing by itself: what counts is what a caller sees (paper,
        section 3.2), and that an implementation chose otherwise in another order may show nowhere."""

        def perform(index: int, start: Corner, state: Interface) -> Any:
            oracle = self.oracle(index, world.answers, state, start)
            return self._perform(index, state, world.arguments[index], oracle)

        return Cube(world.initial, len(self.calls), perform, same_result, self._equivalent, confirm)

    def oracle(self, index: int, answers: Answers, state: Interface, after: int = 0) -> SymbolicOracle:
        """What answers a call's open questions."""
        return SymbolicOracle(self.labels[index], answers, state, after)

    def _shown(self, index: int | None, subset: tuple[int, ...]) -> str:
        if (index, subset) == REFUSED:
            return "no choice is allowed in every order"
        if index is not None:
            return f"result of {self.calls[index]}.{index}"
        return "state after " + " and ".join(f"{self.calls[i]}.{i}" for i in subset)

    def _require_well_formed(self, initial: Interface) -> None:
        """Infeasible where the state as a whole is not well-formed, as far as it has been looked at."""
        context = current()
        before, context.in_restriction = context.in_restriction, True
        try:
            for method in self._of_whole_state:
                if not self._holds(method, initial):
                    raise Infeasible
        finally:
            context.in_restriction = before

    def _holds(self, method: Callable[..., Any], *of: Any) -> bool:
        """Whether a condition holds of the initial state, or of an entry of it; it sees copies, and may not change
        them."""
        seen = [clone(part) for part in of]
        try:
            holds = bool(method(*seen))
            if any(map(changed, seen, of)):
                raise UsageError(CHANGES_STATE)
        except ESCAPES as error:
            raise placed(error, self.interface, method.__name__) from None
        return holds

    def _touch(self, initial: Interface, arguments: dict[str, Any]) -> None:
        try:
            initial.touch(arguments)
        except ESCAPES as error:
            raise placed(error, self.interface, "touch") from None

    def _equivalent(self, left: Interface, right: Interface) -> bool:
        try:
            return bool(left.equivalent(right))
        except ESCAPES as error:
            raise placed(error, self.interface, "equivalent") from None

    def _perform(self, index: int, state: Interface, arguments: dict[str, Any], oracle: SymbolicOracle) -> Any:
        call = self.calls[index]
        given = clone_arguments(arguments) if self._may_change[index] else arguments
        with answered_by(oracle):
            try:
                result = self._functions[index](state, **given)
                self._check_attributes(state)
            except ESCAPES as error:
                raise placed(error, self.interface, call) from None
        self._kinds.check(call, result)
        return result

    def _check_attributes(self, state: Interface) -> None:
        """UsageError if a call has put something into the state that no order can compare."""
        values = vars(state)
        for name, value in values.items():
            usual = self._usual_classes.get(name)
            if value.__class__ is usual or name == IN_USE:
                continue
            if usual is None:
                raise UsageError(f"self.{name} was assigned and is no part of the state: annotate it in the class body")
            type_ = self._state_types[name]
            if not fits(value, type_):
                hint = f"; expected self.{name}.clear() and new entries" if isinstance(type_, MapType) else ""
                raise UsageError(f"self.{name} has type {shown(type_)}, and was assigned {value!r}{hint}")
        if self._may_share or current().may_share:
            check_not_shared(values)
            current().may_share = False

    def begin(self) -> tuple[Interface, tuple[dict[str, Any], ...]]:
        """The unknown state and the unknown arguments of each call."""
        initial = unknown_record(self.interface, self._state_types, hook_of=self.hook_of)
        setattr(initial, IN_USE, ())
        for name in self._scalars:
            getattr(initial, name)  # before the arguments, so that sentences begin with the state
        arguments = tuple(
            [{name: unknown(type_, label) for name, type_, label in parameters} for parameters in self._parameters]
        )
        return initial, arguments

    def hook_of(self, initial: Interface, name: str) -> EntryHook | None:
        """What is asked of the entries of a map of the initial state, if anything is."""
        return self._hook(initial, name) if self.asks_entries(name) else None

    def asks_entries(self, name: str) -> bool:
        """Whether anything is asked of the entries of a map of the state."""
        return name in self._hooks or name in self._inner_hooks

    def _hook(self, initial: Interface, name: str, *outer: Any) -> Callable[[Any, Any], bool]:
        """What is asked of an entry that becomes known to be present; `outer`: the entry that its map belongs to."""
        hooks = self._hooks.get(name, [])
        fields = self._inner_hooks.get(name, [])

        def holds(key: Any, value: Any) -> bool:
            for field in fields:
                content = getattr(value, field).content
                current().undo_with(setattr, content, "hook", content.hook)
                content.hook = both_hold(content.hook, self._hook(initial, f"{name}.{field}", key, value))
            return all(self._holds(hook, initial, *outer, key, value) for hook in hooks)

        return holds


def both_hold(first: EntryHook | None, second: EntryHook | None) -> EntryHook | None:
    """A hook that asks both."""
    if first is None or second is None:
        return first or second
    return lambda key, value: first(key, value) and second(key, value)


def _may_be_of_choices(found: Difference, bound: dict[Place, bool]) -> bool:
    """Whether runs that were bound to what another order chose can have led to a difference."""
    index, subset = found
    if not bound or found is REFUSED:
        return bool(bound)
    end = sum(1 << call for call in subset)
    start = end if index is None else end & ~(1 << index)
    return any((corner | 1 << call) & ~start == 0 or (corner, call) == (start, index) for corner, call in bound)


def _is_map(attribute: Type | None, field: str) -> bool:
    """Whether an attribute is a map and, if a field is given, that field of its values one too."""
    if not isinstance(attribute, MapType):
        return False
    if not field:
        return True
    return isinstance(attribute.value, StructType) and isinstance(
        struct_fields(attribute.value.struct).get(field), MapType
    )


def clone_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a call may change or store without the next order of the calls noticing."""
    return {name: clone(value) for name, value in arguments.items()}


def _known_to_agree(first: Any, second: Any) -> bool:
    """Whether two results are the same by what has been decided on the path."""
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(_known_to_agree, first, second))
    if isinstance(first, Struct) and isinstance(second, type(first)):
        return all(_known_to_agree(getattr(first, name), getattr(second, name)) for name in first.relevant())
    if isinstance(first, SortValue) and isinstance(second, SortValue):
        low, high = sorted((first.index, second.index))
        return low == high or current().implied(Literal("same", low, high)) is True
    if isinstance(first, IntValue) and isinstance(second, IntValue):
        difference = first - second
        if not isinstance(difference, IntValue):
            return bool(difference == 0)
        leads_positive = difference.linear[0][0][1] > 0
        return current().implied(Literal("==", (difference if leads_positive else -difference).linear, None)) is True
    return bool(_truth(first) == _truth(second))


def _truth(value: Any) -> Any:
    """What an unknown truth value was decided to be, if it was; any other value itself."""
    if not isinstance(value, BoolValue):
        return value
    known = current().bool_value(value.index)
    return ("open", value.index) if known is None else known


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
