"""A sequence written out on the model: every step with its arguments, what it must return, and the observation.

A model may leave choices open; `Resolution` says how they are resolved. The script that a target is given takes the
first allowed value each time, and `commutant.conformance.judge` looks for another resolution if something else comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commutant.conformance.sequence import Call, CallSequence, Results, resolve
from commutant.corpus import Value
from commutant.guard import ChoiceRefused, ModelFault, faults_of, placed
from commutant.lang import (
    ESCAPES,
    Interface,
    Invocation,
    OpaqueValue,
    Sort,
    SortType,
    Struct,
    TimeValue,
    Type,
    answered_by,
    finite_values,
)
from commutant.testgen import Canonical


class Resolution:
    """Answers what a model leaves open: its choices are `picks`, one index into the allowed values after the other.

    Past the end of the picks the first allowed value is taken, and noted. `limits` are the numbers of allowed values.
    """

    def __init__(self, picks: Sequence[int] = ()) -> None:
        self.picks = list(picks)
        self.limits: list[int] = []
        self._label = ""
        self._unused = 0
        self._tick = 0
        self._state: Interface | None = None

    def begin(self, label: str, tick: int, state: Interface | None = None) -> None:
        """The answers from here on belong to the step with this label, made at this tick of the clock in this state."""
        self._label, self._unused, self._tick, self._state = label, 0, tick, state

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        """The picked one of the allowed values; ChoiceRefused if there is none."""
        values = [value for value in finite_values(type_, self._state) if allowed(value)]
        if not values:
            raise ChoiceRefused
        if len(self.limits) == len(self.picks):
            self.picks.append(0)
        picked = self.picks[len(self.limits)]
        self.limits.append(len(values))
        return values[picked]

    def unused(self, type_: SortType) -> OpaqueValue:
        """A value named after the step, whatever steps stand before it."""
        self._unused += 1
        return OpaqueValue(type_.sort.__name__, f"{self._label}.{self._unused - 1}")

    def now(self) -> TimeValue:
        """A tick per step."""
        return TimeValue(self._tick)


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One step as it is made: the values of the model for all parameters, and who makes it.

    `label` is the number of a call, or a name for a step of `begin` and `observe`. `core` is None where the target
    chooses who makes the call.
    """

    label: str
    call: str
    arguments: Mapping[str, Any]
    process: int
    core: int | None


class ModelRun:
    """A model on ordinary values, one step after the other, under one resolution of its choices."""

    def __init__(self, interface: type[Interface], picks: Sequence[int] = ()) -> None:
        self.interface = interface
        self.resolution = Resolution(picks)
        self._tick = 0
        self.resolution.begin("initial", 0)
        with answered_by(self.resolution), faults_of(interface, "__init__"):
            self.state = interface()

    def make(self, step: ScriptStep) -> Any:
        """What the step returns; may be a part of the state that changes later. ChoiceRefused if there is none."""
        self._tick += 1
        self.resolution.begin(step.label, self._tick, self.state)
        with answered_by(self.resolution):
            try:
                return getattr(self.state, step.call)(**{name: _own(value) for name, value in step.arguments.items()})
            except ESCAPES as error:
                raise placed(error, self.interface, step.call) from None


def _own(value: Any) -> Any:
    """An argument that the model may store: another one for each run."""
    return resolve(value, _NO_RESULTS, None) if isinstance(value, Struct | list | tuple) else value


_NO_RESULTS = Results()


_process_parameters: dict[tuple[type[Interface], str], str | None] = {}


def process_parameter(interface: type[Interface], call: str) -> str | None:
    """The parameter that says which process makes a call, None if processes mean nothing to it."""
    key = (interface, call)
    if key not in _process_parameters:
        _process_parameters[key] = interface.signature(call).process_parameter
    return _process_parameters[key]


def process_of(interface: type[Interface], call: Call) -> int | None:
    """The process of a call, None if processes mean nothing to it."""
    return None if process_parameter(interface, call.name) is None else call.process


