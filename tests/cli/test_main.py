"""The command itself: verbs, help, versions, and what happens when something unexpected does."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import commutant as package
from commutant.cli import console
from commutant.cli.main import VERBS, cli, run
from commutant.lang import SHIPPED
from tests.cli.conftest import COMMAND, environment

HEAVY = ("z3", "pyarrow", "rich", "jinja2")


def test_the_version(process):
    answer = process("--version")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"commutant {package.__version__}\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(verb):
    answer = CliRunner().invoke(cli, [verb, "--help"])
    assert answer.exit_code == 0
    assert f"\n    commutant {verb}" in answer.output or f"$(commutant {verb}" in answer.output
    assert "Examples:" in answer.output


def test_the_help_of_analyze_lists_the_shipped_interfaces(commutant):
    shown = " ".join(commutant("analyze", "--help").stdout.split()).replace("- ", "-")  # lines may end in a name
    assert f"a shipped name ({', '.join(SHIPPED)})" in shown


def test_the_help_lists_the_verbs(commutant):
    answer = commutant("--help")
    assert answer.returncode == 0
    for verb in VERBS:
        assert f"\n  {verb} " in answer.stdout


def test_no_verb_prints_the_help_and_is_bad_use(commutant):
    answer = commutant()
    assert answer.returncode == 2
    assert answer.stdout == commutant("--help").stdout


def test_an_unknown_verb_is_one_line(process):
    answer = process("chekc", "names")
    assert answer.returncode == 2
    (line,) = answer.stderr.splitlines()
    assert "No such command 'chekc'" in line and "`commutant --help`" in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "{path}"],
        ["diff", "{path}", "."],
        ["show", "x", "--from", "{path}"],
        ["check", "{path}", "--target", "scalefs"],
        ["resume", "{path}"],
        ["generate", "figure4", "-o", "{path}"],
        ["locks", "--format", "html", "-o", "{path}", "--", "true"],
    ],
)
def test_a_path_that_cannot_be_looked_at_is_bad_input(commutant, arguments):
    """A name that no file system takes, or a folder without the right to search it: `Path.exists` raises for both."""
    path = "n" * 300
    answer = commutant(*[path if word == "{path}" else word for word in arguments])
    assert answer.returncode == 2
    assert answer.stderr == f"commutant: {path}: File name too long; expected a path that can be looked at\n"


@pytest.mark.parametrize("arguments", [["--version"], ["check", "--help"], ["completion", "bash"]])
def test_quick_answers_import_nothing_heavy(arguments):
    program = (
        "import sys; from commutant.cli.main import run; assert run(sys.argv[1:]) == 0;"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment(), check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "[]\n")


class TestUnexpected:
    @pytest.fixture
    def broken(self, monkeypatch):
        """`commutant analyze` with a defect."""

        def fail(argument):
            raise ZeroDivisionError("first\nsecond \x1b[2J")

        monkeypatch.setattr("commutant.lang.load_interface", fail)
        monkeypatch.setattr(console, "guard_streams", lambda: None)
        monkeypatch.setattr("commutant.cli.main._set_signals", lambda: None)

    def test_a_defect_is_one_line_with_a_hint(self, broken, capsys):
        assert run(["analyze", "names"]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert "internal error, a defect of commutant: ZeroDivisionError: first second \\x1b[2J" in line
        assert line.endswith(
            "report it where you got Commutant, with what COMMUTANT_TRACEBACK=1 and `commutant doctor` print"
        )

    def test_want_of_memory_is_no_defect(self, broken, capsys, monkeypatch):
        def fail(argument):
            raise MemoryError

        monkeypatch.setattr("commutant.lang.load_interface", fail)
        assert run(["analyze", "names"]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("commutant: out of memory: ")

    def test_a_panic_of_the_native_module_is_a_defect_too(self, broken, capsys, monkeypatch):
        """A panic is no `Exception` in Python: it passed all the way up, as a traceback."""

        class PanicException(BaseException):
            pass

        def panic(argument):
            raise PanicException("index out of bounds")

        monkeypatch.setattr("commutant.lang.load_interface", panic)
        assert run(["analyze", "names"]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert "internal error, a defect of commutant: PanicException: index out of bounds" in line

    @pytest.mark.parametrize("statement", ["from commutant._native import of_tomorrow", "_native.of_tomorrow()"])
    def test_a_native_module_of_another_version_is_told(self, broken, capsys, monkeypatch, statement):
        def fail(argument):
            exec(f"from commutant import _native; {statement}")

        monkeypatch.setattr("commutant.lang.load_interface", fail)
        assert run(["analyze", "names"]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("commutant: the native module is not of this version (")
        assert "of_tomorrow" in line
        assert line.endswith("; run `make setup`")

    def test_a_traceback_comes_when_asked_for(self, broken, capsys, monkeypatch):
        monkeypatch.setenv("COMMUTANT_TRACEBACK", "1")
        assert run(["analyze", "names"]) == 3
        assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_without_standard_streams_nothing_breaks():
    answer = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND, "analyze", "figure4"], env=environment(), check=False
    )
    assert answer.returncode == 0


def test_messages_stay_on_one_line_and_print_nothing_dangerous():
    assert console.one_line("a\nb\x1b[31m\u202e é") == "a b\\x1b[31m\\u202e é"


class TestCompletion:
    def complete(self, commutant, *words):
        answer = commutant(
            _COMMUTANT_COMPLETE="bash_complete", COMP_WORDS=" ".join(words), COMP_CWORD=str(len(words) - 1)
        )
        assert answer.stderr == ""
        return {line.split(",", 1)[1] for line in answer.stdout.splitlines() if line}

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_scripts(self, commutant, shell):
        answer = commutant("completion", shell)
        assert (answer.returncode, answer.stderr) == (0, "")
        assert f"_COMMUTANT_COMPLETE={shell}_complete" in answer.stdout

    def test_the_script_is_good_bash(self, commutant):
        script = commutant("completion", "bash").stdout
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)

    def test_verbs(self, commutant):
        assert self.complete(commutant, "commutant", "re") == {"remedy", "repeat", "report", "resume"}

    def test_interfaces(self, commutant):
        assert {"figure4", "names"} <= self.complete(commutant, "commutant", "analyze", "''")

    def test_options_of_a_target_and_their_words(self, commutant):
        start = ("commutant", "check", "names", "--target")
        assert "linux:fs=" in self.complete(commutant, *start, "linux:")
        assert self.complete(commutant, *start, "linux:cpus=2,fs=e") == {"linux:cpus=2,fs=ext4"}
        assert self.complete(commutant, *start, "scalefs:c") == {"scalefs:cores="}
        assert self.complete(commutant, *start, "nothing:x") == set()
        assert "plain" in self.complete(commutant, *start, "p")

    def test_calls_after_a_comma(self, commutant):
        found = self.complete(commutant, "commutant", "analyze", "names", "--calls", "link,un")
        assert found == {"link,unlink"}

    def test_targets(self, commutant):
        assert "linux" in self.complete(commutant, "commutant", "check", "names", "--target", "l")

    def test_calls_of_no_interface(self, commutant):
        assert self.complete(commutant, "commutant", "analyze", "nope", "--calls", "a") == set()


def test_json_is_alone_on_standard_output(process):
    for arguments in (
        ["analyze", "figure4", "--format", "json"],
        ["generate", "figure4", "--format", "json"],
        ["doctor", "--format", "json"],
    ):
        answer = process(*arguments)
        assert json.loads(answer.stdout)["schema_version"] == 1
        assert answer.stderr == ""


TICKETS = """
from commutant.lang import Interface, call

