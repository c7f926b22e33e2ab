"""The verb `conform`: exit codes, the document and its schema, what is kept, and one line for each bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from commutant.cli import console
from commutant.cli.main import run
from commutant.corpus.file import read_corpus
from commutant.targets import registry

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schemas/conform.schema.json").read_text())
MISTAKE = "tests.conformance.models:RenameOfLinksRemoves"

Commutant = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def commutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commutant:
    """A command line within this process, in an empty folder, with the target `names` whose calls are right ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(registry.TARGETS, "model", "tests.conformance.cli_target:create")
    monkeypatch.setattr("commutant.cli.main._set_signals", lambda: None)
    monkeypatch.setattr(console, "guard_streams", lambda: None)

    def run_here(*arguments: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = run(("conform", *arguments))
        shown = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, shown.out, shown.err)

    return run_here


def test_no_difference_is_one_line_and_leaves_nothing(commutant: Commutant, tmp_path: Path) -> None:
    answer = commutant("names", "--target", "model", "--sequences", "100")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert (
        answer.stdout.startswith("names on model: no difference in 100 sequences, ") and answer.stdout.count("\n") == 1
    )
    assert not list(tmp_path.iterdir())


def test_one_is_told_as_one(commutant: Commutant) -> None:
    """`1 sequences, 1 calls`"""
    answer = commutant("names", "--target", "model", "--seed", "1", "--sequences", "1", "--length", "1")
    assert answer.stdout.startswith("names on model: no difference in 1 sequence, 1 call, ")


def test_a_difference_is_shown_and_kept_as_a_test(commutant: Commutant, tmp_path: Path) -> None:
    answer = commutant(MISTAKE, "--target", "model", "--sequences", "300")
    assert answer.returncode == 3
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("renameoflinksremoves on model: 1 difference in ")
    assert [line.split("(")[0].split()[-1] for line in lines[2:5]] == ["open", "link", "rename"]
    assert "actual" in {word for line in lines for word in line.split()[:1]}
    again = next(line.split(maxsplit=2)[2] for line in lines if line.startswith("  again: "))
    assert again.startswith(f"conform {MISTAKE} --target model --seed ")
    kept = tmp_path / "runs/renameoflinksremoves-model-conform-1"
    assert answer.stderr == "kept in runs/renameoflinksremoves-model-conform-1\n"
    assert (kept / "differences.txt").read_text() == answer.stdout
    document = json.loads((kept / "conform.json").read_text())
    jsonschema.validate(document, SCHEMA)
    (test,) = read_corpus(kept / "corpus.jsonl.gz").tests
    assert [step.call for step in test.setup] == ["open", "link"] and test.set_name == "rename"
    once_more = commutant(*again.split()[1:])
    assert once_more.returncode == 3 and once_more.stdout.splitlines()[2:] == lines[2:]


def test_the_document(commutant: Commutant) -> None:
    answer = commutant(MISTAKE, "--target", "model", "--sequences", "300", "--format", "json", "-o", "found")
    assert answer.returncode == 3
    document = json.loads(answer.stdout)
    jsonschema.validate(document, SCHEMA)
    (difference,) = document["differences"]
    assert [step["call"] for step in difference["steps"]] == ["open", "link", "rename"]
    steps = [*difference["steps"], *difference["observe"]]
    assert steps[difference["mismatch"]["step"]]["came"] not in difference["mismatch"]["acceptable"]
    right = commutant("names", "--target", "model", "--sequences", "50", "--format", "json")
    jsonschema.validate(json.loads(right.stdout), SCHEMA)
    assert right.returncode == 0 and json.loads(right.stdout)["complete"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown interface 'nope'"),
        (["names", "--target", "nope"], "unknown target 'nope'"),
        (["names", "--target", "model", "--calls", "open,fly"], "names has no call 'fly'"),
        (["names", "--target", "model:unknown=link"], "model does not know link of names; `--calls open,unlink,"),
        (["names", "--sequences", "0"], "0 is not in the range"),
        (["names", "--length", "1000"], "1000 is not in the range"),
        (["empty.py"], "Empty has no method marked with @call"),
        (["broken.py", "--target", "model"], "Broken.unlink raised KeyError"),
        (["ending.py", "--target", "model"], "ending.py:7: Ending.unlink: os.kill acts outside of the model"),
        (["names", "--target", "model", "-o", "."], ". exists already"),
    ],
)
def test_bad_input_is_one_line(commutant: Commutant, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "empty.py").write_text("from commutant.lang import Interface\nclass Empty(Interface):\n    pass\n")
    (tmp_path / "broken.py").write_text(
        "from commutant.interfaces.names import *\nfrom commutant.lang import call\nclass Broken(Names):\n"
        "    @call\n    def unlink(self, name: Name) -> int:\n        del self.names[name]\n        return 0\n"
    )
    (tmp_path / "ending.py").write_text(
        "import os\nfrom commutant.interfaces.names import *\nfrom commutant.lang import call\nclass Ending(Names):\n"
        "    @call\n    def unlink(self, name: Name) -> int:\n        os.kill(0, 0)\n"
    )
    answer = commutant(*arguments)
    assert answer.returncode == 2 and message in answer.stderr and answer.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists() and answer.stdout == ""


def test_control_c_leaves_what_was_found_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.conformance.cli_target", "conform", MISTAKE, "--target", "model:slow=yes"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    process = subprocess.Popen(
        [*command, "--sequences", "100000", "--differences", "100"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "a chunk is done\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert " differences in " in out.splitlines()[0] or " difference in " in out.splitlines()[0]
    assert "interrupted; " in err and "of 100,000 sequences are judged: `commutant conform " in err
    assert (tmp_path / "runs/renameoflinksremoves-model-conform-1/conform.json").is_file(), err


def test_help_has_examples(commutant: Commutant) -> None:
    answer = commutant("--help")
    assert answer.returncode == 0 and "Examples:" in answer.stdout and "commutant conform names" in answer.stdout
