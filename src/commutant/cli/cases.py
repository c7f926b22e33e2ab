"""The cases in which calls commute and do not, each with a smallest example, for `commutant analyze`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commutant.analyzer import SetAnalysis


def lines_of(one: SetAnalysis, *, why: bool) -> Iterator[str]:
    """The lines below a set's counts; with `why` also two orders that a caller can tell apart, where there are."""
    from commutant.testgen import Examples, difference

    examples = Examples(one.interface, one.calls)
    for text, cube in one.cases:
        yield f"  - {text}"
        example = examples.of(cube, commutes=True)
        if example is not None:
            yield f"      {example}"
    for what, cases in one.refused_cases:
        yield f"  not commuting, {what}:"
        for text, cube in cases:
            yield f"  - {text}"
            example = examples.of(cube, commutes=False)
            if example is not None:
                yield f"      {example}"
                found = difference(example) if why else None
                if found is not None:
                    for order, shown in zip(found.orders, found.shown, strict=True):
                        yield f"        {', then '.join(order)}: {shown}"
