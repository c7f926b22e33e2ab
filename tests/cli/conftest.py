"""The command line as a process of its own, in an empty folder, with the target `fake` in its table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commutant.cli import console
from commutant.cli.main import run
from commutant.corpus.file import write_corpus
from commutant.targets import registry
from tests.campaign.fakes import make_corpus

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tests.cli.fake_target"]


def environment(**changes):
    """The environment of a process that finds the package and these tests, with `changes`."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "120", **changes}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder with a corpus of ten tests in it."""
    monkeypatch.chdir(tmp_path)
    write_corpus(make_corpus(10), tmp_path / "corpus.jsonl.gz")
    return tmp_path


@pytest.fixture
def process(folder):
    """Runs a command line as a process to its end: `process("check", "names", STUCK="1").stdout`."""

    def run_process(*arguments, stdout=subprocess.PIPE, **changes):
        return subprocess.run(
            [*COMMAND, *arguments],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**changes),
            timeout=120,
            check=False,
        )

    return run_process


@pytest.fixture
def commutant(folder, monkeypatch, capsys):
    """As `process`, but within this one, which is quicker; only signals stay as they are."""
    monkeypatch.setitem(registry.TARGETS, "fake", "tests.cli.fake_target:create")
    monkeypatch.setattr("commutant.cli.main._set_signals", lambda: None)
    monkeypatch.setattr(console, "guard_streams", lambda: None)
    monkeypatch.setenv("COLUMNS", "120")

    def run_here(*arguments, **changes):
        with monkeypatch.context() as patch:
            for name, value in changes.items():
                patch.setenv(name, value)
            capsys.readouterr()
            code = run(arguments)
            shown = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, shown.out, shown.err)

    return run_here
