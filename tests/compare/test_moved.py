"""Findings that only moved are neither new nor gone, in `diff` as in the gate; what is more than moved is new."""

from __future__ import annotations

import io

import pytest
from msgspec import structs
from rich.console import Console

from commutant.campaign.verdict import Outcome
from commutant.compare import (
    Suppressions,
    compare_runs,
    failing,
    findings_of,
    gate,
    print_run_comparison,
    run_comparison_document,
    run_comparison_markdown,
    side_of_run,
)
from commutant.documents import builtins
from commutant.report.data import JudgedTest, RunReport
from tests.campaign.fakes import make_finding, make_test
from tests.report.invented import summary_of


def run_of(*tests):
    """A run of tests of one set of calls, each with its findings."""
    judged = [
        JudgedTest(make_test(number), Outcome.CONFLICTING if findings else Outcome.CONFLICT_FREE, tuple(findings))
        for number, findings in enumerate(tests)
    ]
    return RunReport(summary_of(judged), judged)


OLD = make_finding("non_rcu", ("__alloc_file", "put_cred"))
RENAMED = make_finding("non_rcu", ("init_file", "put_cred"))
"""Linux 6.12 has a new name for what 6.1 does in __alloc_file."""
OTHER_FIELD = make_finding("non_rcu_new", ("__alloc_file", "put_cred"))


@pytest.mark.parametrize("now", [RENAMED, OTHER_FIELD], ids=["another function", "another variable"])
def test_another_name_is_moved_and_fails_no_gate(now):
    base, new = run_of([OLD], [OLD], []), run_of([now], [now], [])
    comparison = compare_runs(base, new)
    assert not comparison.appeared and not comparison.went and not comparison.stayed
    (moved,) = comparison.moved
    assert moved.example is now and moved.former.functions == ("__alloc_file", "put_cred") and not moved.is_new
    gated = gate(new, [base], Suppressions())
    assert gated and not gated.new and [group.example for group in gated.moved] == [now]


def test_what_is_there_besides_is_new():
    """The old place is still shared, so that the other one came; and in one test nothing went for it."""
    for new in (run_of([OLD, RENAMED]), run_of([OLD, OTHER_FIELD])):
        comparison = compare_runs(run_of([OLD]), new)
        assert len(comparison.appeared) == 1 and not comparison.moved and len(comparison.stayed) == 1
    mixed = compare_runs(run_of([OLD], []), run_of([RENAMED], [RENAMED]))
    assert [group.example for group in mixed.appeared] == [RENAMED] and not mixed.moved
    assert len(failing(findings_of(run_of([RENAMED], [RENAMED]), [run_of([OLD], [])], Suppressions()))) == 1


def test_what_went_from_one_test_and_moved_in_another_went():
    comparison = compare_runs(run_of([OLD], [OLD]), run_of([RENAMED], []))
    assert len(comparison.moved) == 1 and [group.example for group in comparison.went] == [OLD]


def test_another_kind_of_sharing_has_not_moved():
    apart = structs.replace(RENAMED, sharing="false")
    assert len(compare_runs(run_of([OLD]), run_of([apart])).appeared) == 1


def test_several_places_that_became_one_have_moved():
    second = make_finding("non_rcu", ("get_cred", "get_cred"))
    comparison = compare_runs(run_of([OLD, second]), run_of([RENAMED]))
    assert len(comparison.moved) == 1 and not comparison.went


def test_moved_findings_are_shown_with_both_names():
    base, new = run_of([OLD]), run_of([RENAMED])
    comparison = compare_runs(base, new)
    sides = [side_of_run(name, run, True) for name, run in (("x", base), ("y", new))]
    out = io.StringIO()
    print_run_comparison(comparison, *sides, Console(file=out, width=200))
    assert "Findings: 0 appeared, 0 went, 1 moved, 0 stayed" in out.getvalue()
    former = "struct dentry.non_rcu in __alloc_file and put_cred"
    assert f"moved: {former} is now struct dentry.non_rcu in init_file and put_cred" in out.getvalue()
    assert "0 findings went, 1 moved, 0 stayed" in run_comparison_markdown(comparison, *sides)
    document = builtins(run_comparison_document(comparison, *sides, Suppressions()))
    assert [entry["former"] for entry in document["moved"]] == [former]


def test_what_another_run_saw_again_fails_by_name():
    base, new = run_of([], []), run_of([OLD], [make_finding("d_flags")])
    asked = []

    def again(tests):
        asked.extend(test.id for test in tests)
        return run_of([OLD], [])

    gated = gate(new, [base], Suppressions(), again)
    assert asked == [make_test(0).id, make_test(1).id] and not gated
    assert gated.lines() == [
        "2 new findings, 1 of them seen again:",
        "  struct dentry.non_rcu in __alloc_file and put_cred (link, rename; 1 test)",
    ]
    passed = gate(new, [base], Suppressions(), lambda tests: run_of([], []))
    assert passed and passed.lines() == ["2 new findings, 0 of them seen again"]
    assert gate(new, [new], Suppressions(), again).lines() == []


def test_a_gate_names_ten_findings_and_counts_the_rest():
    many = run_of([make_finding(f"field{number}") for number in range(12)])
    lines = gate(many, [], Suppressions()).lines()
    assert lines[0] == "12 findings:" and len(lines) == 12 and lines[-1] == "  and 2 more"
