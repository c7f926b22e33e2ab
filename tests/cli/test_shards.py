"""Shards of a corpus, made and run apart, are together what one machine would have made and run."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

CALLS = "link,stat,unlink"


def verdicts(run):
    """What was judged, by test."""
    lines = [json.loads(line) for line in (run / "verdicts.jsonl").read_text().splitlines()]
    return {line["test"]: (line["outcome"], len(line["findings"]), line["windows"]) for line in lines if "test" in line}


def ids(corpus):
    with gzip.open(corpus) as lines:
        return [json.loads(line)["id"] for line in list(lines)[1:]]


RUNS = ("shard-3", "shard-1", "shard-2")
CHECK = ("check", "names", "--target", "fake:outcome=varied", "--calls", CALLS, "--self")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Where runs are kept for all tests of this file."""
    return tmp_path_factory.mktemp("shards")


@pytest.fixture
def shards(commutant, folder, made):
    """A folder with runs of three shards of `names`, and a run of all of it."""
    if not any(made.iterdir()):
        for number in (1, 2, 3):
            answer = commutant(*CHECK, "--shard", f"{number}/3", "-o", str(made / f"shard-{number}"))
            assert answer.returncode == 0, answer.stderr
        assert commutant(*CHECK, "-o", str(made / "whole")).returncode == 0
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return folder


def test_three_runs_are_the_run_of_one_machine(commutant, shards):
    answer = commutant("merge", *RUNS, "-o", "merged")
    assert answer.returncode == 0, answer.stderr
    assert (shards / "merged" / "report.html").is_file()
    assert ids(shards / "merged" / "corpus.jsonl.gz") == ids(shards / "whole" / "corpus.jsonl.gz")
    assert verdicts(shards / "merged") == verdicts(shards / "whole")
    merged, whole = (json.loads((shards / name / "summary.json").read_text()) for name in ("merged", "whole"))
    for of_machine in ("seconds", "start_seconds"):
        del merged[of_machine], whole[of_machine]
    assert merged == whole
    assert commutant("report", "merged").returncode == 0
    assert "is complete" in commutant("resume", "merged").stderr


def test_three_corpora_are_the_corpus_of_one_machine(commutant, folder):
    what = ("generate", "names", "--calls", CALLS, "--self")
    assert commutant(*what, "-o", "whole.jsonl.gz").returncode == 0
    for number in (1, 2, 3):
        assert commutant(*what, "--shard", f"{number}/3", "-o", f"{number}.jsonl.gz").returncode == 0
    answer = commutant("merge", "2.jsonl.gz", "3.jsonl.gz", "1.jsonl.gz", "-o", "merged.jsonl.gz")
    assert answer.returncode == 0, answer.stderr
    merged, whole = (gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()) for name in ("merged", "whole"))
    assert merged == whole


def test_a_corpus_of_a_file_is_run_in_shards(commutant, folder):
    assert commutant("check", "corpus.jsonl.gz", "--target", "fake", "-o", "whole").returncode == 0
    for number in (1, 2, 3):
        what = ("check", "corpus.jsonl.gz", "--target", "fake", "--shard", f"{number}/3", "-o", f"shard-{number}")
        assert commutant(*what).returncode == 0
    assert commutant("merge", *RUNS, "-o", "merged").returncode == 0
    assert ids(folder / "merged" / "corpus.jsonl.gz") == ids(folder / "corpus.jsonl.gz")
    assert verdicts(folder / "merged") == verdicts(folder / "whole")


