"""Conflicting tests run again under other hash seeds, and what goes away there is counted as collision."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from commutant.campaign.verdict import Outcome
from commutant.report.terminal import print_heat_map
from commutant.runs import Check
from commutant.runs.directory import load_run
from commutant.support.errors import RunError
from commutant.targets.base import WindowRecord
from tests.campaign.fakes import FakeTarget, clean, conflicting, make_corpus

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
CORPUS = make_corpus(8)
IDS = [test.id for test in CORPUS.tests]


def only(chosen, script, otherwise=clean):
    """Windows of the chosen tests show one thing, all others another."""
    return lambda job, before: (script if job.test.id in chosen else otherwise)(job, before)


def check(target, directory):
    with Check.new(CORPUS, target, jobs=2, directory=directory) as campaign:
        campaign.start(lambda _: None)
        return campaign.run()


@pytest.fixture
def target():
    """Tests 0 to 4 conflict; under the second seed 0 and 1 still do, under the third 0 and 2."""
    made = FakeTarget(only(IDS[:5], conflicting))
    made.others = [FakeTarget(only((IDS[0], IDS[1]), conflicting)), FakeTarget(only((IDS[0], IDS[2]), conflicting))]
    return made


def test_a_conflict_that_another_seed_removes_is_a_collision(target, tmp_path, capsys):
    run = check(target, tmp_path / "run")
    verdicts = {verdict.test_id: verdict for verdict in run.verdicts()}
    assert {IDS.index(name) for name, verdict in verdicts.items() if verdict.collision} == {1, 2, 3, 4}
    assert {IDS.index(name) for name, one in verdicts.items() if one.outcome is Outcome.CONFLICTING} == {0, 1, 2, 3, 4}
    # 6 windows of each seed that shows it, 2 of the one that does not; who has gone is not asked for again.
    assert [verdicts[name].windows for name in IDS] == [18, 14, 8, 8, 8, 2, 2, 2]
    # One line is ignored in each window that shows the conflict: those of all seeds are added up.
    assert [verdicts[name].ignored.get("timer", 0) for name in IDS] == [18, 12, 6, 6, 6, 0, 0, 0]
    assert (run.summary.conflicting, run.summary.collisions) == (5, 4)
    assert run.summary.windows == 18 + 14 + 3 * 8 + 3 * 2
    assert all(other.started and other.closed for other in target.others)
    document = json.loads((run.path / "summary.json").read_text())
    jsonschema.validate(document, json.loads((SCHEMAS / "summary.schema.json").read_text()))
    schema = json.loads((SCHEMAS / "verdict.schema.json").read_text())
    for line in (run.path / "verdicts.jsonl").read_text().splitlines():
        jsonschema.validate(json.loads(line), schema)
    from rich.console import Console

    print_heat_map(document, Console(width=200))
    assert "4 of them not repeated under other seeds" in capsys.readouterr().out


def test_a_target_without_seeds_has_no_collisions(tmp_path):
    run = check(FakeTarget(conflicting), tmp_path / "run")
    assert (run.summary.conflicting, run.summary.collisions, run.summary.windows) == (8, 0, 48)


def test_no_seed_is_asked_once_no_conflict_is_left(tmp_path):
    target = FakeTarget(only(IDS[:2], conflicting))
    target.others = [FakeTarget(clean), FakeTarget(conflicting)]
    run = check(target, tmp_path / "run")
    assert (run.summary.conflicting, run.summary.collisions) == (2, 2)
    assert [other.started for other in target.others] == [True, False]


def test_no_seed_excuses_a_wrong_result(tmp_path):
    target = FakeTarget(only(IDS[:2], conflicting))
    target.others = [FakeTarget(only(IDS[:1], lambda job, before: WindowRecord(job, wrong="stat returned 2")))]
    run = check(target, tmp_path / "run")
    assert (run.summary.wrong_result, run.summary.collisions) == (1, 1)


def test_a_run_that_ends_while_other_seeds_are_asked_goes_on(target, tmp_path, monkeypatch):
    def die(job, before):
        raise RunError("the machine is gone")

    good = target.others
    target.others = [FakeTarget(die)]
    with pytest.raises(RunError, match="commutant resume"):
        check(target, tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert not run.complete and {verdict.test_id for verdict in run.verdicts()} == set(IDS[5:])
    assert target.others[0].closed
    target.others = good
    monkeypatch.setattr("commutant.runs.check.load_target", lambda argument: target)
    with Check.resume(tmp_path / "run", 1) as campaign:
        campaign.start(lambda _: None)
        assert campaign.run().summary.collisions == 4
