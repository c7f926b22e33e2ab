"""What a path shows does not depend on the paths before it, though it keeps what they have made."""

from __future__ import annotations

import pytest

from commutant.analyzer import CallSet
from commutant.analyzer.condition import facts_of
from commutant.lang import load_interface
from commutant.symbolic import Context, Infeasible, explore
from commutant.symbolic.engine import install

SETS = [
    ("open", "rename"),
    ("pipe", "write"),
    ("mmap", "memwrite"),
    ("close", "read"),
    ("link", "unlink", "stat"),
    ("open", "close", "pwrite"),
]


@pytest.mark.parametrize("calls", SETS, ids="-".join)
def test_a_path_alone_shows_the_same(calls: tuple[str, ...]) -> None:
    """Each fifth path is run again in a context that knows nothing but its decisions."""
    model = load_interface("posix18")
    seen = 0
    for number, path in enumerate(explore(CallSet(model, calls).run)):
        if number % 5:
            continue
        alone = Context(path.decisions)
        before = install(alone)
        try:
            outcome = CallSet(model, calls).run(alone)
        except Infeasible:
            outcome = None
        finally:
            install(before)
        assert (outcome is None) == (path.result is None)
        if outcome is not None and path.result is not None:
            assert (outcome.difference, outcome.choices) == (path.result.difference, path.result.choices)
        assert facts_of(alone, alone.trail) == facts_of(path.context, path.decisions)
        assert facts_of(alone, alone.restrictions) == facts_of(path.context, path.context.restrictions)
        assert alone.int_solution() == path.context.int_solution()
        seen += 1
        if seen == 60:
            break
    assert seen >= 5
