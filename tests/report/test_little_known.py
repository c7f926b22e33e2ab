"""Runs of which less is known: of an earlier version, without names, without types, without a common cause."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from commutant.campaign import Outcome
from commutant.cli.main import run as commutant
from commutant.mtrace import Access, Finding
from commutant.report import (
    by_weight,
    causes,
    group_findings,
    json_of_test,
    junit,
    lines_of_tests,
    print_first,
    print_run,
    print_test,
    rank_causes,
    run_markdown,
    sarif,
    write_html,
)
from commutant.report.data import JudgedTest, RunReport
from tests.report.invented import pair_test, summary_of
from tests.report.test_formats import SARIF

KEPT = Path(__file__).with_name("run_of_an_earlier_version.tar.xz")
OPEN, UNTOLD = pair_test("open", "open", ("a", "b"), 2, "any"), "common cause can be found"


def finding(object_: str, function: str, under: str = "", field: str = "") -> Finding:
    sides = [Access(core, True, 0, 8, function, (f"{function}+0x1",)) for core in (0, 1)]
    return Finding(0x1000, object_, field, "true", *sides, under=under)


# A kernel without types: symbols name functions and variables, and nothing else has a name, locks neither.
WITHOUT_TYPES = (
    finding("unknown", "_raw_spin_lock"),
    finding("unknown", "add_entry", under="unknown"),
    finding("unknown", "remove_entry", under="unknown"),
    finding("unknown", "clear_page"),
    finding("rename_lock", "d_move"),
)
# Neither function nor variable has a name.
WITHOUT_NAMES = (finding("", "0xffffffff81000004"), finding("unknown", "0xffffffff81000104"))
EACH_OF_ITS_OWN = tuple(finding("struct table", f"touch_{name}", field=name) for name in "abcdef")


def run_of(findings: tuple[Finding, ...]) -> RunReport:
    tests = [JudgedTest(OPEN, Outcome.CONFLICTING, findings)]
    return RunReport(summary_of(tests), tests)


def drawn(draw: Callable[[Console], None]) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    draw(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def texts(run: RunReport, page: Path) -> dict[str, str]:
    """All forms of a report; SARIF and JSON are read back."""
    groups = by_weight(group_findings(run.tests).values())
    (judged,) = run.tests
    write_html(run, page)
    found = {
        "text": drawn(lambda console: print_run(run, console)),
        "first": drawn(lambda console: print_first(run.tests, console)),
        "show": drawn(lambda console: print_test(judged.test, console, judged)),
        "list": "".join(lines_of_tests(run.tests)),
        "markdown": run_markdown(run, groups),
        "page": page.read_text(),
        "sarif": sarif(run, groups, True),
        "junit": "".join(junit(run, groups)),
        "json": json_of_test(judged.test, judged),
    }
    SARIF.validate(json.loads(found["sarif"]))
    assert len(json.loads(found["json"])["findings"]) == len(judged.findings)
    return found


def test_a_kernel_without_types_has_locks_without_names(tmp_path: Path) -> None:
    run = run_of(WITHOUT_TYPES)
    first, *others = causes(run.tests[0])
    assert first.title == "the lock unknown" and first.lines == WITHOUT_TYPES[:3]
    assert {other.title for other in others} == {"unknown", "the lock rename_lock"}, "no line is the lock's by its name"
    for form, text in texts(run, tmp_path / "report.html").items():
        assert "unknown" in text, form
        if form in ("text", "first", "show", "list", "markdown", "page"):
            assert "the lock unknown" in text, form


def test_findings_without_names_are_told_as_such(tmp_path: Path) -> None:
    found = texts(run_of(WITHOUT_NAMES), tmp_path / "report.html")
    for form in ("text", "first", "show", "list", "markdown", "page"):
        assert "memory without a name" in found[form], form


def test_a_cause_that_cannot_be_told_is_said_so(tmp_path: Path) -> None:
    run = run_of(EACH_OF_ITS_OWN)
    assert not any(cause.first for cause in rank_causes(run.tests))
    found = texts(run, tmp_path / "report.html")
    for form in ("text", "first", "show", "list", "markdown", "page"):
        assert UNTOLD in found[form], form
        assert "first cause" not in found[form], form


@pytest.fixture(params=["a version before", "the first version"])
def old_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run that was kept: the first version knew no locks over lines and no owners, the one before not whose locks."""
    folder = tmp_path / "run"
    shutil.unpack_archive(KEPT, folder, filter="data")
    lines = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    known = [line["finding"] for line in lines if "finding" in line]
    assert known and not any("under_owner" in one or "lock_number" in one for one in known)
    if request.param == "the first version":
        for one in known:
            del one["under"], one["owner"]
    (folder / "verdicts.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


@pytest.mark.parametrize("form", ["--first", "text", "json", "markdown", "sarif", "junit", "html"])
def test_runs_of_earlier_versions_are_read(old_run: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [form] if form == "--first" else ["--format", form]
    assert commutant(["report", str(old_run), *arguments]) == 0
    shown = (old_run / "report.html").read_text() if form == "html" else capsys.readouterr().out
    assert "non_rcu" in shown or form == "junit"


def test_a_test_of_an_earlier_version_is_shown(old_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in (old_run / "verdicts.jsonl").read_text().splitlines()]
    test = next(line["test"] for line in lines if line.get("outcome") == "conflicting")
    assert commutant(["show", test, "--from", str(old_run)]) == 0
    assert "Fix first: " in capsys.readouterr().out


def test_each_lock_is_told_by_its_name_alone_in_runs_of_earlier_versions() -> None:
    old = structs.replace(finding("struct inode", "touch", "struct inode.i_rwsem", "i_size"), owner="f n0")
    (cause,) = causes(JudgedTest(OPEN, Outcome.CONFLICTING, (old,)))
    assert cause.title == "the lock struct inode.i_rwsem"
