"""The front door for Python programs and notebooks: one function per question, each with an answer that prints well.

`commutant` itself offers all of these: `import commutant as c; c.check("names", target="scalefs")`.
"""

from commutant.api.answers import Answer, Checked, Conditions, Conformed, GateAnswer, LocksCompared, LocksSeen, Tests
from commutant.api.questions import analyze, check, compare_locks, conform, gate, generate, locks

__all__ = [
    "Answer",
    "Checked",
    "Conditions",
    "Conformed",
    "GateAnswer",
    "LocksCompared",
    "LocksSeen",
    "Tests",
    "analyze",
    "check",
    "compare_locks",
    "conform",
    "gate",
    "generate",
    "locks",
]
