"""A difference between model and target, ready to be shown, kept and run again."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, field, structs

from commutant.conformance.script import ModelRun, Script
from commutant.conformance.shrink import Shrunk
from commutant.corpus import ExpectedOutcome, Order, PlacedCall, SetupStep, Step, TestCase, Value, call_text, value_text
from commutant.documents import Count, Part
from commutant.guard import ChoiceRefused
from commutant.lang import Interface
from commutant.support import plural
from commutant.testgen import Canonical

_MOST_OUTCOMES = 64


class StepShown(Part, frozen=True, kw_only=True):
    """A call of a sequence, on a core if the sequence says so.

    `returned` is what the target returned; it is missing if the implementation died before.
    """

    call: str
    args: dict[str, Any]
    process: Count
    core: Count | UnsetType = UNSET
    returned: Any | UnsetType = field(name="came", default=UNSET)


class MismatchShown(Part, frozen=True):
    """What differs: `step` counts through `steps` and then `observe`, `where` is the part of the result, such as nlink.

    `acceptable` are values of docs/reference/test-cases.md; the id of one that is not known yet is "new".
    """

    step: Count
    where: str
    acceptable: Annotated[tuple[Any, ...], Meta(min_length=1)]


class DifferenceShown(Part, frozen=True, kw_only=True):
    """A difference between model and target: a sequence as drawn, and what is left of it.

    `repeats` is how often it is run to see the difference, 0 if it came once and not again; `mismatch` is null if the
    implementation died, `crashed` says how; `again` is the command that runs and shrinks the sequence again.
    """

    sequence: Count
    calls_drawn: Count
    repeats: Count
    steps: tuple[StepShown, ...]
    observe: tuple[StepShown, ...]
    mismatch: MismatchShown | None
    crashed: str | None
    again: str


@dataclass(frozen=True, slots=True)
class Deviation:
    """What differs: sequence `number` as drawn, which made `calls_drawn` calls, and what is left of it.

    `again` is the command that draws, runs and shrinks it again.
    """

    number: int
    calls_drawn: int
    shrunk: Shrunk
    again: tuple[str, ...]

    def shown(self) -> DifferenceShown:
        """The difference as documents have it, with small numbers for what the target chose."""
        fault, script = self.shrunk.fault, self.shrunk.script
        seen = Numbering()
        returned = [seen(value) for value in fault.actual]
        steps = tuple(
            StepShown(
                call=str(document["call"]),
                args=document["args"],  # type: ignore[arg-type]
                process=document["process"],  # type: ignore[arg-type]
                core=document.get("core", UNSET),  # type: ignore[arg-type]
                returned=returned[number] if number < len(returned) else UNSET,
            )
            for number, document in enumerate(script.documents)
        )
        mismatch = None
        if (found := fault.mismatch) is not None:
            mismatch = MismatchShown(found.position, found.where, tuple(map(seen, found.acceptable)))
        before = len(script.begin) + len(script.calls)
        return DifferenceShown(
            sequence=self.number,
            calls_drawn=self.calls_drawn,
            repeats=self.shrunk.repeats,
            steps=steps[:before],
            observe=steps[before:],
            mismatch=mismatch,
            crashed=fault.crashed,
            again=shlex.join(self.again),
        )

    def text(self) -> str:
        """The difference as a transcript: the calls with what they returned, what was expected, and what came."""
        script, fault = self.shrunk.script, self.shrunk.fault
        lines = [*self._transcript()]
        if fault.crashed is not None:
            lines.append(f"  then it died: {fault.crashed}")
        drawn = f"sequence {self.number}, shrunk from {plural(self.calls_drawn, 'call')} to {len(script.calls)}"
        if self.shrunk.repeats == 0:
            drawn = f"sequence {self.number}; it came once and did not come again, so it is not shrunk"
        elif self.shrunk.repeats > 1:
            drawn += f", each candidate run {self.shrunk.repeats} times, since it comes now and then only"
        return "\n".join([*lines, "", f"  {drawn}", f"  again: {shlex.join(self.again)}"])

    def _transcript(self) -> Iterator[str]:
        script, fault = self.shrunk.script, self.shrunk.fault
        mismatch, before = fault.mismatch, len(script.begin) + len(script.calls)
        seen = Numbering()
        pairs = zip(fault.actual, script.documents, strict=False)
        actual = [value_text(seen(_compared(value, document["result"]))) for value, document in pairs]
        actual = actual or [""] * len(script.documents)
        steps = _steps(script)
        several = len({step.process for step in steps[:before]}) > 1
        texts = [f"process {step.process}  {call_text(step)}" if several else call_text(step) for step in steps]
        shown = before if mismatch is None else min(mismatch.position + 1, before)
        width = max((len(text) for text in texts[:shown]), default=0)
        for number in range(shown):
            result = "" if mismatch is not None and number == mismatch.position else actual[number]
            yield f"  {number + 1:>3}  {texts[number]:{width}}  {result}".rstrip()
        if mismatch is None:
            return
        if mismatch.position >= before:
            yield f"  and  {texts[mismatch.position]} observes"
        place = f", at {mismatch.where}" if mismatch.where else ""
        for text in dict.fromkeys(value_text(seen(value)) for value in mismatch.acceptable):
            yield f"         expected{place}  {text}"
        yield f"         actual{' ' * len(place)}    {actual[mismatch.position]}"

    def test_case(self, interface: type[Interface]) -> TestCase | None:
        """The difference as a test, whose last call is the one under test; None for one without calls."""
        script = self.shrunk.script
        steps = _steps(script)
        before = len(script.begin) + len(script.calls)
        if not script.calls:
            return None
        last = steps[before - 1]
        setup = tuple(
            SetupStep(step.call, step.args, step.process, document["result"])
            for step, document in zip(steps[: before - 1], script.documents, strict=False)
        )
        outcomes = tuple(_outcomes(interface, script, [step.result for step in setup]))
        test = TestCase(
            id="",
            level="full",
            path=0,
            equivalence_class=f"found by conform, sequence {self.number}",
            calls=(PlacedCall(last.call, last.args, last.process, 0, 0),),
            setup=setup,
            observe=tuple(steps[before:]),
            orders=(Order((0,), outcomes),),
        )
        return structs.replace(test, id=test.content_id())


def _compared(actual: Any, acceptable: Any) -> Value:
    """What came without what is not compared: fields that the model's result does not have."""
    match acceptable, actual:
        case {"struct": Mapping() as wanted}, {"struct": Mapping() as fields} if fields.keys() >= wanted.keys():
            return {"struct": {name: _compared(fields[name], part) for name, part in wanted.items()}}
        case {"seq": list() as wanted}, {"seq": list() as items} if len(wanted) == len(items):
            return {"seq": [_compared(item, part) for item, part in zip(items, wanted, strict=True)]}
    value: Value = actual
    return value