def call_step(interface: type[Interface], call: Call, results: Results) -> ScriptStep:
    """The step of a call, with what earlier calls returned put in; raises Unresolved if one has not."""
    parameter = process_parameter(interface, call.name)
    process = None if parameter is None else call.process
    arguments = {name: resolve(value, results, process) for name, value in call.arguments.items()}
    if parameter is not None:
        arguments[parameter] = process
    return ScriptStep(str(call.number), call.name, arguments, call.process, call.core)


def _invocation_step(interface: type[Interface], label: str, invocation: Invocation) -> ScriptStep:
    parameter = process_parameter(interface, invocation.call)
    process = int(invocation.arguments[parameter]) if parameter is not None else 0
    return ScriptStep(label, invocation.call, invocation.arguments, process, None)


def _steps_of_begin(run: ModelRun, pools: Mapping[type[Sort], tuple[Any, ...]]) -> list[ScriptStep]:
    with faults_of(run.interface, "begin"):
        invocations = list(run.state.begin(pools))
    return [_invocation_step(run.interface, f"begin.{number}", item) for number, item in enumerate(invocations)]


def _steps_of_observe(run: ModelRun, pools: Mapping[type[Sort], tuple[Any, ...]]) -> list[ScriptStep]:
    with faults_of(run.interface, "observe"):
        invocations = list(run.state.observe(pools))
    return [_invocation_step(run.interface, f"observe.{number}", item) for number, item in enumerate(invocations)]


def begun(interface: type[Interface], pools: Mapping[type[Sort], tuple[Any, ...]]) -> ModelRun:
    """A run of the model up to where the first call may be made."""
    run = ModelRun(interface)
    for step in _steps_of_begin(run, pools):
        run.make(step)
    return run


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of a sequence: those of `Interface.begin`, the calls, those of `Interface.observe`, and all results.

    `documents` are the steps in JSON: call, arguments, process, core, and the result under the first resolution, with
    opaque values numbered by sort.
    """

    begin: tuple[ScriptStep, ...]
    calls: tuple[ScriptStep, ...]
    observe: tuple[ScriptStep, ...]
    documents: Sequence[Mapping[str, Value]]

    @property
    def steps(self) -> tuple[ScriptStep, ...]:
        """All steps, in order."""
        return (*self.begin, *self.calls, *self.observe)

    def text(self) -> str:
        """The sequence as sessions take it (`commutant.targets.base.Session.run_sequences`)."""
        before = len(self.begin) + len(self.calls)
        documents = self.documents
        return json.dumps({"calls": [], "orders": [], "setup": documents[:before], "observe": documents[before:]})


def write_script(interface: type[Interface], sequence: CallSequence) -> Script:
    """The script of a sequence; raises Unresolved, or ModelFault if the model fails."""
    run = ModelRun(interface)
    canonical = Canonical()
    documents: list[dict[str, Value]] = []

    def made(step: ScriptStep) -> Any:
        hidden = process_parameter(interface, step.call)
        args = {name: canonical.json(value) for name, value in step.arguments.items() if name != hidden}
        try:
            result = run.make(step)
        except ChoiceRefused:
            raise ModelFault(f"{interface.__name__}.{step.call}: choose() allows no value here") from None
        document = {"call": step.call, "args": args, "process": step.process, "result": canonical.json(result)}
        if step.core is not None:
            document["core"] = step.core
        documents.append(document)
        return result

    begin = _steps_of_begin(run, sequence.pools)
    for step in begin:
        made(step)
    calls = []
    results = Results()
    for call in sequence.calls:
        calls.append(call_step(interface, call, results))
        results.add(call.number, process_of(interface, call), made(calls[-1]))
    observe = _steps_of_observe(run, sequence.pools)
    for step in observe:
        made(step)
    return Script(tuple(begin), tuple(calls), tuple(observe), documents)
