"""Ignoring rules: named, switched off by the target argument, and then no longer applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant import _native
from commutant.lang import load_interface
from commutant.runs import Check
from commutant.runs.content import facts
from commutant.runs.directory import Run
from commutant.support.errors import UsageError
from commutant.targets.linux.target import parse_options
from commutant.targets.registry import load_target
from commutant.targets.rules import take_rules_off, tracer_arguments
from commutant.targets.scalefs import parse_options as parse_scalefs
from commutant.testgen import generate


def test_every_rule_can_be_switched_off() -> None:
    for rule in _native.RULES:
        rest, off = take_rules_off("x", {f"ignore_{rule}": "off", "fs": "ramfs"})
        assert (rest, off) == ({"fs": "ramfs"}, {rule})
        assert tracer_arguments(off) == [f"ignore_{rule}=off"]
        assert parse_options("linux", {f"ignore_{rule}": "off"}).rules_off == {rule}
        assert parse_scalefs("scalefs", {f"ignore_{rule}": "off"}).rules_off == {rule}
        assert take_rules_off("x", {f"ignore_{rule}": "on"}) == ({}, frozenset())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"ignore_all": "off"}, "unknown rule 'all'; expected one of runner, interrupt, "),
        ({"ignore_": "off"}, "unknown rule ''"),
        ({"ignore_softirq": "no"}, "ignore_softirq=no: expected on or off"),
    ],
)
def test_bad_rules_are_one_line(options: dict[str, str], expected: str) -> None:
    for parse in (parse_options, parse_scalefs):
        with pytest.raises(UsageError, match=f"^target 'x': {expected}"):
            parse("x", options)


def _run(argument: str, directory: Path) -> Run:
    corpus = generate(load_interface("names"), ("access",), 2, level="path", jobs=1)
    with Check.new(corpus, load_target(argument), jobs=1, directory=directory) as check:
        check.start(lambda _doing: None)
        return check.run()


@pytest.mark.parametrize(("target", "rule"), [("scalefs", "runner"), ("linux", "runner")])
def test_a_rule_that_is_off_leaves_nothing_out(target: str, rule: str, tmp_path: Path) -> None:
    """The runner's own lines, by which the cores hand windows to each other, are in every window."""
    run = _run(f"{target}:ignore_{rule}=off", tmp_path / "off")
    assert rule not in run.summary.ignored
    assert run.info.target_description["rules_switched_off"] == [rule]
    assert facts(run)["rules switched off"] == rule
    usual = _run(target, tmp_path / "on")
    assert usual.summary.conflicting <= run.summary.conflicting
    assert "rules_switched_off" not in usual.info.target_description
