"""Comparing runs: every test and every finding is in the right list, and a run does not differ from itself."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from commutant.campaign.verdict import Outcome
from commutant.compare import Suppressions, compare_runs, confirmed, examples_of, failing, findings_of
from commutant.compare.runs import BADNESS
from commutant.mtrace.finding import LineField
from commutant.report.data import JudgedTest, RunReport
from commutant.support.errors import UsageError
from tests.campaign.fakes import make_finding, make_test
from tests.report.invented import invented_run, summary_of

FINDINGS = {name: make_finding(name, (f"get_{name}", f"put_{name}")) for name in "abc"}
"""Each in functions of its own: none has moved from another."""


def run_of(*tests, **summary):
    return RunReport(summary_of(tests, **summary), tests)


def judged(number, outcome, *names):
    return JudgedTest(make_test(number), Outcome(outcome), tuple(FINDINGS[name] for name in names))


def names(groups):
    return [group.example.field for group in groups]


def test_better_worse_and_why():
    base = run_of(
        judged(0, "conflict_free"),
        judged(1, "conflicting", "a"),
        judged(2, "conflicting", "a"),
        judged(3, "conflict_free"),
    )
    new = run_of(
        judged(3, "wrong_result"),
        judged(2, "conflicting", "a", "b"),
        judged(1, "conflict_free"),
        judged(0, "conflicting", "a", "c"),
    )
    comparison = compare_runs(base, new)
    assert [(test.test_id, test.before, test.after) for test in comparison.worse] == [
        (make_test(3).id, "conflict_free", "wrong_result"),
        (make_test(0).id, "conflict_free", "conflicting"),
    ]
    assert [test.variables for test in comparison.worse] == [(), ("struct dentry.a", "struct dentry.c")]
    assert [(test.test_id, test.variables) for test in comparison.better] == [(make_test(1).id, ("struct dentry.a",))]
    (one,) = comparison.sets
    assert (one.tests, one.before, one.after, one.worse, one.better) == (4, 2, 2, 2, 1)
    assert one.causes == {"struct dentry.a": 1, "struct dentry.c": 1}
    assert one.reliefs == {"struct dentry.a": 1}
    assert (one.shared_before, one.shared_after) == (2, 4) == comparison.shared
    assert one.gained == {"struct dentry.a": 1, "struct dentry.b": 1, "struct dentry.c": 1}
    assert one.lost == {"struct dentry.a": 1}
    assert (names(comparison.appeared), names(comparison.went), names(comparison.stayed)) == (["b", "c"], [], ["a"])


def test_what_comes_and_goes_neither_appears_nor_went():
    """An unstable test's finding was seen: a majority in the other run makes no new finding of it."""
    unstable = run_of(judged(0, "unstable", "a"), judged(1, "conflicting", "b"))
    stands = run_of(judged(0, "conflicting", "a"), judged(1, "conflicting", "b"))
    there, back = compare_runs(unstable, stands), compare_runs(stands, unstable)
    assert (names(there.appeared), names(there.stayed)) == ([], ["a", "b"])
    assert (names(back.went), len(back.better)) == ([], 1)


def test_tests_of_one_run_alone_are_counted_apart():
    base = run_of(judged(0, "conflicting", "a"), judged(1, "conflicting", "b"), judged(4, "skipped"))
    new = run_of(judged(0, "conflicting", "a"), judged(2, "conflicting", "c"), judged(4, "conflict_free"))
    comparison = compare_runs(base, new)
    assert (comparison.common, comparison.only_base, comparison.only_new) == (1, 1, 2)
    assert names(comparison.went) == [], "b was not looked for in NEW"
    assert names(comparison.appeared) == ["c"], "nobody knew c"


def test_two_runs_without_a_common_test_are_one_line():
    for other in (run_of(judged(1, "conflict_free")), run_of(judged(0, "skipped")), run_of()):
        with pytest.raises(UsageError, match=r"^the two runs share no judged test: names on linux and x on y; [^\n]+$"):
            compare_runs(
                run_of(judged(0, "conflict_free")),
                dataclasses.replace(other, summary={**other.summary, "interface": "x", "target": "y"}),
            )


def test_a_run_does_not_differ_from_itself():
    run = invented_run()
    comparison = compare_runs(run, run)
    assert not comparison.tests and not comparison.appeared and not comparison.went
    assert comparison.common == sum(1 for one in run.tests if one.outcome in BADNESS)
    assert len(comparison.stayed) == len(findings_of(run, [], Suppressions()))


