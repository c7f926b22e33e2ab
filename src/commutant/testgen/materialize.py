"""From one class of states to a test: concrete values, the set-up that builds them, and what each order must show.

The state is made of ordinary values, the model's `setup` says how to build it (see `setups`), and the model itself runs
the calls from there in every order (see `concrete`). What is text of a corpus in the end is text from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from commutant.analyzer.commute import Outcome
from commutant.errors import UsageError
from commutant.lang.interface import CallSignature, Interface
from commutant.symbolic import Context
from commutant.testgen.canonical import Canonical
from commutant.testgen.concrete import Observation, Start
from commutant.testgen.frozen import Frozen, thaw
from commutant.testgen.setups import setups_of
from commutant.testgen.testcase import PlacedCall, call_json, encode, id_of
from commutant.testgen.valuation import Valuation, sorts_of


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
        self._seen: set[str] = set()
        self._setups = setups_of(interface)  # type: ignore[arg-type]  # a class can be hashed, though its instances cannot
        self._call_texts: dict[Frozen, str] = {}

    def lines(self, context: Context, outcome: Outcome, path: int, description: str) -> list[str]:
        """The tests for a class as lines of a corpus, one per placement in processes; NoSetup if there is none."""
        valuation = Valuation(context, self.sorts)
        frozen = [{name: valuation.frozen(value) for name, value in given.items()} for given in outcome.arguments]
        wanted = valuation.frozen_state(outcome.initial)
        arguments = [{name: thaw(value) for name, value in given.items()} for given in frozen]
        given = [list(values.values()) for values in frozen]
        placements = [
            processes
            for processes in self._placements(arguments)
            if not self._is_mirror_image(context, outcome, processes, given, wanted)
        ]
        if not placements:
            return []
        built = self._setups.of(wanted)
        observe = built.observation(valuation)
        orders = ",".join(self._outcomes(built.start, arguments, observe))
        rest = f'"setup":{built.text},"observe":{observe.text},"orders":[{orders}]}}'
        before = f'","level":"{self.level}","path":{path},"class":{encode(description)},'
        lines = []
        for processes in placements:
            content = f'"calls":[{",".join(self._place(frozen, processes))}],{rest}'
            lines.append(f'{{"id":"{id_of(self._set_name, f"{{{content}".encode())}{before}{content}')
        return lines

    def _is_mirror_image(
        self, context: Context, outcome: Outcome, processes: Sequence[int], arguments: Frozen, wanted: Frozen
    ) -> bool:
        """Whether exchanging calls of the same name gives a class that has been seen (values renamed in its order)."""
        if len(self._symmetries) == 1:
            return False
        keys: set[str] = set()
        for order in self._symmetries:
            if keys:  # else this is the order in which the class was valued
                valuation = Valuation(context, self.sorts)
                arguments = [list(map(valuation.frozen, outcome.arguments[index].values())) for index in order]
                wanted = valuation.frozen_state(outcome.initial)
            renamed: dict[int, int] = {}
            places = [renamed.setdefault(processes[index], len(renamed)) for index in order]
            key = repr((arguments, places, Canonical().state(thaw(wanted))))
            if key in self._seen:
                return True
            keys.add(key)
        self._seen |= keys
        return False

    def _outcomes(self, start: Start, arguments: Sequence[Mapping[str, Any]], observe: Observation) -> Iterator[str]:
        """Each order of the calls with its acceptable outcomes, as JSON; UsageError if no outcome is common to all."""
        calls = list(zip(self.calls, arguments, strict=True))
        common: set[str] | None = None
        for order, order_text in self._orders:
            acceptable = self._setups.model.outcomes(start, calls, order, observe)
            common = set(acceptable) if common is None else common.intersection(acceptable)
            yield f'{{"order":{order_text},"outcomes":[{",".join(acceptable)}]}}'
        if not common:
            shown = ", ".join(f"{call}({', '.join(f'{k}={v!r}' for k, v in given.items())})" for call, given in calls)
            raise UsageError(
                f"{self.interface.__name__}: {shown} was found to commute, but concrete runs of the model differ by "
                "order: does a call depend on something outside the state, or does `equivalent` hide what `observe` "
                "shows?"
            )

    def _placements(self, arguments: Sequence[Mapping[str, Any]]) -> list[tuple[int, ...]]:
        """The process of each call: what the model says, or else every way to share processes."""
        parameters = self._process_parameters
        if all(parameter is None for parameter in parameters):
            return _growth_strings(len(self.calls))
        return [tuple([int(a[p]) if p else 0 for a, p in zip(arguments, parameters, strict=True)])]

    def _place(self, frozen: Sequence[Mapping[str, Frozen]], processes: Sequence[int]) -> Iterator[str]:
        """The calls under test, each in its process, as JSON."""
        for core, (given, process) in enumerate(zip(frozen, processes, strict=True)):
            thread = processes[:core].count(process)
            key = (core, process, thread, *given.values())
            text = self._call_texts.get(key)
            if text is None:
                signature = self.signatures[core]
                values = {name: thaw(value) for name, value in given.items()}
                shown = self._setups.arguments(signature, signature.process_parameter, values)
                placed = PlacedCall(signature.name, shown, process, thread, core)
                text = self._call_texts[key] = encode(call_json(placed))
            yield text


def _growth_strings(length: int) -> list[tuple[int, ...]]:
    """Every way to put `length` calls into processes, processes numbered by first use."""
    strings: list[tuple[int, ...]] = [(0,)]
    for _ in range(length - 1):
        strings = [(*s, process) for s in strings for process in range(max(s) + 2)]
    return strings
