"""Progress bars: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess

from commutant.cli import console
from commutant.support import Progress
from tests.cli.conftest import COMMAND, environment


def read_all(descriptor):
    """What comes through a terminal until its other end is closed."""
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # how Linux tells the end of a terminal
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


def run_on_terminal(*arguments):
    """Standard error and exit code of a command whose standard error is a terminal; standard output is a pipe."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment(TERM="xterm")
    ) as process:
        os.close(theirs)
        shown = read_all(ours)
        os.close(ours)
        assert process.stdout is not None
        stdout = process.stdout.read().decode()
    return process.returncode, stdout, shown


def test_a_terminal_sees_the_start_and_no_bar_stays(folder):
    code, stdout, shown = run_on_terminal("check", "corpus.jsonl.gz", "--target", "fake", "--format", "json")
    assert code == 0
    assert stdout.startswith("{") and "\x1b" not in stdout
    assert "starting fake" in shown and "starting nothing" in shown
    assert shown.rstrip().endswith("run: runs/names-fake-1")


def test_a_pipe_sees_no_bar(process):
    answer = process("check", "corpus.jsonl.gz", "--target", "fake", "--format", "json")
    assert answer.stderr == "run: runs/names-fake-1\n"


def test_results_on_a_pipe_have_no_colours(process):
    answer = process("check", "corpus.jsonl.gz", "--target", "fake:outcome=conflicting")
    assert "\x1b" not in answer.stdout


def test_a_line_a_minute_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console, "_line_printed_at", 0.0)
    seconds = iter([0.0, 30.0, 61.0, 100.0, 122.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(seconds))
    with console.ProgressBar("checking") as bar:
        bar(Progress(1, 1000))
        bar(Progress(250, 1000, "90 windows/s"))
        bar(Progress(text="closing"))
        bar(Progress(5))
    assert capsys.readouterr().err == "checking: 250 of 1,000 (25 %), 90 windows/s\nchecking: 5\n"
