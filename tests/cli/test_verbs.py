"""The verbs other than `check`."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import jsonschema
import pytest

from commutant import doctor
from commutant.corpus.file import read_corpus
from commutant.guest.emulator import Emulator
from commutant.support.errors import RunError
from tests.campaign.fakes import make_corpus

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"


def document(answer, schema):
    value = json.loads(answer.stdout)
    jsonschema.validate(value, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    return value


class TestAnalyze:
    def test_text_has_the_conditions(self, commutant):
        answer = commutant("analyze", "figure4", "--calls", "rename,rename")
        assert answer.returncode == 0
        first, *conditions = answer.stdout.splitlines()
        assert first.startswith("rename, rename: ") and " commute" in first
        assert len(conditions) == 6 and all(line.startswith("  - ") for line in conditions)

    def test_json(self, commutant):
        value = document(commutant("analyze", "names", "--calls", "link,stat,unlink", "--format", "json"), "analyze")
        assert value["interface"] == "names" and len(value["sets"]) == 6
        assert all(one["unknown"] == 0 for one in value["sets"])

    def test_smt2_of_several_sets_can_go_through_one_solver(self, commutant):
        answer = commutant("analyze", "names", "--calls", "link,stat,unlink", "--format", "smt2")
        assert answer.stdout.count("(check-sat)") == 6
        assert answer.stdout.count("(reset)") == 5

    def test_a_model_of_the_user(self, commutant, folder):
        (folder / "model.py").write_text(
            "from commutant.lang import Interface, Map, Sort, call\n"
            "class Key(Sort):\n    pass\n"
            "class Table(Interface):\n    rows: Map[Key, bool]\n"
            "    @call\n    def put(self, key: Key):\n        self.rows[key] = True\n        return 0\n"
        )
        answer = commutant("analyze", "model.py:Table")
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.startswith("put, put: ")

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["nope"], "unknown interface 'nope'"),
            (["missing.py"], "missing.py"),
            (["names", "--calls", "nope"], "'nope'"),
            (["names", "--size", "0"], "0 is not in the range"),
            (["names", "--format", "xml"], "'xml' is not one of"),
            (["names", "--executor", "tcp://host"], "executor 'tcp://host': No module named 'tcp'; expected process, "),
        ],
    )
    def test_bad_use(self, commutant, arguments, expected):
        answer = commutant("analyze", *arguments)
        (line,) = answer.stderr.splitlines()
        assert (answer.returncode, answer.stdout) == (2, "")
        assert expected in line


class TestGenerate:
    def test_json_and_the_corpus(self, commutant):
        value = document(commutant("generate", "names", "--calls", "link,stat", "--format", "json"), "generate")
        assert value["corpus"] == "runs/names-corpus-1/corpus.jsonl.gz"
        corpus = read_corpus(Path(value["corpus"]))
        assert len(corpus.tests) == value["tests"] == value["sets"][0]["tests"] > 0

    def test_a_file_or_a_directory(self, commutant, folder):
        for output, file in (("some", "some/corpus.jsonl.gz"), ("one.jsonl.gz", "one.jsonl.gz")):
            answer = commutant("generate", "figure4", "-o", output)
            assert answer.returncode == 0, answer.stderr
            assert answer.stdout.splitlines()[-1].endswith(f"level conflict: {file}")
            again = commutant("generate", "figure4", "-o", output)
            assert again.returncode == 2 and "exists already" in again.stderr
        assert (folder / "some/corpus.jsonl.gz").read_bytes() == (folder / "one.jsonl.gz").read_bytes()

    def test_a_path_does_not_play_with_the_terminal(self, commutant):
        answer = commutant("generate", "figure4", "-o", "a\x1b[2Jb.jsonl.gz")
        assert answer.returncode == 0 and Path("a\x1b[2Jb.jsonl.gz").exists()
        assert answer.stdout.splitlines()[-1].endswith("level conflict: a\\x1b[2Jb.jsonl.gz")

    def test_a_file_in_no_directory(self, commutant):
        answer = commutant("generate", "figure4", "-o", "missing/one.jsonl.gz")
        assert answer.returncode == 3
        assert "cannot write the corpus missing/one.jsonl.gz: No such file or directory" in answer.stderr


class TestReportAndShow:
    @pytest.fixture
    def run(self, commutant):
        """A run with findings."""
        assert (
            commutant("check", "corpus.jsonl.gz", "--target", "fake:outcome=conflicting", "-o", "run").returncode == 0
        )
        return Path("run")

    def test_report_shows_what_check_showed(self, commutant, run):
        text = commutant("report", "run")
        assert text.returncode == 0 and "struct dentry.d_lockref" in text.stdout
        (run / "report.html").unlink()
        page = commutant("report", "run", "--format", "html")
        assert (page.returncode, page.stdout) == (0, "run/report.html\n")
        assert (run / "report.html").exists()

    def test_report_as_json(self, commutant, run):
        value = document(commutant("report", "run", "--format", "json"), "report")
        assert value["complete"] is True and value["conflicting"] == 10
        assert value["most_shared"][0]["name"] == "struct dentry.d_lockref"
        assert value["most_shared"][0]["tests"] == 10

    def test_report_on_nothing(self, commutant):
        for arguments, expected in ((["missing"], "missing"), (["."], "has no run.json")):
            answer = commutant("report", *arguments)
            (line,) = answer.stderr.splitlines()
            assert answer.returncode == 2 and expected in line

    def test_show_finds_the_test_in_the_newest_run(self, commutant):
        commutant("check", "corpus.jsonl.gz", "--target", "fake:outcome=conflicting")
        test = make_corpus(1).tests[0]
        text = commutant("show", test.id)
        assert text.returncode == 0, text.stderr
        assert "d_lockref" in text.stdout
        value = json.loads(commutant("show", test.id[:-4], "--as", "json").stdout)
        assert value["schema_version"] == 1

    @pytest.mark.parametrize("damaged", ["corpus.jsonl.gz", "verdicts.jsonl"])
    def test_show_passes_over_a_damaged_run(self, commutant, damaged):
        """The newest run alone was read, and was the end of it."""
        for number, outcome in enumerate(("conflicting", "clean")):
            run = Path(f"runs/{number}")
            answer = commutant("check", "corpus.jsonl.gz", "--target", f"fake:outcome={outcome}", "-o", str(run))
            assert answer.returncode == 0, answer.stderr
            os.utime(run / "corpus.jsonl.gz", (number, number))
        test = make_corpus(1).tests[0]
        newest = Path("runs/1") / damaged
        newest.write_bytes(b"?" + newest.read_bytes()[1:])
        answer = commutant("show", test.id)
        (line,) = answer.stderr.splitlines()
        assert (answer.returncode, "d_lockref" in answer.stdout) == (0, True)
        assert line.startswith(str(newest)) and line.endswith("; shown as in runs/0")
        for arguments in (["show", test.id, "--from", "runs/1"], ["show", "nope"]):
            answer = commutant(*arguments)
            assert (answer.returncode, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
        (Path("runs/0") / damaged).write_bytes(b"?")
        os.utime("runs/0/corpus.jsonl.gz", (0, 0))
        answer = commutant("show", test.id)
        (line,) = answer.stderr.splitlines()
        assert (answer.returncode, answer.stdout) == (2, "")
        assert str(newest) in line
        assert line.endswith(f"; no other folder in runs/ has a test that begins with '{test.id}'")

    def test_show_from_a_corpus(self, commutant):
        test = make_corpus(1).tests[0]
        answer = commutant("show", test.id, "--from", "corpus.jsonl.gz")
        assert answer.returncode == 0, answer.stderr
        assert "link" in answer.stdout

    def test_show_lists_the_tests_of_a_set_of_calls(self, commutant, run):
        tests = make_corpus(1).tests
        calls = ",".join(call.call for call in reversed(tests[0].calls))
        listed = commutant("show", calls, "--from", "run").stdout.splitlines()
        assert tests[0].id in {line.split()[0] for line in listed}
        assert all("conflict" in line and "(" in line for line in listed)
        again = commutant("report", "run", "--calls", calls).stdout.splitlines()
        assert {line.split()[0] for line in again} == {line.split()[0] for line in listed}
        assert all("<- " in line for line in again)
        refused = commutant("report", "run", "--cause", "no such cause")
        assert (refused.returncode, refused.stderr) == (2, "commutant: no test of run fits --cause no such cause\n")
        refused = commutant("show", "fstat,mmap")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "has the calls fstat, mmap; --from RUN says where to look" in refused.stderr

    def test_report_says_what_to_fix_first_and_nothing_else(self, commutant, run):
        text = commutant("report", "run", "--first").stdout
        assert text.startswith("What to fix first") and "Most shared" not in text
        refused = commutant("report", "run", "--first", "--format", "json")
        assert refused.returncode == 2 and "expected no --format" in refused.stderr

    def test_show_prints_a_c_program(self, commutant):
        corpus = json.loads(commutant("generate", "names", "--calls", "link,stat", "--format", "json").stdout)["corpus"]
        test = read_corpus(Path(corpus)).tests[0]
        answer = commutant("show", test.id, "--as", "c")
        assert answer.returncode == 0, answer.stderr
        assert "int main(" in answer.stdout

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["link"], "no test in any folder in runs/ begins with 'link'"),
            (["nope", "--from", "corpus.jsonl.gz"], "no test in corpus.jsonl.gz begins with 'nope'"),
            (["link", "--from", "corpus.jsonl.gz"], "5 tests in corpus.jsonl.gz begin with 'link'"),
            (["link", "--from", "missing"], "cannot read the corpus missing"),
        ],
    )
    def test_show_finds_nothing_or_too_much(self, commutant, arguments, expected):
        answer = commutant("show", *arguments)
        (line,) = answer.stderr.splitlines()
        assert answer.returncode == 2 and expected in line


class TestDoctor:
    def test_json_and_exit_code(self, commutant):
        answer = commutant("doctor", "--format", "json")
        value = document(answer, "doctor")
        problems = [check for check in value["checks"] if check["state"] == "problem"]
        assert value["ok"] == (not problems)
        assert answer.returncode == (3 if problems else 0)
        assert all(check["advice"] for check in problems if "`" not in check["found"] and ";" not in check["found"])

    def test_text_is_one_line_per_check(self, commutant):
        lines = commutant("doctor").stdout.splitlines()
        assert len(lines) == len(json.loads(commutant("doctor", "--format", "json").stdout)["checks"])
        assert all(line.split()[0] in ("ok", "warning", "problem") for line in lines)

    def test_without_qemu(self, commutant):
        value = json.loads(commutant("doctor", "--format", "json", PATH="/nonexistent").stdout)
        (check,) = [check for check in value["checks"] if check["name"] == "qemu"]
        assert check["state"] == "problem" and "qemu-system-x86" in check["found"]

    def test_a_cache_folder_that_cannot_be_made(self, commutant, folder):
        (folder / "file").touch()
        answer = commutant("doctor", "--format", "json", XDG_CACHE_HOME=str(folder / "file"))
        (check,) = [check for check in json.loads(answer.stdout)["checks"] if check["name"] == "cache folder"]
        assert check["state"] == "problem" and "XDG_CACHE_HOME" in check["advice"]
        assert answer.returncode == 3

    def test_too_little_memory(self):
        check = doctor.check_memory(10**6)
        assert check.state is doctor.State.PROBLEM and "--jobs" in check.advice
        assert doctor.check_memory(0).state is doctor.State.OK

    def test_versions_of_qemu(self):
        assert doctor.judge_emulator(Emulator("qemu", "version 7.2.22 (Debian 1:7.2)")).state is doctor.State.OK
        assert doctor.judge_emulator(Emulator("qemu", "version 8.1.0")).state is doctor.State.WARNING

    @pytest.mark.parametrize(
        ("release", "state"),
        [
            ({"PRETTY_NAME": "Debian 13", "ID": "debian", "VERSION_ID": "13"}, doctor.State.OK),
            ({"PRETTY_NAME": "Fedora Linux 43", "ID": "fedora", "VERSION_ID": "43"}, doctor.State.WARNING),
            (None, doctor.State.WARNING),
        ],
    )
    def test_systems_that_were_not_tried_are_named(self, monkeypatch, release, state):
        def values():
            if release is None:
                raise FileNotFoundError("/etc/os-release")
            return release

        monkeypatch.setattr(platform, "freedesktop_os_release", values)
        assert doctor.check_system().state is state

    def test_what_is_lacking_is_named_with_its_use(self, monkeypatch, tmp_path):
        monkeypatch.setattr(doctor, "TOOLS", {"sh": "shells", "no-such-tool": "what it is for"})
        assert doctor.check_tools().found == "missing: no-such-tool (what it is for)"
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        check = doctor.check_user_qemu()
        assert check.state is doctor.State.WARNING and check.advice == "commutant prepare --emulator"

    def test_a_runner_that_is_no_program(self, monkeypatch, tmp_path):
        runner = tmp_path / "runner"
        monkeypatch.setattr("commutant.support.artifacts.runner_path", lambda: runner)
        assert doctor.check_runner().state is doctor.State.PROBLEM
        runner.write_bytes(b"#!/bin/sh\n")
        assert "is no x86-64 program" in doctor.check_runner().found
        runner.write_bytes(b"\x7fELF\x02" + bytes(13) + b"\x3e\x00")
        assert doctor.check_runner().state is doctor.State.OK

    def test_a_plugin_that_qemu_does_not_load(self, monkeypatch, tmp_path):
        plugin = tmp_path / "plugin.so"
        plugin.write_bytes(b"no library")
        monkeypatch.setattr("commutant.support.artifacts.plugin_path", lambda: plugin)
        try:
            check = doctor.check_plugin()
        except RunError as error:
            assert "qemu-system-x86" in str(error)  # a machine without QEMU
        else:
            assert check.state is doctor.State.PROBLEM and "plugin" in check.found
