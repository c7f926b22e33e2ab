"""For each pair of calls that a change freed a C program that makes them again and again, for a large machine.

What a proof counts are tests that share no line any more; how much faster calls are is for a machine with many
processors to say, which runs the loops before and after the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from commutant.campaign import Verdict
from commutant.corpus import TestCase
from commutant.remedy.evidence import ProvenRun
from commutant.remedy.prove import Proof
from commutant.report import Loop, loop_of, loop_program
from commutant.support import plural


@dataclass(frozen=True, slots=True)
class Loops:
    """Programs by file name, and the sets of calls of which no freed test can be repeated."""

    programs: Mapping[str, str]
    left_out: tuple[str, ...]


def loops(
    proof: Proof, old: ProvenRun, new: ProvenRun, tests: Mapping[str, TestCase], base: Mapping[str, Verdict]
) -> Loops:
    """The loops of all sets of calls with a freed test; of each set the test that shows most, a predicted one first."""
    best: dict[str, Loop] = {}
    counts: dict[str, int] = {}
    aimed = proof.as_foretold or proof.freed
    for test in sorted(proof.freed, key=lambda one: (one not in aimed, one)):
        case = tests[test]
        counts[case.set_name] = counts.get(case.set_name, 0) + 1
        known = best.get(case.set_name)
        if known is not None and known.test.id in aimed and test not in aimed:
            continue
        loop = loop_of(case)
        if loop is not None and (known is None or loop.weight < known.weight):
            best[case.set_name] = loop
    programs = {}
    for name, loop in sorted(best.items()):
        shared = ", ".join(sorted({finding.name for finding in base[loop.test.id].findings}))
        many = plural(counts[name], "test")
        evidence = [
            f"{many} of these calls shared memory on {old.system} and share none on {new.system}.",
            f"There this one shared: {shared}.",
        ]
        programs[f"{name}.c"] = loop_program(loop, evidence)
    return Loops(programs, tuple(sorted(counts.keys() - best.keys())))
