"""The verb `try`: its arguments go on as they are, and what it prints as JSON is as it is declared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commutant import documents
from commutant.support import artifacts
from commutant.trying import TriedOutcome, TryDocument

SCRIPT = "echo 'a  b' > made; rm gone; cat read > copied"


def can_try() -> bool:
    """Whether this user may make mounts and record looks."""
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


needs_rights = pytest.mark.skipif(not can_try(), reason="it takes root and /dev/fuse")


def tried(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(folder.parent / "state"), "TRY_SHELL": "/bin/sh"}
    command = [sys.executable, "-m", "commutant", "try", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


def document(answer: subprocess.CompletedProcess[str]) -> TryDocument:
    read = documents.read(TryDocument, answer.stdout.encode())
    assert read.exit_code == answer.returncode
    return read


@needs_rights
def test_documents_are_as_declared(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "gone").touch()
    (tree / "read").write_text("before\n")
    kept = document(tried(tree, "-n", "--json", SCRIPT))
    assert kept.outcome is TriedOutcome.KEPT and kept.directory is not None
    assert {(Path(change.path).name, change.change) for change in kept.changes} == {
        ("made", "added"),
        ("copied", "added"),
        ("gone", "deleted"),
    }
    assert document(tried(tree, "--json", "summary", kept.directory)).outcome is TriedOutcome.CHANGES
    (tree / "read").write_text("afterwards\n")
    refused = document(tried(tree, "--format", "json", "commit", kept.directory))
    assert refused.outcome is TriedOutcome.REFUSED and refused.exit_code == 1
    assert [Path(conflict.path).name for conflict in refused.conflicts] == ["read"]
    assert document(tried(tree, "--json", "-y", "--", "sh", "-c", SCRIPT)).outcome is TriedOutcome.COMMITTED
    assert (tree / "made").read_text() == "a  b\n"
    assert (tree / "copied").read_text() == "afterwards\n"
    assert document(tried(tree, "--json", "recover", kept.directory)).outcome is TriedOutcome.NOTHING
    assert document(tried(tree, "--json", "-y", "exit 5")).exit_code == 5
    failed = document(tried(tree, "--json", "commit", str(tmp_path)))
    assert failed.outcome is TriedOutcome.FAILED and failed.exit_code == 2 and failed.error


def test_both_helps_name_the_same_options(tmp_path: Path) -> None:
    of_program = subprocess.run([artifacts.try_path(), "--help"], capture_output=True, text=True, check=True).stdout
    of_verb = tried(tmp_path, "--help").stdout
    named = r"^ +(-[a-zA-Z-]+)"
    assert set(re.findall(named, of_program, re.MULTILINE)) >= {"-n", "-y", "-N", "-x", "-i", "-I", "-E", "-L", "-t"}
    for option in re.findall(r"(?<!\w)(-[a-zA-Z]|--[a-z]+)\b", of_program):
        assert option in of_verb, option


def test_bad_use_is_one_line(tmp_path: Path) -> None:
    answer = tried(tmp_path, "--nonsense", "true")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1 and "--nonsense is no option" in answer.stderr