outcomes = st.sampled_from(sorted(BADNESS))
verdicts = st.dictionaries(st.integers(1, 6), st.tuples(outcomes, st.sets(st.sampled_from("abc"), min_size=1)))


def random_run(verdicts):
    has = ("conflicting", "unstable")
    return run_of(
        judged(0, "conflict_free"),
        *(
            judged(number, outcome, *(sorted(found) if outcome in has else ()))
            for number, (outcome, found) in verdicts.items()
        ),
    )


@given(base=verdicts, new=verdicts)
def test_turned_round_worse_is_better_and_appeared_is_went(base, new):
    there = compare_runs(random_run(base), random_run(new))
    back = compare_runs(random_run(new), random_run(base))
    assert {test.test_id for test in there.worse} == {test.test_id for test in back.better}
    assert (there.common, there.only_base, there.only_new) == (back.common, back.only_new, back.only_base)
    assert sum(one.worse - one.better for one in there.sets) == sum(one.better - one.worse for one in back.sets)
    went_back = {group.fingerprint for group in back.went}
    assert went_back <= {group.fingerprint for group in there.appeared}
    if not there.only_new:
        assert went_back == {group.fingerprint for group in there.appeared}
    # The plain definition, over sets.
    seen = {name for outcome, found in base.values() if outcome in ("conflicting", "unstable") for name in found}
    stands = {name for outcome, found in new.values() if outcome == "conflicting" for name in found}
    assert set(names(there.appeared)) == stands - seen
    assert set(names(there.stayed)) == stands & seen


def test_several_baselines_know_what_any_of_them_saw():
    run = run_of(judged(0, "conflicting", "a", "b", "c"))
    baselines = [run_of(judged(0, "conflicting", "a")), run_of(judged(0, "unstable", "b"))]
    assert names(failing(findings_of(run, baselines, Suppressions()))) == ["c"]
    assert names(failing(findings_of(run, baselines[:1], Suppressions()))) == ["b", "c"]
    assert len(failing(findings_of(run, [], Suppressions()))) == 3


def false_sharing(reader_field, writer_field="i_size", functions=("inode_permission", "shmem_link")):
    """Core 0 writes a field while core 1 reads a neighbour."""
    one = make_finding(f"{reader_field} | {writer_field}", functions)
    return structs.replace(
        one,
        sharing="false",
        first=structs.replace(one.first, write=True, offset=16, size_bytes=8),
        second=structs.replace(one.second, write=False, offset=32),
        fields=(LineField(16, 8, f"struct inode.{writer_field}"), LineField(32, 8, f"struct inode.{reader_field}")),
    )


def test_another_neighbour_of_a_known_written_field_is_not_new():
    """Two runs of one kernel differed in a dozen of such, by which path a look-up took."""
    known = run_of(JudgedTest(make_test(0), Outcome.CONFLICTING, (false_sharing("i_rdev"),)))
    for finding, is_new in (
        (false_sharing("i_rdev"), False),
        (false_sharing("i_sb", functions=("generic_permission", "shmem_rename2")), False),
        (false_sharing("i_sb", writer_field="i_mtime", functions=("dget", "dput")), True),
        (structs.replace(false_sharing("i_rdev"), sharing="true", field="i_size"), True),
    ):
        run = run_of(JudgedTest(make_test(0), Outcome.CONFLICTING, (finding,)))
        assert [group.is_new for group in findings_of(run, [known], Suppressions())] == [is_new]
    elsewhere = run_of(
        *known.tests, JudgedTest(make_test(1, ("open", "open")), Outcome.CONFLICTING, (false_sharing("i_sb"),))
    )
    assert len(compare_runs(known, elsewhere).appeared) == 1, "other calls"


def test_examples_are_run_again_and_decide():
    run = run_of(*(judged(number, "conflicting", "a") for number in range(8)), judged(9, "conflicting", "b"))
    groups = failing(findings_of(run, [run_of(judged(0, "conflict_free"))], Suppressions()))
    tests = examples_of(groups, run)
    assert [test.id for test in tests] == [make_test(number).id for number in (0, 1, 2, 3, 4, 9)]
    again = run_of(judged(0, "conflict_free"), judged(1, "unstable", "a"), judged(9, "conflict_free"))
    assert names(confirmed(groups, again)) == ["a"]
