"""Groups of findings by variable: the short form of a list with one entry per set of calls and pair of functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from commutant.report.groups import FindingGroup, by_weight


@dataclass(slots=True)
class Variable:
    """One variable and the groups that name it, heaviest first; `sets` are their sets of calls."""

    name: str
    groups: list[FindingGroup] = field(default_factory=list)

    @property
    def sets(self) -> list[tuple[str, ...]]:
        """The sets of calls, each once, in the order of the groups."""
        return list(dict.fromkeys(group.fingerprint.calls for group in self.groups))

    @property
    def tests(self) -> int:
        """Tests of all groups added up; one that shows the variable in two ways counts twice."""
        return sum(group.tests for group in self.groups)

    @property
    def functions(self) -> list[str]:
        """The functions that met there, most frequent first."""
        counts: Counter[str] = Counter()
        for group in self.groups:
            for function in group.functions:
                counts[function] += group.tests
        return sorted(counts, key=lambda function: (-counts[function], function))


def by_variable(groups: Iterable[FindingGroup]) -> list[Variable]:
    """The variables, those with most tests first."""
    variables: dict[str, Variable] = {}
    for group in by_weight(groups):
        variables.setdefault(group.name, Variable(group.name)).groups.append(group)
    return sorted(variables.values(), key=lambda variable: (-variable.tests, variable.name))
