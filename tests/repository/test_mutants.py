"""`make test-mutants`: which faults it makes, how it counts, and what it does with bad ones. Its runs take hours."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mutants
import mutants_kept
import mutants_python
import mutants_rust
from mutants_kept import Kept, Result
from mutants_woven import Change, offset, weave
from steps import StepFailed
from tests.repository.tree import ROOT


def test_every_crate_and_area_that_is_named_is_there() -> None:
    crates = {path.name for path in (ROOT / "crates").glob("*/*")}
    assert set(mutants_rust.CRATES) | {name for tests in mutants_rust.CRATES.values() for name in tests} <= crates
    for name in mutants_python.AREAS:
        area = mutants_python.Area(name)
        assert area.files and all((ROOT / tests).exists() for tests in area.tests)


def test_a_draw_depends_on_its_seed_and_parts_are_the_whole() -> None:
    every = mutants_python.Area("verdict").every
    whole = mutants_kept.draw(every, 20, 1, (1, 1))
    parts = [mutants_kept.draw(every, 20, 1, (part, 3)) for part in (1, 2, 3)]
    assert sorted(mutant.name for part in parts for mutant in part) == sorted(mutant.name for mutant in whole)
    assert whole == mutants_kept.draw(every, 40, 1, (1, 1))[:20] != mutants_kept.draw(every, 20, 2, (1, 1))


def test_what_survived_is_tried_again_once_tests_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants_kept, "KEPT", tmp_path)
    tests = ROOT / "tests" / "conftest.py"
    kept = Kept("area", [tests])
    kept.add("a", Result("one", "killed", "a test"))
    kept.add("b", Result("two", "survived"))
    assert Kept("area", [tests]).find("b") == Result("two", "survived")
    assert Kept("area", []).find("b") is None
    assert Kept("area", []).find("a") == Result("one", "killed", "a test")


def test_a_score_counts_what_builds_and_makes_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = tmp_path / "equivalent.txt"
    reasons.write_text("# told\na/src/lib.rs: replace f with () # only a hint\n")
    monkeypatch.setattr(mutants_kept, "EQUIVALENT", reasons)
    missed = ["a/src/lib.rs:7:5: replace f with ()", "a/src/lib.rs:9:5: replace g with ()"]
    results = [Result(name, "survived") for name in missed]
    results += [Result(str(number), "killed") for number in range(3)]
    score = mutants_kept.score([*results, Result("x", "timeout"), Result("y", "unviable")], 99)
    assert (score.every, score.killed, score.timed_out, score.unviable, score.equivalent) == (99, 3, 1, 1, 1)
    assert score.missed == missed[1:] and score.counted == 5 and score.percent == 80.0


def test_an_equivalent_mutant_needs_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = tmp_path / "equivalent.txt"
    reasons.write_text("a/src/lib.rs: replace f with ()\n")
    monkeypatch.setattr(mutants_kept, "EQUIVALENT", reasons)
    with pytest.raises(StepFailed, match=r"equivalent.txt: expected `MUTANT # REASON`, got 'a/src/lib.rs: replace f"):
        mutants_kept.score([], 0)


def test_scores_go_into_the_page_in_the_order_of_the_areas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    there = "| old | row |\n| --- | --- |\n| campaign | of another machine, 50.0 % |\n| wire | replaced, 0.0 % |\n"
    page.write_text(f"before\n{mutants_kept.BEGIN}{there}{mutants_kept.END}after\n")
    monkeypatch.setattr(mutants_kept, "KEPT", tmp_path)
    monkeypatch.setattr(mutants_kept, "PAGE", page)
    score = mutants_kept.Score(
        every=9, killed=3, timed_out=0, unviable=0, equivalent=0, missed=["crates/x/a.rs: a || b"]
    )
    for name in ("wire", "verdict", "wire"):
        mutants_kept.keep_score(name, 90, 1, score)
    assert list(json.loads((tmp_path / "scores.json").read_text())) == ["wire", "verdict"]
    mutants_kept.write_page(["verdict", "campaign", "wire"])
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    rows = [line for line in lines if line.startswith("| ") and "%" in line]
    assert [row.split(" ")[1] for row in rows] == ["verdict", "campaign", "wire"]
    assert rows[1] == "| campaign | of another machine, 50.0 % |", "what was not measured here stays"
    assert rows[2].endswith(r"| 9 | 4 | 75.0 % | 90 % | 0 | `a.rs: a \|\| b` |")
    assert re.fullmatch("[0-9a-f]{7,}", rows[2].split(" ")[3]), "the commit"


RUST = b"""pub fn f(a: u64, b: u64) -> bool {
    let \xc3\xa4 = !a;
    match \xc3\xa4 {
        7 => false,
        9 if a > b => true,
        _ => a < b && b == 2,
    }
}
"""


def _change(number: int, line: int, column: int, length: int, text: str, genre: str = "BinaryOperator") -> Change:
    start = offset(RUST.splitlines(keepends=True), line, column)
    return Change(number, start, start + length, text, genre)


def test_switches_are_woven_into_one_text() -> None:
    pytest.importorskip("tree_sitter_rust", reason="comes with `make test-mutants`")
    changes = [
        _change(1, 2, 5, 5, "true", "FnValue"),
        _change(2, 2, 13, 1, "", "UnaryOperator"),
        _change(3, 4, 9, 10, "", "MatchArm"),
        _change(4, 5, 14, 5, "true", "MatchArmGuard"),
        _change(5, 6, 16, 1, "<=", "BinaryOperator"),
        _change(6, 6, 16, 1, ">", "BinaryOperator"),
        _change(7, 6, 20, 2, "||", "BinaryOperator"),
        _change(8, 6, 16, 2, "<<", "BinaryOperator"),  # no operator stands there
    ]
    woven = weave(RUST, changes)
    text = woven.text.decode().replace("crate::one_mutant::is", "is")
    assert "{\n    if is(1) { return true; } let ä = (if is(2) { a } else { !a });" in text
    assert "7 if !is(3)  => false," in text
    assert "9 if (if is(4) { true } else { a > b }) => true," in text
    inner = "(if is(5) { a <= b } else if is(6) { a > b } else { a < b })"
    assert f"_ => (if is(7) {{ a < b || b == 2 }} else {{ {inner} && b == 2 }})," in text
    assert set(woven.pieces) == set(range(1, 8))
    assert woven.arm_behind(woven.text.index(b"match")) == {3} and woven.arm_behind(woven.text.index(b"9 if")) == set()
    first, last = woven.pieces[6]
    assert woven.culprits(first + 1, first + 2) == {6} and woven.culprits(last + 8, last + 9) == {5, 6}


def test_what_stands_in_tests_is_no_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib.rs").write_text("const A: i64 = -1;\n\n#[cfg(test)]\nmod tests {\n    const B: i64 = -1;\n}\n")
    monkeypatch.setattr(mutants_rust, "ROOT", tmp_path)
    found = [
        mutants_rust._can_have_switch(
            {"file": "lib.rs", "function": None, "genre": "UnaryOperator", "span": {"start": {"line": line}}}
        )
        for line in (1, 5)
    ]
    assert found == [True, False], "its constants cannot be built with a switch, and only `cargo test` builds them"


SMALL = """
import json, sys
from pathlib import Path
import mutants_kept, mutants_python
folder = Path(sys.argv[1])
mutants_kept.KEPT = mutants_python.KEPT = folder / "kept"
mutants_python.ROOT, mutants_python.SOURCE = folder, folder / "src" / "commutant"
mutants_python.AREAS["small"] = (("limit.py",), ("tests",))
mutants_python.files_below = lambda *_: []
area = mutants_python.Area("small")
told = {result.mutant: result.outcome for result in area.results(99, 1, (1, 1))}
assert {result.mutant: result.outcome for result in area.results(99, 1, (1, 1))} == told
content = area.files[0].read_bytes()
start = content.index(b"return")
with area.copied():
    area.look_without_mutant()
    for text in sys.argv[2:]:
        mutants_python.GRACE_SECONDS = 3.0 if text.startswith("while") else 60.0
        mutant = mutants_python.Mutant(area.files[0], 2, start, len(content) - 1, "", text)
        told[text] = area.outcome(mutant).outcome
