"""The ranking of shared variables."""

from __future__ import annotations

from commutant.campaign.verdict import Outcome
from commutant.mtrace.finding import Access, Finding
from commutant.report.data import JudgedTest
from commutant.report.ranking import rank_shared
from tests.report.invented import pair_test


def _finding(name: str, field: str, sharing: str, functions: tuple[str, str]) -> Finding:
    first, second = (Access(core, True, 0, 8, function, (function,)) for core, function in enumerate(functions))
    return Finding(0, name, field, "true" if sharing == "true" else "false", first, second)


def _judged(call: str, *findings: Finding) -> JudgedTest:
    return JudgedTest(pair_test(call, "stat", ("a", "b"), 1, ""), Outcome.CONFLICTING, findings)


def test_variables_count_tests_once_and_sets_once() -> None:
    get, put = _finding("struct x", "n", "true", ("get", "put")), _finding("struct x", "n", "false", ("get", "get"))
    other = _finding("lock", "", "true", ("lock", "lock"))
    ranking = rank_shared([_judged("open", get, put), _judged("open", get, other), _judged("link", get)])
    first, second = ranking
    assert (first.name, first.tests, first.only, first.sets, first.sharing) == ("struct x.n", 3, 2, 2, "both")
    assert first.functions == ("get", "put")
    assert (second.name, second.tests, second.only, second.sets, second.sharing) == ("lock", 1, 0, 1, "true")


def test_ties_are_sorted_by_name_so_that_two_runs_agree() -> None:
    names = [
        variable.name
        for variable in rank_shared([_judged("open", *(_finding(n, "", "true", ("f", "f")) for n in "cab"))])
    ]
    assert names == ["a", "b", "c"]


def test_nothing_shared_ranks_nothing() -> None:
    assert rank_shared([]) == []
