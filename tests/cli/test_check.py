"""`commutant check` from the outside: exit codes, what it prints, what it leaves behind."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from pathlib import Path

import jsonschema
import pytest

from commutant.corpus.file import write_corpus
from tests.campaign.fakes import FakeTarget, make_corpus
from tests.cli.conftest import COMMAND, environment

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
CHECK = ("check", "corpus.jsonl.gz", "--target")


def one_line(answer):
    """The message on standard error, which is one line."""
    lines = answer.stderr.splitlines()
    assert len(lines) == 1, answer.stderr
    assert "Traceback" not in answer.stderr
    return lines[0]


def summary(answer):
    document = json.loads(answer.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "summary.schema.json").read_text()))
    return document


@pytest.mark.parametrize(
    ("outcome", "code", "counts"),
    [
        ("clean", 0, {"conflict_free": 10, "windows": 20}),
        ("conflicting", 0, {"conflicting": 10, "windows": 60, "ignored": {"timer": 60}}),
        ("unstable", 0, {"unstable": 10}),
        ("wrong", 3, {"wrong_result": 10, "windows": 20}),
        ("crashed", 0, {"crashed": 1, "conflict_free": 9}),
    ],
)
def test_outcomes(process, outcome, code, counts):
    answer = process(*CHECK, f"fake:outcome={outcome}", "--format", "json")
    assert answer.returncode == code, answer.stderr
    document = summary(answer)
    assert document["tests"] == 10
    assert {key: document[key] for key in counts} == counts
    run = Path(f"runs/names-fake-outcome-{outcome}-1")
    assert json.loads((run / "summary.json").read_text()) == document
    assert sorted(path.name for path in run.iterdir()) == [
        "corpus.jsonl.gz",
        "findings.parquet",
        "report.html",
        "run.json",
        "summary.json",
        "verdicts.jsonl",
    ]
    jsonschema.validate(
        json.loads((run / "run.json").read_text()), json.loads((SCHEMAS / "run.schema.json").read_text())
    )
    assert ("wrong results in 10 tests" in answer.stderr) == (outcome == "wrong")


def test_a_gate_fails_with_1_and_a_wrong_result_with_3(process):
    gate = ("--fail-on", "findings")
    assert process(*CHECK, "fake:outcome=conflicting", *gate).returncode == 1
    assert process(*CHECK, "fake:outcome=clean", *gate).returncode == 0
    assert process(*CHECK, "fake:outcome=unstable", *gate).returncode == 0
    assert process(*CHECK, "fake:outcome=wrong", *gate).returncode == 3


def test_what_a_target_cannot_tell_is_said_before_the_campaign_and_kept(commutant, monkeypatch):
    description = {"kernel": "none", "limits": "no types: objects have no names"}
    monkeypatch.setattr(FakeTarget, "describe", lambda self: description)
    answer = commutant(*CHECK, "fake", "-o", "run", "--format", "json")
    assert answer.stderr.splitlines()[0] == "note: no types: objects have no names"
    assert json.loads(Path("run/run.json").read_text())["target_description"] == description


def test_the_text_ends_with_the_page(commutant):
    answer = commutant(*CHECK, "fake:outcome=conflicting", "-o", "new/run")
    assert answer.returncode == 0
    assert answer.stderr == ""
    assert "rename" in answer.stdout and "struct dentry.d_lockref" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "new/run/report.html"
    assert Path("new/run/report.html").stat().st_size > 1000


def test_one_repeat_and_calls(commutant):
    answer = commutant(*CHECK, "fake:outcome=conflicting", "--repeats", "1", "--calls", "open,open", "--format", "json")
    document = summary(answer)
    assert (document["tests"], document["windows"]) == (5, 10)
    assert [one["calls"] for one in document["sets"]] == [["open", "open"]]


def test_calls_that_the_target_does_not_know_are_skipped(commutant):
    document = summary(commutant(*CHECK, "fake:unknown=rename", "--format", "json"))
    assert (document["skipped"], document["conflict_free"]) == (5, 5)


def test_a_corpus_of_which_nothing_can_be_run_is_refused(commutant, folder):
    """One of another version of its interface, whose calls have other parameters: a gate must not pass by that."""
    answer = commutant(*CHECK, "fake:unknown=open", "-o", "run")
    assert answer.returncode == 2
    assert "can run none of the 10 tests of names: it does not know the call open(" in one_line(answer)
    assert "`commutant generate`" in one_line(answer)
    assert not Path("run").exists()


def test_an_interface_is_generated_and_checked(commutant):
    answer = commutant(
        "check", "names", "--calls", "link,unlink", "--target", "fake", "--format", "json", "--jobs", "1"
    )
    assert answer.returncode == 0, answer.stderr
    assert summary(answer)["tests"] > 10


def test_a_directory_with_a_corpus_is_taken(commutant, folder):
    assert commutant("check", str(folder), "--target", "fake").returncode == 0


def test_a_shipped_name_is_an_interface_whatever_lies_in_the_folder(commutant, folder):
    (folder / "names").mkdir()
    (folder / "corpus.jsonl.gz").rename(folder / "names" / "corpus.jsonl.gz")
    answer = commutant("check", "names", "--calls", "stat,stat", "--target", "fake", "--format", "json")
    assert [one["calls"] for one in summary(answer)["sets"]] == [["stat", "stat"]]


SEALED = """
from commutant.lang import Interface, call, well_formed

