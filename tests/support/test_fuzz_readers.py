"""`make fuzz`, its half for readers of data: what it refuses, a planted fault that it finds, a short run of each."""

from __future__ import annotations

import sys

import pytest

from tests.repository.tree import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import fuzz_readers
from steps import StepFailed


@pytest.mark.parametrize("arguments", [[], ["0"], ["10", "everything"], ["-1", "corpora"]])
def test_bad_arguments_are_refused_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz_readers.main(arguments) == 2
    said = capsys.readouterr().err
    assert (
        said.startswith("expected a number of seconds from 1 on, and any of corpora, runs,") and said.count("\n") == 1
    )


def test_each_reader_has_seeds() -> None:
    for reader in fuzz_readers.READERS:
        assert any((fuzz_readers.SEEDS / reader).iterdir()), reader


def test_without_atheris_it_says_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(lock: str, *modules: str) -> None:
        raise StepFailed("no network")

    monkeypatch.setattr(fuzz_readers, "install_locked", refused)
    assert fuzz_readers.main(["1", "runs"]) == 1
    assert capsys.readouterr().err == f"no network\n{fuzz_readers.NEEDS_ATHERIS}\n"


@pytest.mark.long
def test_a_planted_fault_is_found_and_the_readers_have_none() -> None:
    fuzz_readers.install_atheris()
    assert fuzz_readers.find_planted_fault("suppressions", None).executions > 1
    for reader in fuzz_readers.READERS:
        outcome = fuzz_readers.search(reader, None, 10)
        assert outcome.found_nothing and outcome.executions > 100, outcome.printed[-2000:]
