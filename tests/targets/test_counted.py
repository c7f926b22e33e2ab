"""What counts as shared: ignoring rules that the target argument switches off, and neighbouring lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant import _native
from commutant.lang import load_interface
from commutant.runs import Check
from commutant.runs.content import facts
from commutant.runs.directory import Run
from commutant.support.errors import UsageError
from commutant.targets.counted import USUAL, Counted, take_counted, tracer_arguments
from commutant.targets.linux.target import parse_options
from commutant.targets.registry import load_target
from commutant.targets.scalefs import parse_options as parse_scalefs
from commutant.testgen import generate


def test_every_rule_can_be_switched_off() -> None:
    for rule in _native.RULES:
        rest, off = take_counted("x", {f"ignore_{rule}": "off", "fs": "ramfs"})
        assert (rest, off) == ({"fs": "ramfs"}, Counted(frozenset({rule})))
        assert tracer_arguments(off) == [f"ignore_{rule}=off"]
        assert parse_options("linux", {f"ignore_{rule}": "off"}).counted == off
        assert parse_scalefs("scalefs", {f"ignore_{rule}": "off"}).counted == off
        assert take_counted("x", {f"ignore_{rule}": "on"}) == ({}, USUAL)


def test_neighbours_count_if_they_are_asked_for() -> None:
    rest, counted = take_counted("x", {"neighbours": "on", "fs": "ramfs"})
    assert (rest, counted) == ({"fs": "ramfs"}, Counted(neighbours=True))
    assert tracer_arguments(counted) == ["neighbours=on"]
    assert counted.described() == {"neighbours": True}
    assert take_counted("x", {"neighbours": "off"}) == ({}, USUAL)
    assert tracer_arguments(USUAL) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"ignore_all": "off"}, "unknown rule 'all'; expected one of runner, interrupt, "),
        ({"ignore_": "off"}, "unknown rule ''"),
        ({"neighbours": "yes"}, "neighbours=yes: expected on or off"),
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
