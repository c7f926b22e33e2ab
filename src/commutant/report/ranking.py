"""Which variables are shared most: the list to read first, since one field often spoils hundreds of tests.

The paper finds its causes the same way (section 6.2: "a common source of access conflicts is shared reference counts").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from commutant.mtrace import Finding, Sharing
from commutant.report.data import JudgedTest
from commutant.report.describe import line_in_use
from commutant.report.own_frames import own_function

FUNCTIONS_SHOWN = 2


@dataclass(frozen=True, slots=True)
class SharedVariable:
    """One variable or field, and what its sharing costs.

    `tests` counts tests that it keeps from being conflict-free (each once, however often the variable was touched),
    `only` those of them in which nothing else was shared, so that a repair of this variable alone would free them.
    `sets` counts sets of calls with such a test. `functions` are the functions that touched it, most frequent first.
    `line_in_use` is what else of its line is in use where it is truly shared, in most of its findings that have any.
    """

    name: str
    object: str
    field: str
    tests: int
    only: int
    sets: int
    sharing: Literal["true", "false", "neighbour", "both"]
    functions: tuple[str, ...]
    line_in_use: str = ""


def rank_shared(tests: Iterable[JudgedTest]) -> list[SharedVariable]:
    """All variables that some test's findings name, by falling number of tests, then by name."""
    parts: dict[str, tuple[str, str]] = {}
    broken: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    sets: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    kinds: defaultdict[str, set[Sharing]] = defaultdict(set)
    functions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    beside: defaultdict[str, Counter[str]] = defaultdict(Counter)
    said: dict[int, tuple[Finding, str]] = {}  # by identity: equal findings are mostly one object
    for judged in tests:
        calls = judged.calls
        touched: defaultdict[str, set[str]] = defaultdict(set)
        for finding in judged.findings:
            parts.setdefault(finding.name, (finding.object, finding.field))
            kinds[finding.name].add(finding.sharing)
            _, text = said.get(id(finding)) or said.setdefault(id(finding), (finding, line_in_use(finding)))
            if text:
                beside[finding.name][text] += 1
            touched[finding.name] |= {own_function(finding.first), own_function(finding.second)}
        for name, touching in touched.items():
            broken[name] += 1
            sets[name].add(calls)
            functions[name].update(touching)
            if len(touched) == 1:
                alone[name] += 1
    ranked = sorted(broken, key=lambda name: (-broken[name], name))
    return [
        SharedVariable(
            name,
            *parts[name],
            tests=broken[name],
            only=alone[name],
            sets=len(sets[name]),
            sharing="both" if len(kinds[name]) > 1 else next(iter(kinds[name])),
            line_in_use=min(beside[name], key=lambda text: (-beside[name][text], text), default=""),
            functions=tuple(sorted(functions[name], key=lambda function: (-functions[name][function], function))),
        )
        for name in ranked
    ]
