"""The table of `make recall`: rows that were chosen before any run, and a page that has each of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import recall
from commutant.remedy import Change, Saving, TransferProof, Transfers, TransferTally, Way
from recall import Answer, page, plan, read_table, still_open
from steps import StepFailed
from tests.repository.tree import ROOT

TALLY = TransferTally(3, Transfers(8.0, 8.0), Transfers(6.0, 6.0), Transfers(6.5, 6.5), 0.5, 3)
PROOF = TransferProof(32, TALLY, replace(TALLY, tests=2, median_error=0.01, right=2))

ROW = """
[kernels]
"6.1" = "linux-image-amd64"
[runs.files]
interface = "posix18"
calls = "stat"
options = ""
seconds = 10
megabytes = 1
[[row]]
id = "one"
title = "a change"
commit = "abc"
version = "6.11"
claim = "none"
field = "dentry.d_lockref"
"""

RUN = 'run = "files"\nbefore = "6.1"\nchange = ["--move", "dentry.d_lockref"]\nmix = "stat=1"\n'


def test_twenty_changes_stand_in_the_table_and_all_of_them_on_the_page() -> None:
    table = read_table(ROOT / "bench" / "recall.toml")
    text = (ROOT / "docs" / "notes" / "recall.md").read_text()
    assert len(table.rows) >= 20
    assert [row.id for row in table.rows if f"`{row.id}`" not in text and row.title not in text] == []


def test_time_and_space_are_said_for_each_run() -> None:
    table = read_table(ROOT / "bench" / "recall.toml")
    lines = plan(table)
    assert len(lines) == len(
        {(row.run, kernel) for row in table.rows if row.run for kernel in (row.before, row.after) if kernel}
    )
    assert all("s of two processors" in line and "MB" in line for line in lines)


def test_a_row_that_was_run_has_what_was_found_and_one_that_was_not_has_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "recall.toml"
    path.write_text(ROW + RUN + ROW[ROW.index("[[row]]") :].replace("one", "two") + 'not_run = "no model"\n')
    table = read_table(path)
    text = page(table, {"one": Answer(3, 0.25, 2.0, 8.0, 1, PROOF)})
    assert "Of 2 changes 1 were run. Of these the tool finds 1 and predicts 1" in text
    assert "| `one` | 6.11 | `dentry.d_lockref` | stat=1 | yes | 2.00 of 8.0 in 3 tests | 25.0 % | 1 |" in text
    assert "| 8.0, 6.0, 6.5 in 3 tests; 0.50, 3 | 8.0, 6.0, 6.5 in 2 tests; 0.01, 2 |" in text
    assert "| a change (abc) | 6.11 | `dentry.d_lockref` | no model |" in text


def saving(way: Way, place: str, share: float, *neighbours: str) -> Saving:
    found = Transfers(share, share)
    change = Change(way, place)
    return Saving((change,), found, Transfers(2.0, 2.0), Transfers(8.0, 8.0), ("a", "b"), (), None, (), 1, neighbours)


def test_what_is_open_has_each_line_once_and_nothing_that_was_mended_since(tmp_path: Path) -> None:
    path = tmp_path / "recall.toml"
    mended = RUN.replace("6.1", "6.12")
    path.write_text(ROW.replace('"6.1" =', '"6.12" =') + mended)
    best = [
        saving(Way.MOVE, "dentry.d_lockref", 0.3, "dentry.d_iname"),
        saving(Way.MOVE, "dentry.d_iname", 0.3, "dentry.d_lockref"),
        saving(Way.DROP_WRITE, "cred.non_rcu", 0.1, "cred.user_ns"),
        saving(Way.PART, "inode.i_count,inode.i_writecount", 0.2, "inode.i_fop"),
        saving(Way.MOVE, "inode.i_count", 0.1),
    ]
    table = read_table(path)
    left = still_open(table, {"files": best})
    assert [one.change.place for one in left] == ["inode.i_count,inode.i_writecount", "cred.non_rcu"]
    text = page(table, {}, left)
    assert (
        "| do not write cred.non_rcu where that changes nothing, away from `cred.user_ns` | files | 10.0 % | 2.00 of "
        "8.0 in 2 tests | 1 | `6.12/cred-non-rcu` |"
    ) in text
    open_row = path.read_text().replace('version = "6.11"', 'version = "open"')
    path.write_text(open_row)
    assert still_open(read_table(path), {"files": best})[0].change.place == "dentry.d_lockref"


def test_a_row_that_saves_nothing_or_gets_worse_is_no_hit(tmp_path: Path) -> None:
    path = tmp_path / "recall.toml"
    path.write_text(ROW + RUN)
    worse = replace(PROOF, every=replace(TALLY, counted=Transfers(9.0, 9.0)), alike=None)
    text = page(read_table(path), {"one": Answer(3, 0.0, 0.0, 8.0, None, worse)})
    assert "finds 1 and predicts 0" in text and "there 0 have fewer" in text
    assert "8.0, 6.0, 9.0 in 3 tests; 0.50, 3 | - |" in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a table of rows, runs and kernels"),
        ("[[row]", "expected a table of rows, runs and kernels"),
        (ROW, "one has neither a run nor a reason"),
        (ROW + 'colour = "red"', "'colour' is none of id, title"),
        (ROW + 'run = "other"', "one names the run 'other'; expected one of files"),
        (ROW + RUN.replace('"6.1"', '"5.0"'), "one names the kernel '5.0'; expected one of 6.1"),
        (ROW + 'run = "files"\nbefore = "6.1"', "one lacks what it takes to run it"),
        (ROW + RUN + ROW[ROW.index("[[row]]") :] + RUN, "expected an id of its own"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "recall.toml"
    path.write_text(text)
    with pytest.raises(StepFailed, match=problem) as error:
        read_table(path)
    assert "\n" not in str(error.value)


def test_a_kernel_of_another_series_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"target_description": {"kernel": "6.12.1-amd64"}}')
    recall.check_kernel(tmp_path, "6.12")
    with pytest.raises(StepFailed, match=r"expected Linux 6.1, got 6.12.1-amd64"):
        recall.check_kernel(tmp_path, "6.1")


def test_an_unknown_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "say", lambda what: None)
    with pytest.raises(StepFailed, match="expected --plan, --kept or nothing, got --fast"):
        recall.main(["--fast"])
