"""One test in the terminal and as JSON."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from commutant.campaign.verdict import Outcome as Judgement
from commutant.corpus import ExpectedOutcome, Order, PlacedCall, TestCase, encode
from commutant.corpus.words import order_text, placement_text, sentence, value_text
from commutant.report import JudgedTest, json_of_test, print_test
from tests.report.invented import HOSTILE_NAMES, hostile_run, pair_test, shared_line
from tests.report.snapshots import assert_snapshot


def _shown(test: TestCase, judged: JudgedTest | None = None, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_test(test, console, judged)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_test_with_its_findings(width: int) -> None:
    test = pair_test("link", "rename", ("n0", "n1"), 2, "old.0 ≠ src.1; both exist")
    findings = tuple(shared_line(index, "link", "rename") for index in (0, 2))
    assert_snapshot(f"show-{width}.txt", _shown(test, JudgedTest(test, Judgement.CONFLICTING, findings), width))


def test_a_test_whose_orders_differ_shows_each_and_every_choice() -> None:
    calls = tuple(PlacedCall("take", {"count": index}, 0, index, index) for index in (0, 1))
    orders = (
        Order((0, 1), (ExpectedOutcome(({"seq": [1, 2]}, None), ()), ExpectedOutcome(({"errno": "EAGAIN"}, True), ()))),
        Order((1, 0), (ExpectedOutcome((0, {"time": 3}), ()),)),
    )
    text = _shown(TestCase("take-take-0", "full", 7, "any", calls, (), (), orders))
    assert_snapshot("show-orders.txt", text)


def test_a_wrong_result_is_told() -> None:
    test = pair_test("stat", "stat", ("n0", "n0"), 1, "")
    assert "stat gave EIO" in _shown(test, JudgedTest(test, Judgement.WRONG_RESULT, (), "stat gave EIO"))


def test_values_in_words() -> None:
    values = [0, -1, True, False, None, {"errno": "ENOENT"}, {"sort": "Inum", "id": 2}, {"time": 4}, {"seq": [1, True]}]
    assert [value_text(value) for value in values] == (
        ["0", "-1", "true", "false", "-", "ENOENT", "Inum#2", "time 4", "[1, true]"]
    )
    assert value_text({"struct": {"ino": {"sort": "Inum", "id": 0}, "nlink": 1}}) == "ino=Inum#0 nlink=1"


def test_who_calls_is_said() -> None:
    threads = pair_test("open", "open", ("a", "b"), 1, "")
    processes = pair_test("open", "open", ("a", "b"), 2, "")
    assert (placement_text(threads.calls), placement_text(processes.calls)) == ("threads", "processes")
    beginning, end = "make one call each, after 2 set-up steps", "; a caller sees the same in every order."
    assert sentence(2, 1, 2, same=True) == f"Two threads of one process {beginning}{end}"
    assert sentence(3, 3, 2, same=False) == f"Three processes {beginning}."
    assert order_text(threads.calls, (1, 0)) == "open 1, then open 0"


@pytest.mark.parametrize("judged", hostile_run().tests, ids=range(len(HOSTILE_NAMES)))
def test_hostile_names_stay_names(judged: JudgedTest) -> None:
    text = _shown(judged.test, judged)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "x" * 500 not in text


@pytest.mark.parametrize("judged", hostile_run().tests, ids=range(len(HOSTILE_NAMES)))
def test_json_holds_names_as_they_are_in_ascii(judged: JudgedTest) -> None:
    text = json_of_test(judged.test, judged)
    assert text.isascii()
    document = json.loads(text)
    line = json.loads(encode(judged.test.to_json()))
    assert document["calls"] == line["calls"]
    assert document["outcome"] == "conflicting"
    assert document["findings"][0]["object"] == judged.findings[0].object
    assert json.loads(json_of_test(judged.test)) == {"schema_version": 1, **line}
