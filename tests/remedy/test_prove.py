"""Proofs: freed as predicted and besides, left, moved apart from new, and the noise of two runs of one system."""

from __future__ import annotations

from commutant.campaign.verdict import Outcome
from commutant.remedy import prove
from commutant.report import JudgedTest
from tests.campaign.fakes import make_finding, make_test


def judged(number: int, *names: str, functions: tuple[str, str] = ("dget", "dput")) -> JudgedTest:
    found = tuple(make_finding(name, functions) for name in names)
    return JudgedTest(make_test(number), Outcome.CONFLICTING if found else Outcome.CONFLICT_FREE, found)


def ids(*numbers: int) -> frozenset[str]:
    return frozenset(make_test(number).id for number in numbers)


def test_freed_left_and_besides_are_told_apart() -> None:
    base = [judged(0, "a"), judged(1, "a"), judged(2, "b"), judged(3)]
    new = [judged(0), judged(1, "a"), judged(2), judged(3)]
    proof = prove(base, new, ids(0, 1))
    assert (proof.as_foretold, proof.besides, proof.not_freed) == (ids(0), ids(2), ids(1))
    assert proof.left == {"struct dentry.a": 1}
    assert proof.shared == (3, 1)
    assert proof.holds and not proof.worse


def test_another_name_in_the_same_functions_is_moved_and_not_new() -> None:
    base = [judged(number, "a") for number in range(9)]
    moved = prove(base, [judged(number, "b") for number in range(9)])
    assert moved.moved == {("struct dentry.a", "struct dentry.b"): 9}
    assert moved.holds
    new = prove(base, [judged(number, "b", functions=("iget", "iput")) for number in range(9)])
    assert (new.new, new.moved, new.holds) == ({"struct dentry.b": 9}, {}, False)
    both = prove(base, [judged(number, "a", "b") for number in range(9)])
    assert (both.new, both.holds) == ({"struct dentry.b": 9}, False)


def test_what_a_second_run_of_the_base_has_is_noise() -> None:
    base = [judged(number) for number in range(40)]
    again = [judged(number, *"n" * (number < 8)) for number in range(40)]
    new = [judged(number, *"n" * (number >= 32)) for number in range(40)]
    assert not prove(base, new).holds
    proof = prove(base, new, again=again)
    assert proof.holds
    assert (proof.noise, proof.worse_floor) == ({"struct dentry.n": 8}, 8)
    more = [judged(number, *"n" * (number >= 16)) for number in range(40)]
    assert prove(base, more, again=again).new == {"struct dentry.n": 24}


def test_what_other_tests_of_the_calls_share_already_is_no_news() -> None:
    base = [judged(0, "n"), *(judged(number) for number in range(1, 20))]
    new = [judged(number, "n") for number in range(20)]
    proof = prove(base, new)
    assert (proof.holds, len(proof.worse), proof.noise) == (True, 19, {"struct dentry.n": 19})
    assert prove(base, new, again=base).new == {"struct dentry.n": 19}


def test_a_wrong_result_is_never_noise() -> None:
    wrong = JudgedTest(make_test(0), Outcome.WRONG_RESULT, (), "stat returned 2")
    proof = prove([judged(0, "a")], [wrong], ids(0))
    assert (proof.holds, proof.wrong, proof.freed) == (False, ids(0), frozenset())


def test_what_is_left_by_noise_alone_is_told_apart() -> None:
    other = ("touch_time", "read_time")
    base = [*(judged(number, "a") for number in range(4)), judged(4, "n", functions=other)]
    new = [
        judged(0, "n", functions=other),  # known from another test of the same calls
        judged(1, "n"),  # the same functions: `a` under another name
        judged(2, "a", "n", functions=other),
        judged(3),
        judged(4),
    ]
    proof = prove(base, new, ids(0, 1, 2, 3))
    assert (proof.not_freed, proof.by_noise) == (ids(0, 1, 2), ids(0))
    news = [judged(number, "x", functions=other) for number in range(4)] + [judged(4)]
    assert prove(base, news, ids(0, 1, 2, 3)).by_noise == ids(0, 1, 2, 3)  # in so few tests it is noise
    many = prove(
        [judged(number, "a") for number in range(9)], [judged(n, "x", functions=other) for n in range(9)], ids(0)
    )
    assert (many.new, many.by_noise) == ({"struct dentry.x": 9}, frozenset())
