"""A campaign of 100,000 tests, from corpus to every format, in less than 1 GiB each."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commutant.testgen.corpus import Corpus, write_corpus
from tests.cli.conftest import COMMAND, environment
from tests.report.invented import POSIX18, invented_run

pytestmark = pytest.mark.long

TESTS = 100_000
MOST_MEMORY_BYTES = 1 << 30


def peak_memory_bytes(folder: Path, *arguments: str) -> int:
    """The largest resident set of a command that ends well."""
    process = subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_maxrss * 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run directory `run` of a campaign over a corpus of the size of posix18's tests."""
    folder = tmp_path_factory.mktemp("large")
    tests = {}
    for seed in range(100):
        tests.update((judged.test.id, judged.test) for judged in invented_run(POSIX18, 300, seed).tests)
        if len(tests) >= TESTS:
            break
    write_corpus(Corpus("posix18", "conflict", "0123abcd", list(tests.values())[:TESTS]), folder / "corpus.jsonl.gz")
    return folder


def test_checking_and_reporting_stay_below_a_gigabyte(folder: Path) -> None:
    check = ("check", "corpus.jsonl.gz", "--target", "fake:outcome=varied", "-o", "run", "--repeats", "1")
    used = {"check": peak_memory_bytes(folder, *check)}
    for format_ in ("text", "json", "markdown", "sarif", "junit", "parquet", "html"):
        used[format_] = peak_memory_bytes(folder, "report", "run", "--format", format_, "-o", f"report.{format_}")
    used["diff"] = peak_memory_bytes(folder, "diff", "run", "run", "-o", "diff.txt")
    assert {what: size for what, size in used.items() if size >= MOST_MEMORY_BYTES} == {}
    print({what: f"{size / 2**20:.0f} MiB" for what, size in used.items()})
