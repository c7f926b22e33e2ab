"""Tests as lines: by their calls, by what they share, by what that follows from."""

from __future__ import annotations

from msgspec import structs

from commutant.campaign import Outcome
from commutant.report import causes, chosen_tests, lines_of_tests, rows_of_tests
from tests.campaign.fakes import make_test
from tests.report.invented import invented_run

TESTS = invented_run().tests


def test_calls_name_a_set_or_what_sets_are_made_of() -> None:
    assert {judged.calls for judged in chosen_tests(TESTS, ("rename", "link"), None, None)} == {("link", "rename")}
    three = {"link", "rename", "open"}
    assert all(set(judged.calls) <= three for judged in chosen_tests(TESTS, tuple(three), None, None))


def test_a_pattern_names_what_is_shared() -> None:
    found = chosen_tests(TESTS, None, "struct cred.*", None)
    assert found == [one for one in TESTS if any(each.name.startswith("struct cred.") for each in one.findings)]


def test_a_cause_is_the_first_of_a_test() -> None:
    found = chosen_tests(TESTS, None, None, "i_rwsem")
    assert found and all("i_rwsem" in causes(judged)[0].title for judged in found)
    assert not chosen_tests(TESTS, None, None, "no such cause")


def test_a_line_says_what_a_test_does_and_what_comes_first() -> None:
    judged = chosen_tests(TESTS, None, None, "i_rwsem")[0]
    (line,) = lines_of_tests([judged])
    assert line.startswith(judged.test.id) and "conflict" in line and line.endswith("\n")
    assert f"<- {causes(judged)[0].title}, " in line


def test_rows_that_read_alike_say_in_which_state_they_are():
    one, other = make_test(0), make_test(0)
    there = structs.replace(other, setup=())
    in_class = structs.replace(one, id="x", equivalence_class="old ≠ new; n0 is a directory")
    first, second = rows_of_tests([(one, Outcome.CONFLICTING), (there, None)])
    assert first.endswith("  after open(name=n0, creat)") and second.endswith("  after nothing")
    assert rows_of_tests([(one, None), (in_class, None)])[1].endswith("  where n0 is a directory")
    assert rows_of_tests([(one, None), (make_test(1), None)])[0].endswith("rename(name=n0)"), "no two read alike"
