"""Two recordings of locks compared: one lock for all, then each thread's own data under it, then two locks."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

import commutant
from commutant.compare.locks import LockComparisonDocument, compare_locks, lock_comparison_markdown
from commutant.lock_view.shown import LocksDocument, read_locks
from commutant.support import UsageError
from tests.repository.tree import ROOT

COMMUTANT = ROOT / ".venv" / "bin" / "commutant"
PROGRAM = """
#include <pthread.h>
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
#ifdef COUNTED
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
#endif
static long lengths[2 * 16];
static void *push(void *thread) {
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&queue_lock);
        lengths[APART * 16 * (thread != 0)]++;
        pthread_mutex_unlock(&queue_lock);
#ifdef COUNTED
        pthread_mutex_lock(&count_lock);
        pthread_mutex_unlock(&count_lock);
#endif
    }
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, push, &thread);
    push(0);
    return pthread_join(thread, 0);
}
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMUTANT, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of three versions of a program, as a user makes them."""
    folder = tmp_path_factory.mktemp("recordings")
    (folder / "queue.c").write_text(PROGRAM)
    made = {}
    for name, macros in {"one": ["-DAPART=0"], "apart": ["-DAPART=1"], "two": ["-DAPART=1", "-DCOUNTED"]}.items():
        subprocess.run(["cc", "-g", "-pthread", *macros, "-o", folder / name, folder / "queue.c"], check=True)
        (folder / "queue.c").write_text("\n" + (folder / "queue.c").read_text())  # a change moves lines
        made[name] = folder / f"{name}.json"
        answer = run("locks", "--format", "json", "-o", made[name], "--", folder / name)
        assert answer.returncode == 0, answer.stderr
    return made


def document(base: Path, new: Path) -> dict[str, Any]:
    answer = run("diff", base, new, "--format", "json")
    assert (answer.returncode, answer.stderr) == (0, "")
    value: dict[str, Any] = json.loads(answer.stdout)
    schema = json.loads((ROOT / "docs" / "schemas" / "diff.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(value)
    return value


def test_sections_that_became_disjoint_are_found(recordings: dict[str, Path]) -> None:
    value = document(recordings["one"], recordings["apart"])
    assert (value["kind"], value["only_base"], value["only_new"]) == ("locks", [], [])
    lock = next(one for one in value["locks"] if one["name"] == "queue_lock")
    assert (lock["before"]["acquired"], lock["after"]["acquired"], lock["disjoint"]) == (400, 400, "more")
    assert (lock["before"]["independence_percent"], lock["after"]["independence_percent"]) == (0, 100)
    (caller,) = lock["callers"]
    assert (caller["before"], caller["after"]) == (0, 100) and caller["name"] == "push"
    assert (lock["fields_went"], lock["fields_appeared"]) == (["lengths"], [])
    back = document(recordings["apart"], recordings["one"])
    (changed,) = [one for one in back["locks"] if one["disjoint"] == "less"]
    assert (changed["name"], changed["fields_appeared"]) == ("queue_lock", ["lengths"])


def test_a_lock_that_one_alone_has_is_listed(recordings: dict[str, Path]) -> None:
    value = document(recordings["apart"], recordings["two"])
    assert [one["name"] for one in value["only_new"]] == ["count_lock"] and value["only_base"] == []
    back = document(recordings["two"], recordings["apart"])
    assert [one["name"] for one in back["only_base"]] == ["count_lock"] and back["only_new"] == []


def test_as_text(recordings: dict[str, Path]) -> None:
    answer = run("diff", recordings["one"], recordings["two"])
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "sections are more disjoint in 1, less in 0" in answer.stdout
    assert re.search(r"disjoint pairs \d+\.\d → \d+\.\d %; enough for 1\.0 → \d\.\d of 8 processors", answer.stdout)
    assert re.search(r"more disjoint: push \(0\.0 → 100\.0 %\)", answer.stdout)
    assert "conflict no longer on: lengths" in answer.stdout
    assert re.search(r"Only in NEW\n.*\n.*count_lock", answer.stdout)
    assert "Only in BASE" not in answer.stdout


def test_as_markdown_into_a_new_file(recordings: dict[str, Path], tmp_path: Path) -> None:
    answer = run("diff", recordings["two"], recordings["one"], "--format", "markdown", "-o", tmp_path / "locks.md")
    assert (answer.returncode, answer.stdout) == (0, f"{tmp_path / 'locks.md'}\n")
    shown = (tmp_path / "locks.md").read_text()
    assert shown.startswith("### ") and "sections are more disjoint in 0, less in 1\n" in shown
    assert "| `queue_lock` | " in shown and "<summary>Only in BASE: 1</summary>" in shown
    assert "- `queue_lock`: conflict now on: `lengths`" in shown


def test_from_python(recordings: dict[str, Path]) -> None:
    answer = commutant.compare_locks(recordings["one"], str(recordings["apart"]))
    assert [one.name for one in answer.found.disjoint("more")] == ["queue_lock"]
    assert "conflict no longer on: lengths" in str(answer)
    assert dict(answer.to_json())["kind"] == "locks"
    seen = commutant.locks([str(recordings["one"].with_suffix(""))])
    again = commutant.compare_locks(recordings["one"], seen)
    assert {one.name: one.disjoint for one in again.found.locks}["queue_lock"] == "alike"
    assert (again.found.only_base, again.found.only_new) == ((), ())


def with_figures(recording: LocksDocument, contended: int, milliseconds: int, work: int = 1_000_000) -> LocksDocument:
    """The recording with other waits for its queue lock."""
    lock = next(one for one in recording.locks if one.name == "queue_lock")
    changed = msgspec.structs.replace(
        lock, acquired=10_000, contended=contended, wait_total_nanoseconds=milliseconds * 1_000_000
    )
    return msgspec.structs.replace(recording, instructions=work, waiting_instructions=0, locks=(changed,))


def compared(recording: LocksDocument, before: tuple[int, ...], after: tuple[int, ...]) -> LockComparisonDocument:
    return compare_locks(("a", with_figures(recording, *before)), ("b", with_figures(recording, *after)))


@pytest.mark.parametrize(
    ("before", "after", "waiting"),
    [
        ((1000, 50), (10, 1), "less"),
        ((10, 1), (1000, 50), "more"),
        ((1000, 50), (1000, 50), "alike"),
        ((1000, 50), (950, 40), "alike"),  # less than a tenth
        ((4, 50), (1, 1), "alike"),  # that few differ by chance
        ((1000, 50), (100, 80), "alike"),  # fewer wait, and longer
        ((1000, 50), (2000, 100, 2_000_000), "alike"),  # twice as long a recording
        ((1000, 50), (1000, 50, 4_000_000), "less"),
        ((0, 0), (0, 0, 0), "alike"),
    ],
)
def test_waits_are_compared_per_work_and_by_more_than_chance(
    recordings: dict[str, Path], before: tuple[int, ...], after: tuple[int, ...], waiting: str
) -> None:
    (lock,) = compared(read_locks(recordings["one"]), before, after).locks
    assert lock.waiting == waiting


def test_names_are_shown_safely(recordings: dict[str, Path]) -> None:
    recording = with_figures(read_locks(recordings["one"]), 1, 1)
    evil = msgspec.structs.replace(recording.locks[0], name="<b>\x1b[2J|`x`")
    found = compare_locks(("a", msgspec.structs.replace(recording, locks=(evil,))), ("b\n# c", recording))
    shown = lock_comparison_markdown(found)
    assert r"`` <b>\x1b[2J\|`x` ``" in shown and "\n# c" not in shown


def test_a_recording_that_leaves_locks_out_says_so(recordings: dict[str, Path]) -> None:
    recording = msgspec.structs.replace(with_figures(read_locks(recordings["one"]), 1, 1), classes=40)
    found = compare_locks(("a", recording), ("b", recording))
    assert found.base.counts.endswith("40 classes of locks, 1 of them listed (`commutant locks --top` lists more)")


def test_bad_input_is_one_line(recordings: dict[str, Path], tmp_path: Path) -> None:
    content = recordings["one"].read_text()
    value = json.loads(content)
    kernel = {
        "release": "6.1", "cpu_count": 2, "workload": "w", "workload_seconds": 1, "timed_out": False,
        "named_percent": None, "independence_without_per_cpu_percent": None, "independence_percent": {}, "calls": 0,
        "failed": 0, "handed_over": 0, "read_copy_update_sections": 0, "missing_functions": [], "not_seen": [],
    }  # fmt: skip
    files = {
        "older.json": json.dumps(value | {"schema_version": 5}),
        "cut.json": content[: len(content) // 2],
        "empty.json": "",
        "list.json": "[]",
        "negative.json": json.dumps(value | {"threads": -1}),
        "twice.json": json.dumps(value | {"locks": value["locks"] * 2}),
        "kernel.json": json.dumps(value | {"kernel": kernel}),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    expected = {
        "older.json": "expected what `commutant locks --format json` writes: expected schema_version 6, got 5",
        "cut.json": "expected what `commutant locks --format json` writes: ",
        "empty.json": "expected what `commutant locks --format json` writes: ",
        "list.json": "expected what `commutant locks --format json` writes: ",
        "negative.json": "at `$.threads`",
        "twice.json": "expected each lock once",
        "kernel.json": "kernel.json is of a kernel: expected two recordings of programs or two of kernels",
    }
    for name, words in expected.items():
        with pytest.raises(UsageError) as caught:
            commutant.compare_locks(recordings["one"], tmp_path / name)
        assert words in str(caught.value) and "\n" not in str(caught.value)


def test_wrong_use_of_the_command_is_one_line(recordings: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "cut.json").write_text(recordings["one"].read_text()[:1000])
    for arguments, words in (
        (["corpus.jsonl.gz"], "corpus.jsonl.gz is a corpus: expected two runs, two corpora or two recordings of locks"),
        (["cut.json"], "cut.json: expected what `commutant locks --format json` writes: "),
        ([str(recordings["one"]), "--fail-on", "new"], "--fail-on is for runs; these are two recordings of locks"),
    ):
        answer = run("diff", recordings["one"], tmp_path / arguments[0], *arguments[1:])
        assert (answer.returncode, answer.stdout) == (2, "")
        (line,) = answer.stderr.splitlines()
        assert words in line