class Sealed(Interface):
    \"\"\"A lamp that is on in every state of interest, and that no caller can switch on.\"\"\"

    on: bool

    @well_formed
    def is_on(self):
        return self.on

    @call
    def look(self) -> bool:
        return self.on
"""


def test_an_interface_whose_states_no_calls_build_has_no_tests(commutant, folder):
    (folder / "sealed.py").write_text(SEALED)
    answer = commutant("check", "sealed.py", "--target", "fake")
    assert answer.returncode == 2
    assert "no test of sealed can be made" in one_line(answer) and "write `setup(self)`" in one_line(answer)


def test_a_run_is_not_resumed_on_another_kernel(commutant, folder):
    commutant(*CHECK, "fake", "-o", "run")
    Path("run/summary.json").unlink()
    file = Path("run/run.json")
    file.write_text(file.read_text().replace('"kernel": "none"', '"kernel": "other"'))
    before = Path("run/verdicts.jsonl").read_bytes()
    answer = commutant("resume", "run")
    assert answer.returncode == 2
    assert "run was started with kernel 'other', this is 'none'; check its corpus again" in one_line(answer)
    assert Path("run/verdicts.jsonl").read_bytes() == before


def test_a_run_is_resumed_on_another_machine(commutant, folder):
    commutant(*CHECK, "fake", "-o", "run")
    Path("run/summary.json").unlink()
    info = json.loads(Path("run/run.json").read_text())
    info["target_description"]["host"] = "another"  # as workers of a cluster are
    Path("run/run.json").write_text(json.dumps(info))
    answer = commutant("resume", "run")
    assert answer.returncode == 0, answer.stderr
    assert Path("run/summary.json").is_file()


def test_a_run_is_repeated_from_its_run_json_alone(commutant, folder):
    # With several sessions verdicts stand in the order in which these came to them.
    arguments = ["--calls", "stat,stat", "--target", "fake:outcome=unstable", "--seed", "5", "--repeats", "2"]
    arguments += ["--jobs", "1"]
    first = commutant("check", "names", *arguments, "-o", "first", "--format", "json")
    Path("run.json").write_bytes(Path("first/run.json").read_bytes())
    again = commutant("repeat", "run.json", "-o", "again", "--format", "json", "--jobs", "1")
    assert again.returncode == first.returncode == 0
    figures = [{**summary(answer), "seconds": 0, "start_seconds": 0} for answer in (first, again)]
    assert figures[0] == figures[1] and figures[0]["unstable"] > 0
    infos = [json.loads(Path(run, "run.json").read_text()) for run in ("first", "again")]
    assert {key for key in infos[0] if infos[0][key] != infos[1][key]} <= {"started", "command"}
    verdicts = [Path(run, "verdicts.jsonl").read_text().splitlines() for run in ("first", "again")]
    tests = [[json.loads(line).get("test") for line in lines] for lines in verdicts]
    assert tests[0] == tests[1]


def test_every_nth_set_of_three_is_a_run_that_can_be_repeated(commutant, folder):
    """Triples of many calls are too many to run; a sample says which sets it took, and repeats them."""
    arguments = ["--calls", "stat,unlink", "--self", "--size", "3", "--target", "fake:outcome=clean"]
    answer = commutant("check", "names", *arguments, "--sample", "3", "-o", "first", "--format", "json")
    sets = [one["calls"] for one in summary(answer)["sets"]]
    assert sets == [["unlink", "unlink", "unlink"], ["stat", "stat", "stat"]]
    Path("run.json").write_bytes(Path("first/run.json").read_bytes())
    again = commutant("repeat", "run.json", "-o", "again", "--format", "json")
    assert [one["calls"] for one in summary(again)["sets"]] == sets


def test_a_path_with_control_characters_is_one_harmless_line(commutant, folder):
    """The run's path went to the terminal as it was."""
    answer = commutant(*CHECK, "fake", "-o", "red\x1b[31m\nline")
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[-1] == "red\\x1b[31m line/report.html"


