"""Planted sharing in libraries: every fault is found, with type, field and both lines, and nothing on its twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.libraries.building import (
    SOURCES,
    accessing_lines,
    both_orders,
    build,
    by_test,
    pair,
    planted,
    session,
    variable,
)

FILES = {"canaries.c": 25, "canaries.cpp": 12, "canaries.rs": 13}
"""Files of canaries, and how many faults each plants."""


@pytest.mark.parametrize("file", FILES)
def test_every_fault_is_found_and_no_twin(file: str, tmp_path: Path) -> None:
    source = SOURCES / file
    faults = planted(source)
    assert len(faults) == FILES[file] and all(fault.lines for fault in faults)
    names = [name for fault in faults for name in (fault.name, f"{fault.name}_twin")]
    tests = [pair(name, ({"core": 0}, {"core": 1})) for name in names]
    with session(build(tmp_path, "canaries", file)) as running:
        records = by_test(list(running.run(both_orders(*tests))))
    wrong = []
    for fault in faults:
        for record in records[fault.name]:
            told = {variable(finding) for finding in record.findings}
            if not any(map(fault.is_named, told)):
                wrong.append(f"{fault.name}: expected {fault.variable}, found {sorted(told)}")
            for finding in record.findings:
                lines = accessing_lines(finding, source)
                if fault.is_named(variable(finding)) and not fault.lines.issuperset(lines):
                    wrong.append(f"{fault.name}: expected lines {sorted(fault.lines)}, found {lines}")
        for record in records[f"{fault.name}_twin"]:
            names = [variable(finding) for finding in record.findings]
            wrong += [f"{fault.name}_twin: found {names}"] if names else []
    assert not wrong, "\n".join(wrong)
