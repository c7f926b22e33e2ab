"""The ranking of shared variables."""

from __future__ import annotations

from msgspec import structs

from commutant.campaign.verdict import Outcome
from commutant.mtrace.finding import Access, Finding, LineField, Touched
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


def test_a_variable_says_what_else_of_its_line_is_in_use_mostly() -> None:
    alone = _finding("struct x", "n", "true", ("get", "put"))
    fields = (LineField(0, 8, "struct x.n"), LineField(8, 8, "struct x.flags"), LineField(16, 8, "struct x.name"))
    beside_flags = structs.replace(alone, fields=fields, touched=(Touched(0, ((8, 4),), ()), Touched(1, ((8, 4),), ())))
    beside_name = structs.replace(alone, fields=fields, touched=(Touched(1, (), ((16, 4),)),))
    judged = [_judged("open", one) for one in (alone, alone, alone, beside_name, beside_flags, beside_flags)]
    (variable,) = rank_shared(judged)
    assert variable.line_in_use == "flags (read by both cores)"
    (without,) = rank_shared([_judged("open", alone)])
    assert without.line_in_use == ""


def test_nothing_shared_ranks_nothing() -> None:
    assert rank_shared([]) == []