def test_shards_of_an_analysis_are_in_the_cache_for_the_whole(commutant, monkeypatch):
    what = ("analyze", "names", "--calls", CALLS, "--self", "--format", "json")
    sets = [json.loads(commutant(*what, "--shard", f"{number}/2").stdout)["sets"] for number in (1, 2)]
    monkeypatch.setattr("commutant.analyzer.analysis.map_in_processes", None)  # no other way to an answer
    whole = json.loads(commutant(*what).stdout)["sets"]
    assert whole[::2] == sets[0] and whole[1::2] == sets[1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("shard-1", "shard-2"), "1 shard is missing: 3/3; expected all of them"),
        (("shard-1", "shard-2", "shard-2"), "shard-2 and shard-2 are both shard 2/3; expected each once"),
        (("shard-1", "shard-2", "whole"), "whole is no shard; expected what --shard has made"),
        (("whole",), "whole is no shard; expected what --shard has made"),
        (("shard-1", "shard-2", "half"), "half is shard 1/2 of names, level conflict"),
        (("shard-1", "shard-2", "other"), "expected shards of the same tests"),
        (("shard-1", "shard-2", "elsewhere"), "run with target 'fake:outcome=varied', elsewhere with 'fake'"),
        (("shard-1", "shard-2", "kernel"), "run with kernel 'none', kernel with 'another'"),
        (("shard-1", "shard-2", "stopped"), "stopped is not complete"),
        (("shard-1", "shard-2", "rateless"), "rateless/summary.json is damaged (0 of 0 windows"),
        (("shard-1", "missing"), "missing: expected the folder of a run, found no such folder"),
        (("shard-1", "corpus.jsonl.gz"), "shard-1 is a run, corpus.jsonl.gz is none; expected shards of one kind"),
        (("corpus.jsonl.gz",), "corpus.jsonl.gz is no shard"),
        (("corpus.jsonl.gz", "--format", "json"), "corpora are merged: --format cannot be given"),
        (("missing.jsonl.gz",), "cannot read the corpus missing.jsonl.gz"),
        ((), "Missing argument"),
    ],
)
def test_what_does_not_fit_together_is_refused(commutant, shards, arguments, expected):
    if "half" in arguments:
        assert commutant(*CHECK, "--shard", "1/2", "-o", "half").returncode == 0
    if "other" in arguments:
        assert commutant(*CHECK, "--level", "path", "--shard", "3/3", "-o", "other").returncode == 0
    if "elsewhere" in arguments:
        assert commutant(*CHECK, "--target", "fake", "--shard", "3/3", "-o", "elsewhere").returncode == 0
    if "kernel" in arguments:
        shutil.copytree("shard-3", "kernel")
        info = json.loads((shards / "kernel" / "run.json").read_text())
        info["target_description"]["kernel"] = "another"
        (shards / "kernel" / "run.json").write_text(json.dumps(info))
    if "stopped" in arguments:
        shutil.copytree("shard-3", "stopped")
        (shards / "stopped" / "summary.json").unlink()
    if "rateless" in arguments:
        shutil.copytree("shard-3", "rateless")
        document = json.loads((shards / "rateless" / "summary.json").read_text())
        document["keys"] = [{"variable": "a", "sharing": "true", "tests": 1, "windows": 0, "shared": 0}]
        (shards / "rateless" / "summary.json").write_text(json.dumps(document))
    answer = commutant("merge", *arguments, "-o", "merged")
    assert answer.returncode == 2
    assert expected in answer.stderr
    assert not (shards / "merged").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("analyze", "names", "--shard", "0/3"), "expected a shard from 1/3 to 3/3, got '0/3'"),
        (("analyze", "names", "--shard", "4/3"), "expected a shard from 1/3 to 3/3, got '4/3'"),
        (("generate", "names", "--shard", "one"), "expected a shard as 1/3, the first of three, got 'one'"),
        (("generate", "names", "--calls", "link,stat", "--shard", "1/2"), "shard 1/2 of 1 set of calls"),
        (("check", "corpus.jsonl.gz", "--target", "fake", "--shard", "1/11"), "shard 1/11 of 10 tests"),
        (("check", "shard.jsonl.gz", "--target", "fake", "--shard", "1/2"), "the corpus is shard 1/3 of another"),
    ],
)
def test_what_cannot_be_cut_is_refused(commutant, folder, arguments, expected):
    commutant("generate", "names", "--calls", CALLS, "--shard", "1/3", "-o", "shard.jsonl.gz")
    answer = commutant(*arguments)
    assert answer.returncode == 2
    assert expected in answer.stderr


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"number": 4}, "shard 4 of 3"),
        ({"whole": "x"}, "Expected `str` matching regex"),
        ({"pieces": [1]}, "the pieces of the shard have 1 tests, and tests is"),
        ({"count": "3"}, "Expected `int`, got `str`"),
    ],
)
def test_a_damaged_shard_is_named(commutant, folder, change, expected):
    commutant("generate", "names", "--calls", CALLS, "--shard", "1/3", "-o", "shard.jsonl.gz")
    header, tests = gzip.decompress((folder / "shard.jsonl.gz").read_bytes()).split(b"\n", 1)
    header = json.loads(header)
    header["shard"].update(change)
    (folder / "shard.jsonl.gz").write_bytes(gzip.compress(json.dumps(header).encode() + b"\n" + tests))
    answer = commutant("check", "shard.jsonl.gz", "--target", "fake")
    assert answer.returncode == 2
    assert "shard.jsonl.gz, line 1: " in answer.stderr and expected in answer.stderr


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"pieces": [0]}, "shard 1 has 2 pieces, and 3.jsonl.gz has 3; expected as many, or one less"),
        ({"model": "0" * 64}, "expected shards of the same tests"),
        ({"level": "path"}, "3.jsonl.gz is shard 3/3 of names, level path"),
    ],
)
def test_shards_that_say_the_same_whole_are_compared(commutant, folder, change, expected):
    for number in (1, 2, 3):
        commutant("generate", "names", "--calls", CALLS, "--shard", f"{number}/3", "-o", f"{number}.jsonl.gz")
    header, tests = gzip.decompress((folder / "3.jsonl.gz").read_bytes()).split(b"\n", 1)
    header = json.loads(header)
    header["shard"]["pieces"] += change.pop("pieces", [])
    header.update(change)
    (folder / "3.jsonl.gz").write_bytes(gzip.compress(json.dumps(header).encode() + b"\n" + tests))
    answer = commutant("merge", "1.jsonl.gz", "2.jsonl.gz", "3.jsonl.gz", "-o", "merged.jsonl.gz")
    assert answer.returncode == 2
    assert expected in answer.stderr
    assert not (folder / "merged.jsonl.gz").exists()


def test_a_shard_may_have_no_tests(commutant, folder):
    """`link` with `link` and so on have; a set whose calls never commute has none."""
    (folder / "model.py").write_text(NEVER)
    for number in (1, 2, 3):
        answer = commutant("check", "model.py", "--target", "fake", "--shard", f"{number}/3", "-o", f"shard-{number}")
        assert answer.returncode == 0, answer.stderr
    assert commutant("merge", *RUNS, "-o", "merged").returncode == 0


NEVER = """
from commutant.lang import Interface, call

class Counter(Interface):
    value: int

    def setup(self):
        yield from ()
        if self.value:
            return None

    @call
    def next(self) -> int:
        self.value += 1
        return self.value

    @call
    def ask(self) -> bool:
        return self.value == self.value
"""