def test_tests_out_of_a_file_are_looked_for_beside_run_json(commutant, folder):
    assert commutant(*CHECK, "fake", "-o", "first").returncode == 0
    again = commutant("repeat", "first/run.json", "-o", "again", "--format", "json")
    assert again.returncode == 0 and summary(again)["tests"] == 10
    Path("alone.json").write_bytes(Path("first/run.json").read_bytes())
    Path("corpus.jsonl.gz").unlink()
    alone = commutant("repeat", "alone.json")
    assert alone.returncode == 2 and "expected that file as corpus.jsonl.gz beside run.json" in one_line(alone)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"target_description": {"kernel": "other"}}, "the run was started with kernel 'other', this is 'none'"),
        ({"tests_sha256": "00"}, "run.json is damaged: what it says of its tests"),
        ({"tests_sha256": "00", "origin_sha256": ""}, "these are not the tests of the run"),
        ({"level": "path"}, "run.json is damaged: what it says of its tests"),
        ({"tests_sha256": 0}, "damaged (Expected `str`, got `int` - at `$.tests_sha256`)"),
        (
            {"generated": {"interface": "names", "calls": None, "size": 0}},
            "damaged (Expected `int` >= 1 - at `$.generated.size`)",
        ),
        (
            {"generated": {"interface": "names", "calls": [7], "size": 2}},
            "damaged (Expected `str`, got `int` - at `$.generated.calls[0]`)",
        ),
        (
            {"generated": {"interface": "nope", "calls": None, "size": 2}, "origin_sha256": ""},
            "unknown interface 'nope'",
        ),
        (
            {"generated": {"interface": "names", "calls": None, "size": 4}},
            "run.json is damaged: what it says of its tests",
        ),
        ({"generated": None}, "these are not the tests of the run"),
        ({"target": "nope"}, "unknown target 'nope'"),
        ({"schema_version": 9}, "expected schema_version 1, got 9"),
        ({"seed": "0"}, "damaged (Expected `int`, got `str` - at `$.seed`)"),
        ({"command": [1.5]}, "damaged (Expected `str`, got `float` - at `$.command[0]`)"),
    ],
)
def test_a_run_that_cannot_be_repeated_says_why(commutant, folder, changes, expected):
    commutant("check", "names", "--calls", "stat,stat", "--target", "fake", "-o", "first")
    info = json.loads(Path("first/run.json").read_text())
    Path("run.json").write_text(json.dumps({**info, **changes}))
    answer = commutant("repeat", "run.json", "-o", "again")
    assert answer.returncode == 2
    assert expected in one_line(answer)
    assert not Path("again").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["check"], "expected an interface or a corpus, or --of RUN instead"),
        (["check", "nope", "--target", "fake"], "unknown interface 'nope'"),
        (["check", "/", "--target", "fake"], "/ has no corpus.jsonl.gz; expected an interface, a corpus, or"),
        (["check", "missing.jsonl.gz", "--target", "fake"], "cannot read the corpus missing.jsonl.gz"),
        ([*CHECK, "nope"], "unknown target 'nope'; expected one of"),
        ([*CHECK, "fake:x"], "expected fake:key=value,..., got 'x'"),
        ([*CHECK, "fake:x=1,x=2"], "'x' is given twice"),
        ([*CHECK, "fake", "-o", "corpus.jsonl.gz"], "corpus.jsonl.gz exists already"),
        ([*CHECK, "fake", "--size", "3"], "is a corpus: --size cannot be given"),
        ([*CHECK, "fake", "--calls", "nope"], "no tests of names to run"),
        ([*CHECK, "fake", "--calls", "a,,b"], "expected names of calls with a comma between them"),
        ([*CHECK, "fake", "--repeats", "0"], "0 is not in the range"),
        ([*CHECK, "fake", "--fail-on", "nope"], "'nope' is not one of 'findings', 'new'"),
        (["resume", "missing"], "missing is not a directory"),
        (["resume", ".", "--seed", "1"], "No such option '--seed'"),
        (["resume"], "Missing argument 'RUN'"),
        (["repeat", "missing"], "cannot read missing: No such file"),
        (["repeat", "."], "cannot read .: Is a directory"),
        (["repeat", "corpus.jsonl.gz"], "corpus.jsonl.gz is damaged"),
        (["repeat", "run.json", "--target", "fake"], "No such option '--target'"),
        (["repeat", "x", "y"], "unexpected extra argument (y)"),
        (["check", "--nope"], "No such option"),
    ],
)
def test_bad_use_is_one_line_and_2(commutant, folder, arguments, expected):
    answer = commutant(*arguments)
    assert answer.returncode == 2
    assert expected in one_line(answer)
    assert answer.stdout == ""
    assert [path.name for path in folder.iterdir()] == ["corpus.jsonl.gz"]


def test_a_damaged_corpus_is_refused_before_the_target_starts(commutant, folder):
    corpus = folder / "corpus.jsonl.gz"
    corpus.write_bytes(corpus.read_bytes()[:-20])
    answer = commutant(*CHECK, "fake", COMMUTANT_FAKE_STUCK="0")
    assert answer.returncode == 2
    assert "corpus.jsonl.gz, line " in one_line(answer)


