"""A campaign of 100,000 tests, from corpus to every format, in less than 1 GiB each."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.corpus.file import Corpus, write_corpus
from tests.cli.conftest import COMMAND, environment
from tests.cli.memory import peak_memory_bytes
from tests.report.invented import POSIX18, invented_run

pytestmark = pytest.mark.long

TESTS = 100_000
MOST_MEMORY_BYTES = 1 << 30


def peak(folder: Path, *arguments: str) -> int:
    """The most memory of a command line of this program, in bytes."""
    return peak_memory_bytes([*COMMAND, *arguments], folder, environment())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of the shape of posix18's."""
    tests = {}
    for seed in range(100):
        tests.update((judged.test.id, judged.test) for judged in invented_run(POSIX18, 300, seed).tests)
        if len(tests) >= TESTS:
            break
    path = tmp_path_factory.mktemp("large") / "corpus.jsonl.gz"
    write_corpus(Corpus("posix18", "conflict", "0123abcd", list(tests.values())[:TESTS]), path)
    return path


@pytest.fixture(scope="module")
def checked(corpus: Path) -> tuple[Path, int]:
    """The folder with the run directory `run` of a campaign over the corpus, and the most memory that it took."""
    arguments = ("check", "corpus.jsonl.gz", "--target", "fake:outcome=varied", "-o", "run", "--repeats", "1")
    return corpus.parent, peak(corpus.parent, *arguments)


def test_a_campaign_stays_below_a_gigabyte(checked: tuple[Path, int]) -> None:
    assert checked[1] < MOST_MEMORY_BYTES


@pytest.mark.parametrize("format_", ["text", "json", "markdown", "sarif", "junit", "parquet", "html"])
def test_every_format_stays_below_a_gigabyte(checked: tuple[Path, int], format_: str) -> None:
    assert peak(checked[0], "report", "run", "--format", format_, "-o", format_) < MOST_MEMORY_BYTES


def test_a_comparison_stays_below_a_gigabyte(checked: tuple[Path, int]) -> None:
    """Two runs, so two corpora, are in memory."""
    assert peak(checked[0], "diff", "run", "run", "-o", "diff.txt") < MOST_MEMORY_BYTES