class Numbering:
    """Small numbers for what a target picks: opaque values and times by their first occurrence."""

    def __init__(self) -> None:
        self._opaque: dict[tuple[str, object], int] = {}
        self._counts: dict[str, int] = {}
        self._times: dict[int, int] = {}

    def opaque(self, sort: str, raw: object) -> int:
        """The number of a raw value."""
        if (sort, raw) not in self._opaque:
            self._opaque[sort, raw] = self._counts.get(sort, 0)
            self._counts[sort] = self._opaque[sort, raw] + 1
        return self._opaque[sort, raw]

    def __call__(self, value: Any) -> Value:
        """The value with small numbers; `new` for an opaque value that has none yet, bounds for a time in words."""
        match value:
            case {"sort": str() as sort, "id": None}:
                return {"sort": sort, "id": "new"}
            case {"sort": str() as sort, "id": raw}:
                return {"sort": sort, "id": self.opaque(sort, raw)}
            case {"time": [earliest, latest]}:
                bounds = [None if bound is None else self({"time": bound}) for bound in (earliest, latest)]
                return {"time": _between(*bounds)}
            case {"time": int() as raw}:
                return {"time": self._times.setdefault(raw, len(self._times))}
            case {"struct": Mapping() as fields}:
                return {"struct": {name: self(field) for name, field in fields.items()}}
            case {"seq": list() as items}:
                return {"seq": [self(item) for item in items]}
            case _:
                shown: Value = value
                return shown


def _between(earliest: Any, latest: Any) -> str:
    if earliest is None and latest is None:
        return "any"
    if earliest is None:
        return f"up to {latest['time']}"
    return f"from {earliest['time']}" + ("" if latest is None else f" to {latest['time']}")


def _steps(script: Script) -> list[Step]:
    """The steps as a test case has them, without results."""
    return [
        Step(str(document["call"]), document["args"], int(str(document["process"])))  # type: ignore[arg-type]
        for document in script.documents
    ]


def _outcomes(interface: type[Interface], script: Script, setup: list[Value]) -> Iterator[ExpectedOutcome]:
    """What the last call and the observation may return, where the calls before return what `setup` says."""
    pending: list[tuple[int, ...]] = [()]
    seen = set()
    for _ in range(_MOST_OUTCOMES):
        if not pending:
            return
        fixed = pending.pop()
        run, canonical = ModelRun(interface, fixed), Canonical()
        results: list[Value] = []
        with contextlib.suppress(ChoiceRefused):
            for step in script.steps:
                results.append(canonical.json(run.make(step)))  # noqa: PERF401 - those before a refusal
        picks, limits = run.resolution.picks, run.resolution.limits
        for choice in range(len(fixed), len(limits)):
            pending += [(*picks[:choice], pick) for pick in range(1, limits[choice])]
        complete = len(results) == len(script.steps)
        if complete and results[: len(setup)] == setup and json.dumps(results) not in seen:
            seen.add(json.dumps(results))
            yield ExpectedOutcome((results[len(setup)],), tuple(results[len(setup) + 1 :]))
