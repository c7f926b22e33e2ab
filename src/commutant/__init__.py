"""Commutant finds scalability bugs: cache lines that two calls contend for although their interface lets them commute.

    import commutant as c

    c.analyze("figure4")                      # when do calls commute?
    c.check("names", target="linux")          # which of those cases share memory?
    c.conform("names", target="scalefs")      # does the target do what the model says?
    c.gate("runs/new", baseline="runs/old")   # does a run find what an earlier one did not?
    c.locks(["./program"])                    # which locks serialise independent work?
    c.compare_locks("old.json", "new.json")   # what became of them with a change?

Each answer prints well in a terminal and in a notebook (`commutant.api.answers`). Models are written with
`commutant.lang`; `commutant.testing` has the same checks for pytest.
"""

from __future__ import annotations

__version__ = "0.2.0"

from typing import TYPE_CHECKING

from commutant.support import CommutantError, RunError, UsageError

if TYPE_CHECKING:
    from commutant.api import analyze, check, compare_locks, conform, gate, generate, locks

_QUESTIONS = ("analyze", "check", "compare_locks", "conform", "gate", "generate", "locks")

__all__ = [
    "CommutantError",
    "RunError",
    "UsageError",
    "__version__",
    "analyze",
    "check",
    "compare_locks",
    "conform",
    "gate",
    "generate",
    "locks",
]


def __getattr__(name: str) -> object:
    """The questions, imported when one is asked for the first time: `import commutant` takes milliseconds."""
    if name in _QUESTIONS:
        from commutant import api

        return getattr(api, name)
    raise AttributeError(f"module 'commutant' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What the package offers, those that are not imported yet included."""
    return sorted(set(globals()) | set(__all__))