class Ticket(Interface):
    next: int
    @call
    def take(self) -> int:
        self.next += 1
        return self.next
"""


def test_a_model_whose_calls_never_commute_has_a_corpus_without_tests(commutant, tmp_path):
    """The line that names a test to read once took the first of none."""
    (tmp_path / "ticket.py").write_text(TICKETS)
    answer = commutant("generate", str(tmp_path / "ticket.py"), "-o", str(tmp_path / "tickets.jsonl.gz"))
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("0 tests of ticket")


TALKATIVE = '''
from commutant.lang import Errno, Interface, call

print("loaded")


class Talkative(Interface):
    """A model that its author is still looking at."""

    count: int

    @call
    def add(self, number: int) -> int:
        """Adds."""
        print("debug", number)
        self.count += number
        return 0

    @call
    def tell(self) -> int:
        """Tells."""
        print("debug")
        return self.count

    @call
    def nothing(self) -> int:
        """Does nothing."""
        return 0
'''


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_model_prints_is_not_among_the_results(process, folder, jobs):
    """It stood in the middle of the JSON document."""
    (folder / "talkative.py").write_text(TALKATIVE)
    answer = process("analyze", "talkative.py", "--format", "json", "--no-cache", "--jobs", jobs)
    assert len(json.loads(answer.stdout)["sets"]) == 6
    assert {"loaded", "debug"} <= {line.split()[0] for line in answer.stderr.splitlines()}
