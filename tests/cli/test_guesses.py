"""Words that are not known: one line with the one that was meant, or with where what was meant is."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commutant.cli import console
from commutant.cli.main import run
from commutant.lang.load import load_interface
from commutant.support import Progress
from commutant.support.errors import UsageError
from commutant.support.guess import did_you_mean
from commutant.targets.registry import load_target


def test_a_guess_is_a_known_word_or_nothing():
    assert did_you_mean("chekc", ["check", "show"]) == "; did you mean 'check'?"
    assert did_you_mean("xyzzy", ["check", "show"]) == ""
    assert did_you_mean("", []) == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["chekc", "names"], "No such command 'chekc'; did you mean 'check'?"),
        (["xyzzy"], "No such command 'xyzzy' (see `commutant --help`)"),
        (["help", "chekc"], "No such command 'chekc'; did you mean 'check'?"),
        (["analyze", "namse"], "; did you mean 'names'?"),
        (["analyze", "mmap"], "it is a call of posix18: `commutant check posix18 --calls mmap,mmap`"),
        (["analyze", "names", "--calls", "opne,link"], "has no call 'opne'; it has"),
        (["analyze", "names", "--calls", "opne,link"], "; did you mean 'open'?"),
        (["check", "names", "--target", "lnux"], "as in linux:fs=ramfs; did you mean 'linux'?"),
    ],
)
def test_unknown_words_get_one_line_with_what_was_meant(arguments, told, capsys):
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1


def test_an_interface_is_found_by_its_call_and_a_target_by_its_letters():
    with pytest.raises(UsageError, match="it is a call of"):
        load_interface("scan")
    with pytest.raises(UsageError, match="did you mean 'scalefs'"):
        load_target("scalfs:cores=4")


def test_help_is_that_of_the_verb(capsys):
    assert run(["help", "check"]) == 0
    shown = capsys.readouterr().out
    assert run(["check", "--help"]) == 0
    assert capsys.readouterr().out == shown
    assert run(["help", "kernel", "build"]) == 0
    assert "commutant kernel build" in capsys.readouterr().out
    assert run(["help"]) == 0
    assert "doctor" in capsys.readouterr().out
    assert run(["help", "check", "more"]) == 2
    assert "has no verbs of its own" in capsys.readouterr().err


def test_a_result_that_cannot_be_written_stops_the_program_before_it_runs(tmp_path: Path, capsys, monkeypatch):
    """As in a folder of a read-only file system, which refuses even root."""

    def refused(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    ran, page = tmp_path / "ran", tmp_path / "locks.html"
    assert run(["locks", "--format", "html", "-o", str(page), "--", "touch", str(ran)]) == 3
    assert not ran.exists()
    assert capsys.readouterr().err == f"commutant: cannot write {page}: Read-only file system; nothing was run\n"


def test_no_color_is_plain_text(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for value, styled in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        monkeypatch.setenv("TERM", "xterm-256color")
        out = Terminal()
        monkeypatch.setattr(console, "_for_results", out)
        console.results().print("[bold]first[/]")
        assert ("\x1b[1m" in out.getvalue()) is styled


def test_the_c_locale_has_plain_signs():
    text = ascii("open ∥ link → 0 ≠ 1 ▁█ … größe\n")
    program = f"from commutant.cli import console; console.guard_streams(); console.write({text})"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert ended.stdout.decode() == "open || link -> 0 != 1 .@ ... gr\\xf6\\xdfe\n"


def test_without_a_terminal_a_line_a_minute_spans_the_parts_of_the_work(monkeypatch, capsys):
    """Generating, starting and checking each take less than a minute; together they do not."""
    now = 1000.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    monkeypatch.setattr(console, "_line_printed_at", now)
    for title, seconds in (("generating", 40), ("starting", 15), ("checking", 30), ("checking on", 40)):
        bar = console.ProgressBar(title)
        now += seconds
        bar(Progress(3, 10))
    assert capsys.readouterr().err.splitlines() == ["checking: 3 of 10 (30 %)"]
