"""Planted faults: the page's table is the code's, and somebody must find each."""

from __future__ import annotations

import planted_faults


def test_the_page_lists_the_faults_that_the_code_can_plant() -> None:
    page = planted_faults.PAGE.read_text(encoding="utf-8")
    assert page == planted_faults.drawn(page), "scripts/planted_faults.py --write"
    assert len(planted_faults.asked()) >= 120


def test_every_fault_must_be_found_by_a_test() -> None:
    unfound = [name for name, finders in planted_faults.finders().items() if not finders]
    assert set(unfound) <= set(planted_faults.BY_HAND) <= set(planted_faults.asked())


def test_a_fault_that_nobody_plants_is_told() -> None:
    assert "| nobody |" not in planted_faults.table()
    assert "| nobody |" in planted_faults.rows({"x: y": planted_faults.PAGE}, {"x: y": []})[0]
