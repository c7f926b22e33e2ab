"""From one class of states to a test: concrete values, the set-up that builds them, and what each order must show.

The state is made of ordinary values, the model's `setup` says how to build it (see `setups`), and the model itself runs
the calls from there in every order (see `concrete`). What is text of a corpus in the end is text from the start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

from commutant.analyzer import PathOutcome
from commutant.corpus import PlacedCall, Value, encode, id_of
from commutant.documents import builtins
from commutant.guard import Endless, ModelFault
from commutant.lang import CallSignature, Interface, OpaqueValue
from commutant.symbolic import Context
from commutant.testgen.canonical import Canonical
from commutant.testgen.concrete import CallUnderTest, Observed, Start
from commutant.testgen.frozen import Frozen, thaw
from commutant.testgen.setups import Untestable, setups_of
from commutant.testgen.state_text import state_text
from commutant.testgen.valuation import Valuation, sorts_of


class MadeTest(NamedTuple):
    """A test: its id, its line in a corpus, and the process of each call."""

    id: str
    line: str
    processes: tuple[int, ...]


class Materializer:
    """Makes tests of one set of calls."""

    def __init__(self, interface: type[Interface], calls: tuple[str, ...], level: str) -> None:
        self.interface = interface
        self.calls = calls
        self.level = level
        self.signatures: tuple[CallSignature, ...] = tuple(interface.signature(call) for call in calls)
        self.sorts = sorts_of(interface)
        indices = range(len(calls))
        self._set_name = "-".join(calls)
        self._process_parameters = [signature.process_parameter for signature in self.signatures]
        self._orders = [(order, encode(order)) for order in permutations(indices)]
        self._symmetries = [o for o, _ in self._orders if all(calls[o[i]] == calls[i] for i in indices)]
        self._process_positions = [
            None
            if signature.process_parameter is None
            else list(signature.parameters).index(signature.process_parameter)
            for signature in self.signatures
        ]
        self._seen: set[str] = set()
        self.has_searched = False
        self._setups = setups_of(interface)  # type: ignore[arg-type]  # a class can be hashed, though its instances cannot
        self._shared_calls: dict[Frozen, _Call] = {}

    def lines(self, context: Context, outcome: PathOutcome, path: int, description: str) -> list[MadeTest]:
        """The tests for a class, one per placement in processes; Untestable if there is none.

        Where a state that stands for the class cannot be built, one of smaller numbers is tried, and one with open
        flags on their other side.
        """
        valuation = Valuation(context, self.sorts, outcome.arguments)
        arguments = [list(map(valuation.frozen, given.values())) for given in outcome.arguments]
        placements = self._new_placements(context, outcome, arguments)
        if not placements:
            return []
        about = f'","level":"{self.level}","path":{path},"class":{encode(description)},'
        try:
            return self._lines(valuation, outcome, arguments, placements, about)
        except Untestable as untestable:
            for unusual in (False, True):
                valuation = Valuation(context, self.sorts, unusual=unusual)
                arguments = [list(map(valuation.frozen, given.values())) for given in outcome.arguments]
                with contextlib.suppress(Untestable):
                    return self._lines(valuation, outcome, arguments, placements, about)
            raise untestable

    def count(self, context: Context, outcome: PathOutcome) -> int:
        """How many tests a class has if it has a set-up, one per placement; they are not made, and are none any more
        for `lines`."""
        valuation = Valuation(context, self.sorts, outcome.arguments)
        arguments = [list(map(valuation.frozen, given.values())) for given in outcome.arguments]
        return len(self._new_placements(context, outcome, arguments))

    def _new_placements(
        self, context: Context, outcome: PathOutcome, arguments: Sequence[Sequence[Frozen]]
    ) -> list[tuple[int, ...]]:
        """The placements of a class that are no mirror images of tests before."""
        return [
            processes
            for processes in self._placements(arguments)
            if not self._is_mirror_image(context, outcome, processes)
        ]

    def _lines(
        self,
        valuation: Valuation,
        outcome: PathOutcome,
        arguments: Sequence[Sequence[Frozen]],
        placements: Sequence[tuple[int, ...]],
        about: str,
    ) -> list[MadeTest]:
        wanted = valuation.frozen_state(outcome.initial)
        built, names = self._setups.of(wanted, self._gone(wanted, arguments))
        self.has_searched = self.has_searched or built.is_found
        calls = [self._call(core, given, built.start, names) for core, given in enumerate(arguments)]
        try:
            observe = built.observation(valuation, names)
            orders = ",".join(self._outcomes(built.start, [call.under_test for call in calls], observe))
        except Endless:
            raise
        except ModelFault as fault:
            raise Untestable(str(fault), state_text(built.start.state, zeros=True)) from None
        rest = f'"setup":{built.text},"observe":{observe.text},"orders":[{orders}]}}'
        lines = []
        for processes in placements:
            content = f'"calls":[{",".join(self._place(calls, processes))}],{rest}'
            test_id = id_of(self._set_name, f"{{{content}".encode())
            lines.append(MadeTest(test_id, f'{{"id":"{test_id}{about}{content}', processes))
        return lines

    def _gone(self, wanted: Frozen, arguments: Sequence[Sequence[Frozen]]) -> tuple[OpaqueValue, ...]:
        """The values that only an implementation can have picked, of which arguments speak and the state does not."""
        if not self._setups.takes_handles:
            return ()
        here = set(_opaque_values(wanted))
        return tuple(dict.fromkeys(v for given in arguments for v in _opaque_values(tuple(given)) if v not in here))

    def _call(
        self, core: int, given: Sequence[Frozen], start: Start, names: Mapping[OpaqueValue, OpaqueValue]
    ) -> _Call:
        """The call of this core with its arguments, as the state has them that was reached."""
        key: Frozen = (core, *given)
        numbered: Sequence[OpaqueValue] = ()
        if self._setups.takes_handles:
            given, numbered = [_renamed(value, names) for value in given], start.numbered.values
            key = (core, start.numbered, *given)
        call = self._shared_calls.get(key)
        if call is None:
            signature = self.signatures[core]
            arguments = dict(zip(signature.parameters, map(thaw, given), strict=True))
            shown = self._setups.arguments(signature, self._process_parameters[core], arguments, numbered)
            under_test = self._setups.model.call_under_test(core, signature.name, arguments)
            call = self._shared_calls[key] = _Call(under_test, shown)
        return call

    def _is_mirror_image(self, context: Context, outcome: PathOutcome, processes: tuple[int, ...]) -> bool:
        """Whether exchanging calls of the same name gives a class that has been seen.

        Values are renamed in the order of the calls, integers as small as can be: what else they were would depend on
        which call comes first.
        """
        if len(self._symmetries) == 1:
            return False
        keys: set[str] = set()
        for order in self._symmetries:
            valuation = Valuation(context, self.sorts)
            arguments = [list(map(valuation.frozen, outcome.arguments[index].values())) for index in order]
            wanted = valuation.frozen_state(outcome.initial)
            renamed: dict[int, int] = {}
            places = [renamed.setdefault(processes[index], len(renamed)) for index in order]
            canonical = Canonical(_opaque_values(tuple(map(tuple, arguments))) if self._setups.takes_handles else ())
            key = repr((arguments, places, canonical.state(thaw(wanted))))
            if key in self._seen:
                return True
            keys.add(key)
        self._seen |= keys
        return False

    def _outcomes(self, start: Start, calls: Sequence[CallUnderTest], observe: Observed) -> Iterator[str]:
        """Each order of the calls with its acceptable outcomes, as JSON; UsageError if no outcome is common to all."""
        common: set[str] | None = None
        for order, order_text in self._orders:
            acceptable = self._setups.model.outcomes(start, calls, order, observe)
            common = set(acceptable) if common is None else common.intersection(acceptable)
            yield f'{{"order":{order_text},"outcomes":[{",".join(acceptable)}]}}'
        if not common:
            shown = ", ".join(
                f"{one.call}({', '.join(f'{k}={v!r}' for k, v in one.arguments.items())})" for one in calls
            )
            raise Untestable(
                f"{self.interface.__name__}: {self._set_name} was found to commute, but concrete runs of the model "
                "differ by order: does a call depend on something outside the state, or does `equivalent` hide what "
                "`observe` shows?",
                f"{state_text(start.state)}: {shown}",
            )

    def _placements(self, given: Sequence[Sequence[Frozen]]) -> list[tuple[int, ...]]:
        """The process of each call: what the model says, or else every way to share processes."""
        positions = self._process_positions
        if all(position is None for position in positions):
            return _growth_strings(len(given))
        return [tuple([0 if p is None else int(a[p]) for a, p in zip(given, positions, strict=True)])]

    def _place(self, calls: Sequence[_Call], processes: Sequence[int]) -> Iterator[str]:
        """The calls under test, each in its process, as JSON."""
        for core, (call, process) in enumerate(zip(calls, processes, strict=True)):
            place = process, processes[:core].count(process)
            text = call.texts.get(place)
            if text is None:
                text = call.texts[place] = encode(builtins(PlacedCall(call.under_test.call, call.shown, *place, core)))
            yield text


def _opaque_values(value: Frozen) -> Iterator[OpaqueValue]:
    """The opaque values in a frozen value, in order."""
    if isinstance(value, OpaqueValue):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _opaque_values(part)


def _renamed(value: Frozen, names: Mapping[OpaqueValue, OpaqueValue]) -> Frozen:
    """A frozen value with opaque values under other names."""
    if isinstance(value, OpaqueValue):
        return names.get(value, value)
    return tuple([_renamed(part, names) for part in value]) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class _Call:
    """A call under test: as the model runs it, its arguments as JSON, and the texts of it by process and thread."""

    under_test: CallUnderTest
    shown: Mapping[str, Value]
    texts: dict[tuple[int, int], str] = field(default_factory=dict)


def _growth_strings(length: int) -> list[tuple[int, ...]]:
    """Every way to put `length` calls into processes, processes numbered by first use."""
    strings: list[tuple[int, ...]] = [(0,)]
    for _ in range(length - 1):
        strings = [(*s, process) for s in strings for process in range(max(s) + 2)]
    return strings
