"""A target whose implementation is a model on ordinary values: the right one, or one with a planted mistake.

It is asked for results as a runner is, and picks values of its own for what is opaque; so what is found, and what a
difference shrinks to, is known exactly.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from commutant.lang.errno import Errno, Signal
from commutant.lang.interface import Interface
from commutant.lang.nondeterminism import answered_by, finite_values
from commutant.lang.types import OpaqueValue, SortType, Struct, TimeValue, Type, struct_fields
from commutant.support import OnProgress, Progress
from commutant.support.errors import RunError
from commutant.targets.base import Job, SequenceRecord, WindowRecord


class Picking:
    """Picks anything that is allowed; opaque values are numbers that no one else has, but those that were freed."""

    def __init__(self, generator: random.Random, clock_divisor: int) -> None:
        self.generator = generator
        self._next = 1000
        self._clock = 0
        self._divisor = clock_divisor
        self.state: Interface | None = None

    def tick(self) -> None:
        self._clock += 1

    def choose(self, type_: Type, allowed: Callable[[Any], Any]) -> Any:
        return self.generator.choice([value for value in finite_values(type_, self.state) if allowed(value)])

    def unused(self, type_: SortType) -> OpaqueValue:
        self._next += self.generator.randint(1, 9)
        return OpaqueValue(type_.sort.__name__, str(self._next))

    def now(self) -> TimeValue:
        return TimeValue(self._clock // self._divisor)


class ModelSession:
    """Runs sequences on `implementation`; dies where `dies` says so of a step."""

    def __init__(
        self, implementation: type[Interface], dies: Callable[[str], bool] = lambda call: False, seed: int = 0
    ) -> None:
        self.implementation = implementation
        self.closed = False
        self.ran = 0
        self._dies = dies
        self._random = random.Random(seed)

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        raise AssertionError("sequences only")

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        for text in texts:
            if self.closed:
                raise RunError("the session is closed")
            self.ran += 1
            yield self._run(json.loads(text))

    def close(self) -> None:
        self.closed = True

    def _run(self, document: Mapping[str, Any]) -> SequenceRecord:
        oracle = Picking(self._random, self._random.choice((1, 3)))
        with answered_by(oracle):
            state = oracle.state = self.implementation()
        known: dict[tuple[str, int], OpaqueValue] = {}
        lists: dict[str, list[Any]] = {"results": [], "observation": []}
        for part, name in (("setup", "results"), ("observe", "observation")):
            for step in document[part]:
                if self._dies(step["call"]):
                    return SequenceRecord(crashed="it was asked to die")
                oracle.tick()
                arguments = {key: _argument(value, known) for key, value in step["args"].items()}
                if any(argument is _UNKNOWN for argument in arguments.values()):
                    return SequenceRecord('{"refused": "a value that nobody returned"}')
                parameter = self.implementation.signature(step["call"]).process_parameter
                if parameter is not None:
                    arguments[parameter] = step["process"]
                with answered_by(oracle):
                    result = getattr(state, step["call"])(**arguments)
                _bind(step["result"], result, known)
                lists[name].append(_raw(result))
        return SequenceRecord(json.dumps(lists))


_UNKNOWN = object()


def _argument(value: Any, known: Mapping[tuple[str, int], OpaqueValue]) -> Any:
    match value:
        case {"sort": sort, "id": number}:
            return known.get((sort, number), _UNKNOWN)
        case {"seq": items}:
            return tuple(_argument(item, known) for item in items)
    return value


def _bind(expected: Any, result: Any, known: dict[tuple[str, int], OpaqueValue]) -> None:
    """As the runner does: the first result that stands for an opaque value names it."""
    match expected:
        case {"sort": sort, "id": number} if isinstance(result, OpaqueValue):
            known.setdefault((sort, number), result)
        case {"struct": fields} if isinstance(result, Struct):
            for name, field in fields.items():
                _bind(field, getattr(result, name), known)


def _raw(result: Any) -> Any:
    if isinstance(result, Errno):
        return {"errno": result.name}
    if isinstance(result, Signal):
        return {"signal": result.name}
    if isinstance(result, TimeValue):
        return {"time": int(result)}
    if isinstance(result, OpaqueValue):
        return {"sort": result.sort, "id": int(result.label)}
    if isinstance(result, Struct):
        return {"struct": {name: _raw(getattr(result, name)) for name in struct_fields(type(result))}}
    if isinstance(result, tuple | list):
        return {"seq": [_raw(item) for item in result]}
    return result


class ModelTarget:
    """A target of such sessions; knows all calls of the implementation but `unknown`."""

    def __init__(
        self,
        implementation: type[Interface],
        *,
        unknown: Iterable[str] = (),
        dies: Callable[[str], bool] = lambda call: False,
        session: type[ModelSession] = ModelSession,
    ) -> None:
        self.argument = "model"
        self.implementation = implementation
        self.made: list[ModelSession] = []
        self.closed = False
        self._unknown = set(unknown)
        self._dies = dies
        self._session = session

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        signature = self.implementation.signature(call)
        expected = set(signature.parameters) - {signature.process_parameter}
        return call not in self._unknown and set(parameters) == expected

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        on_progress(Progress(text="starting nothing"))

    def sessions(self, count: int) -> Sequence[ModelSession]:
        self.made = [self._session(self.implementation, self._dies, seed) for seed in range(count)]
        return self.made

    def reseeded(self) -> Sequence[ModelTarget]:
        return ()

    def describe(self) -> Mapping[str, object]:
        return {}

    def close(self) -> None:
        self.closed = True
        for session in self.made:
            session.close()
