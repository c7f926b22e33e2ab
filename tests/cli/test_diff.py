"""`commutant diff`, and the gates that compare: what is printed, and which exit code it gives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from commutant.corpus.file import write_corpus
from commutant.mtrace import NAMING
from tests.campaign.fakes import make_corpus

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
ACCEPT = '[[suppress]]\nvariable = "struct dentry.*"\nreason = "agreed"\nexpires = {}\n'


def one_line(answer):
    (line,) = answer.stderr.splitlines()
    return line


def document(answer):
    assert answer.stderr == ""
    value = json.loads(answer.stdout)
    jsonschema.validate(value, json.loads((SCHEMAS / "diff.schema.json").read_text()))
    return value


@pytest.fixture
def runs(commutant):
    """Two runs of one corpus: `clean` without findings, `shared` with one in every test."""
    for name, outcome in (("clean", "clean"), ("shared", "conflicting")):
        assert commutant("check", "corpus.jsonl.gz", "--target", f"fake:outcome={outcome}", "-o", name).returncode == 0


def test_runs_as_text(commutant, runs):
    answer = commutant("diff", "clean", "shared")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "10 tests in both: 10 worse, 0 better" in answer.stdout
    assert "Findings: 2 appeared, 0 went, 0 moved, 0 stayed" in answer.stdout
    for part in ("Calls that became worse", "Calls that share more"):  # of either set of calls in it, all five tests
        assert answer.stdout.split(part)[1].split("\n\n")[0].count("struct dentry.d_lockref (5)") == 2
    back = commutant("diff", "shared", "clean").stdout
    assert "0 worse, 10 better" in back and "0 appeared, 2 went, 0 moved, 0 stayed" in back


def test_runs_as_json(commutant, runs):
    value = document(commutant("diff", "clean", "shared", "--format", "json"))
    assert (value["kind"], value["common"], len(value["worse"]), len(value["appeared"])) == ("runs", 10, 10, 2)
    assert value["sets"][0]["causes"] == [{"name": "struct dentry.d_lockref", "tests": 5}]
    assert value["worse"][0]["before"] == "conflict_free"
    same = document(commutant("diff", "shared", "shared", "--format", "json"))
    assert (len(same["stayed"]), same["appeared"], same["went"], same["worse"]) == (2, [], [], [])


def test_runs_as_markdown_into_a_new_file(commutant, runs):
    answer = commutant("diff", "clean", "shared", "--format", "markdown", "-o", "summary.md")
    assert (answer.returncode, answer.stdout) == (0, "summary.md\n")
    assert Path("summary.md").read_text().startswith("### 2 new findings\n")
    again = commutant("diff", "clean", "shared", "-o", "summary.md")
    assert again.returncode == 2 and "summary.md exists already" in one_line(again)


def test_text_goes_into_a_file_too(commutant, runs):
    assert commutant("diff", "clean", "shared", "-o", "a.txt").returncode == 0
    assert commutant("report", "shared", "-o", "b.txt").returncode == 0
    assert "10 worse" in Path("a.txt").read_text() and "Most shared" in Path("b.txt").read_text()
    assert "\x1b" not in Path("a.txt").read_text() + Path("b.txt").read_text()


def test_two_runs_on_one_page(commutant, runs):
    answer = commutant("diff", "clean", "shared", "--format", "html", "-o", "both.html")
    assert (answer.returncode, answer.stdout) == (0, "both.html\n")
    page = Path("both.html").read_text()
    assert page.count('class="map"') == 2 and "names on fake:outcome=clean" in page


def test_corpora(commutant, runs, folder):
    write_corpus(make_corpus(8), folder / "smaller.jsonl.gz")
    text = commutant("diff", "smaller.jsonl.gz", "corpus.jsonl.gz")
    assert text.returncode == 0 and "8 in both, 2 added, 0 removed" in text.stdout
    value = document(commutant("diff", "corpus.jsonl.gz", "smaller.jsonl.gz", "--format", "json"))
    assert (value["kind"], value["common"], value["added"], value["removed"]) == ("corpora", 8, 0, 2)
    markdown = commutant("diff", "corpus.jsonl.gz", "smaller.jsonl.gz", "--format", "markdown").stdout
    assert "0 tests added, 2 removed" in markdown
    (folder / "made").mkdir()
    (folder / "smaller.jsonl.gz").rename(folder / "made/corpus.jsonl.gz")
    assert "2 added" in commutant("diff", "made", "corpus.jsonl.gz").stdout


def test_new_findings_fail_the_gate_known_and_accepted_ones_do_not(commutant, runs, folder):
    gate = ("--fail-on", "new")
    assert commutant("diff", "clean", "shared", *gate).returncode == 1
    assert commutant("diff", "shared", "clean", *gate).returncode == 0
    assert commutant("diff", "shared", "shared", *gate).returncode == 0
    (folder / "accept.toml").write_text(ACCEPT.format("9999-12-31"))
    accepted = commutant("diff", "clean", "shared", *gate, "--suppress", "accept.toml")
    assert accepted.returncode == 0 and "2 appeared (2 of them accepted)" in accepted.stdout
    (folder / "late.toml").write_text(ACCEPT.format("2020-01-01"))
    late = commutant("diff", "clean", "shared", *gate, "--suppress", "late.toml")
    assert late.returncode == 1
    assert one_line(late) == "late.toml: expired on 2020-01-01: struct dentry.* (agreed)"
    value = json.loads(commutant("diff", "clean", "shared", "--suppress", "late.toml", "--format", "json").stdout)
    assert [entry["expires"] for entry in value["suppressions"]["expired"]] == ["2020-01-01"]
    unused = commutant("diff", "clean", "clean", *gate, "--suppress", "accept.toml")
    assert unused.returncode == 0 and "accept.toml: means no finding any more: struct dentry.*" in one_line(unused)


def test_check_gates_against_a_baseline(commutant, runs, folder):
    def check(outcome, *arguments):
        return commutant("check", "corpus.jsonl.gz", "--target", f"fake:outcome={outcome}", *arguments)

    new = ("--fail-on", "new", "--baseline")
    failed = check("conflicting", *new, "clean")
    assert failed.returncode == 1
    first, *named = failed.stderr.splitlines()
    assert "2 new findings, 2 of them seen again in runs/names-fake-outcome-conflicting-1/again: " in first
    assert len(named) == 2 and all("struct dentry.d_lockref in dget and dput (" in line for line in named)
    again = json.loads(commutant("report", "runs/names-fake-outcome-conflicting-1/again", "--format", "json").stdout)
    assert (again["tests"], again["conflicting"]) == (10, 10)
    assert check("conflicting", *new, "clean", "--baseline", "shared").returncode == 0
    assert check("clean", *new, "shared").returncode == 0
    (folder / "accept.toml").write_text(ACCEPT.format("9999-12-31"))
    assert check("conflicting", *new, "clean", "--suppress", "accept.toml").returncode == 0
    assert check("conflicting", "--fail-on", "findings", "--suppress", "accept.toml").returncode == 0
    assert check("wrong", *new, "clean").returncode == 3


def test_what_an_old_baseline_cannot_tell_is_said(commutant, runs, folder):
    shutil.copytree("clean", "old")
    info = json.loads(Path("old/run.json").read_text())
    assert info.pop("naming") == NAMING, "a run says which names it has"
    Path("old/run.json").write_text(json.dumps(info | {"commutant": "0.1.0"}))
    check = ("check", "corpus.jsonl.gz", "--target", "fake:outcome=clean", "--fail-on", "new", "--baseline")
    for command in (
        (*check, "old"),
        ("diff", "old", "shared"),
        ("report", "shared", "--baseline", "old"),
        ("history", "old", "shared"),
        ("prove", "old", "shared"),
    ):
        answer = commutant(*command)
        assert answer.stderr.startswith("note: old is of an earlier version (commutant 0.1.0)"), (
            command,
            answer.stderr,
        )
    assert "earlier version" not in commutant(*check, "clean").stderr


def test_what_is_new_by_accident_does_not_fail(commutant, runs):
    """Two objects met in a line or a bucket in the first campaign, and did not in the second."""
    accident = ("check", "corpus.jsonl.gz", "--target", "fake:outcome=accident", "--fail-on", "new", "--baseline")
    answer = commutant(*accident, "clean", "-o", "accident")
    assert answer.returncode == 0, answer.stderr
    assert "1 new finding, 0 of them seen again in accident/again" in one_line(answer)
    shown = json.loads(commutant("report", "accident", "--format", "json").stdout)
    assert shown["conflicting"] == 1, "the first campaign's verdict stays as it was"


def test_a_baseline_without_these_tests_is_refused_before_anything_runs(commutant, runs, folder):
    other = make_corpus(2, calls=(("stat", "unlink"),))
    write_corpus(other, folder / "other.jsonl.gz")
    answer = commutant("check", "other.jsonl.gz", "--target", "fake", "--fail-on", "new", "--baseline", "clean")
    assert answer.returncode == 2
    assert one_line(answer).startswith("commutant: clean has none of these tests: it is of names (model 0123abcd)")
    assert not Path("runs").exists()


def test_formats_of_a_run_know_the_baseline(commutant, runs):
    sarif = json.loads(commutant("report", "shared", "--baseline", "clean", "--format", "sarif").stdout)
    assert {result["baselineState"] for result in sarif["runs"][0]["results"]} == {"new"}
    junit = commutant("report", "shared", "--baseline", "shared", "--format", "junit").stdout
    assert 'failures="0"' in junit and 'skipped="10"' in junit
    parquet = commutant("report", "shared", "--format", "parquet", "-o", "table.parquet")
    assert parquet.stdout == "table.parquet\n" and Path("table.parquet").read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["clean"], "Missing argument 'NEW'"),
        (["clean", "missing"], "there is no missing; expected a run directory, a corpus or a recording of locks"),
        (["clean", "/"], "/ has no run.json and no corpus.jsonl.gz"),
        (
            ["clean", "corpus.jsonl.gz"],
            "clean is a run and corpus.jsonl.gz is a corpus: expected two runs, two corpora or two recordings of locks",
        ),
        (["corpus.jsonl.gz", "corpus.jsonl.gz", "--fail-on", "new"], "--fail-on is for runs; these are two corpora"),
        (["corpus.jsonl.gz", "corpus.jsonl.gz", "--suppress", "clean/run.json"], "--suppress is for runs"),
        (["clean", "clean", "--suppress", "clean/run.json"], "clean/run.json is not TOML"),
        (["clean", "clean", "--suppress", "missing"], "cannot read the suppression file missing"),
        (["clean", "damaged"], "damaged/verdicts.jsonl, line 1 is damaged"),
        (["damaged", "clean"], "damaged/verdicts.jsonl, line 1 is damaged"),
        (["clean", "other"], "the two runs share no judged test: names on fake:outcome=clean (model 0123abcd)"),
        (
            ["corpus.jsonl.gz", "clean/run.json"],
            "clean/run.json: expected what `commutant locks --format json` writes: expected schema_version 6, got ",
        ),
        (["clean", "clean", "--format", "html"], "--format html needs -o FILE"),
        (["corpus.jsonl.gz", "corpus.jsonl.gz", "--format", "html", "-o", "x"], "--format html is for runs"),
        (["clean", "clean", "--format", "xml"], "'xml' is not one of"),
        (
            ["clean", "clean", "-o", "missing/x"],
            "missing is no folder; -o takes the name of a new file in one that exists",
        ),
    ],
)
def test_bad_use_is_one_line(commutant, runs, folder, arguments, expected):
    commutant("check", "corpus.jsonl.gz", "--target", "fake", "-o", "damaged")
    (folder / "damaged/verdicts.jsonl").write_text("{}\n")
    write_corpus(make_corpus(2, calls=(("stat", "unlink"),)), folder / "other.jsonl.gz")
    commutant("check", "other.jsonl.gz", "--target", "fake", "-o", "other")
    before = sorted(path.name for path in folder.iterdir())
    answer = commutant("diff", *arguments)
    assert answer.returncode in (2, 3)
    assert expected in one_line(answer)
    assert answer.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_corpus_of_another_version_is_said(commutant, runs, folder):
    other = make_corpus(10)
    write_corpus(type(other)("names", "conflict", "ffff0000", other.tests), folder / "newer.jsonl.gz")
    commutant("check", "newer.jsonl.gz", "--target", "fake", "-o", "newer")
    answer = commutant("diff", "clean", "newer")
    assert answer.returncode == 0
    assert "two versions of the model; only tests that are in both are compared" in one_line(answer)
    assert "10 tests in both: 0 worse" in answer.stdout


def test_an_interrupted_run_is_compared_as_far_as_it_got(commutant, runs, folder):
    (folder / "shared/summary.json").unlink()
    answer = commutant("diff", "clean", "shared")
    assert answer.returncode == 0 and "shared was interrupted after 10 of 10 tests" in one_line(answer)