def test_a_failed_self_test_stops_the_campaign(process, folder):
    answer = process(*CHECK, "fake:start=fails", "--format", "json")
    assert answer.returncode == 3
    assert "the planted conflict was not seen" in one_line(answer)
    assert answer.stdout == ""
    assert [path.name for path in folder.iterdir()] == ["corpus.jsonl.gz"]


def interrupted(number):
    """A campaign that gets a signal within its window 6, when three tests are judged; gives its last message."""
    process = subprocess.Popen(
        [*COMMAND, *CHECK, "fake:outcome=conflicting", "--repeats", "1", "--jobs", "1", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(COMMUTANT_FAKE_STUCK="6"),
    )
    with process:
        assert process.stderr is not None and process.stdout is not None
        assert process.stderr.readline() == "stuck\n"
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == ""
    lines = stderr.splitlines()
    assert "closed" in lines
    assert "Traceback" not in stderr
    return lines[-1]


def test_an_interrupt_before_the_first_test_leaves_no_folder(folder, commutant, monkeypatch):
    """The folder was made before what run.json says was put together, and stayed behind empty."""

    def interrupt(corpus):
        raise KeyboardInterrupt

    monkeypatch.setattr("commutant.runs.check.hash_of_tests", interrupt)
    assert commutant(*CHECK, "fake:outcome=clean", "-o", "run").returncode == 130
    assert [path.name for path in folder.iterdir()] == ["corpus.jsonl.gz"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_was_judged(folder, commutant, number):
    message = interrupted(number)
    run = "runs/names-fake-outcome-conflicting-1"
    assert message == (
        f"commutant: interrupted; 3 of 10 tests are judged and kept: `commutant report {run}` shows them, "
        f"`commutant resume {run}` goes on"
    )
    assert sorted(path.name for path in Path(run).iterdir()) == ["corpus.jsonl.gz", "run.json", "verdicts.jsonl"]

    shown = commutant("report", run, "--format", "json")
    assert shown.returncode == 0
    document = json.loads(shown.stdout)
    assert (document["complete"], document["tests"], document["conflicting"]) == (False, 3, 3)

    resumed = commutant("resume", run, "--format", "json")
    assert resumed.returncode == 0, resumed.stderr
    document = summary(resumed)
    assert (document["tests"], document["conflicting"], document["windows"]) == (10, 10, 20)

    again = commutant("resume", run)
    assert again.returncode == 2
    assert "is complete, nothing is left to run" in one_line(again)


def test_a_session_that_dies_ends_the_campaign_and_says_how_to_go_on(commutant):
    answer = commutant(*CHECK, "fake", "--jobs", "1", "--format", "json", COMMUTANT_FAKE_DIES="6")
    assert answer.returncode == 3
    assert one_line(answer).startswith("commutant: the emulator was killed; 3 of 10 tests are judged and kept: ")
    assert answer.stdout == ""
    assert commutant("resume", "runs/names-fake-1").returncode == 0


def test_a_full_disk_ends_the_campaign_and_it_can_go_on(folder):
    """A limit on file sizes stands for the disk: the verdicts do not fit, all other files do."""
    write_corpus(make_corpus(10, [("link", "rename")]), folder / "corpus.jsonl.gz")  # of one set: the smallest file
    limited = subprocess.run(
        [*COMMAND, *CHECK, "fake:outcome=conflicting", "-o", "run", "--jobs", "1"],
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500)),
        timeout=120,
    )
    assert limited.returncode == 3
    assert one_line(limited).startswith("commutant: cannot write run/verdicts.jsonl: File too large; ")
    kept = (folder / "run/verdicts.jsonl").read_bytes()
    assert kept.count(b"\n") >= 3
    resumed = subprocess.run(
        [*COMMAND, "resume", "run", "--format", "json"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert summary(resumed)["conflicting"] == 10


def test_a_closed_standard_output_changes_nothing_but_what_is_shown(commutant, folder):
    for text in ("text", "json"):
        process = subprocess.Popen(
            [*COMMAND, *CHECK, "fake:outcome=conflicting", "--fail-on", "findings", "--format", text, "-o", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(timeout=60) == 1
        assert "Traceback" not in stderr and "Broken" not in stderr
        assert (folder / text / "summary.json").exists()


def test_a_full_standard_output_is_one_line(process):
    with Path("/dev/full").open("w") as full:
        answer = process(*CHECK, "fake", "--format", "json", stdout=full)
    assert answer.returncode == 3
    assert "cannot write standard output: No space left on device" in answer.stderr.splitlines()[-1]
    assert "Traceback" not in answer.stderr