print(json.dumps(told))
"""
"""Tries all mutants of a small package, twice, and then such as have other bodies of its function."""
WORSE = {
    "while True: pass": "timeout",
    "return 1 if len(bytearray(1 << 40)) else 0": "killed",
    "return (": "killed",
    "import os; os._exit(0)": "killed",
    "import os; os.kill(os.getpid(), 9)": "killed",
}
"""Mutants that hang, eat memory, do not compile, or end the process, and what becomes of them."""


def test_mutants_are_tried_once_and_no_mutant_stops_the_others(tmp_path: Path) -> None:
    pytest.importorskip("coverage", reason="comes with `make test-mutants`")
    package, tests = tmp_path / "src" / "commutant", tmp_path / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").touch()
    (package / "limit.py").write_text("def limit(given):\n    return 1 if given > 3 else given * 2\n")
    (tests / "test_limit.py").write_text(
        "from commutant.limit import limit\n\ndef test_limit():\n    assert limit(4) == 1 and limit(2) == 4\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", SMALL, tmp_path, *WORSE],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = json.loads(ended.stdout.splitlines()[-1])
    line = " in return 1 if given > 3 else given * 2"
    assert WORSE.items() <= outcomes.items()
    assert outcomes[f"limit.py:2: given > 3 -> ((given) >= (3)){line}"] == "survived", "no test says what 3 gives"
    assert outcomes[f"limit.py:2: given * 2 -> ((given) + (2)){line}"] == "survived", "2 + 2 is 2 * 2"
    assert outcomes[f"limit.py:2: 1 -> 2{line}"] == "killed"
    assert sum(line.startswith("small ") for line in ended.stdout.splitlines()) == 6, "nothing is tried twice"
    assert not list((tmp_path / "kept").glob("small-*")), "no copy is left"


@pytest.mark.parametrize(
    ("does", "outcome"),
    [
        ("sleep 60 & while :; do :; done", "timeout"),
        (f"exec {sys.executable} -c 'bytearray(1 << 40)'", "killed"),
        ("kill -9 $$", "killed"),
        ("exit 0", "survived"),
    ],
)
def test_a_crates_test_that_a_mutant_lets_hang_or_eat_memory_is_ended(
    does: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants_rust, "GRACE_SECONDS", 0.5)
    test = mutants_rust.Test("does", ("sh", "-c", f"echo $$ > {tmp_path}/group; {does}"), tmp_path)
    result = mutants_rust._outcome("a mutant", mutants_rust.BUILDS[0], 1, [test])
    assert (result.outcome, result.by) == (outcome, "" if outcome == "survived" else "debug: does")
    group = (tmp_path / "group").read_text().strip()
    ends = time.monotonic() + 30
    while living := _living(group):
        assert time.monotonic() < ends, f"left behind: {living}"


def _living(group: str) -> list[str]:
    """The processes of a group that have not ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = file.read_text().rpartition(")")
            state, _, group_of_it = rest.split()[:3]
            if group_of_it == group and state != "Z":
                found.append(name)
    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["everything"], "unknown area 'everything'"),
        (["--part", "3/2"], "--part takes N/M, got '3/2'"),
        (["--count", "0"], "--count takes a number from 1 on, got 0"),
    ],
)
def test_bad_arguments_get_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mutants.main(arguments)
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)
