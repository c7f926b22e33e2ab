"""Run directories: written safely, read back whole, refused in one line when damaged."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import jsonschema
import pyarrow.parquet
import pytest

from commutant.campaign.summary import Summary, Tally
from commutant.campaign.verdict import Outcome, Verdict, skipped
from commutant.documents import encode, read
from commutant.mtrace.fingerprint import NAMING, fingerprint
from commutant.runs.content import judged_tests, report_of
from commutant.runs.directory import (
    Generated,
    HostDescription,
    RunInfo,
    RunWriter,
    load_run,
    new_directory,
    safe_folder_name,
    write_atomically,
)
from commutant.runs.table import write_findings
from commutant.support.errors import RunError, UsageError
from tests.campaign.fakes import make_corpus, make_finding

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"


def validate(document, name):
    jsonschema.validate(document, json.loads((SCHEMAS / f"{name}.schema.json").read_text()))


def info(**changes):
    fields = {
        "commutant": "0.1.0",
        "python": "3.11.7",
        "command": ["commutant", "check", "names"],
        "interface": "names",
        "level": "conflict",
        "model": "0123abcd",
        "tests": 4,
        "target": "fake",
        "target_description": {"kernel": "none", "options": {"fs": "none"}, "modules": [1, "a"]},
        "seed": 7,
        "repeats": 3,
        "jobs": 2,
        "started": "2026-01-01T00:00:00+00:00",
        "naming": NAMING,
        "machine": HostDescription("Linux", "6", "x86_64", 2, 1),
    }
    return RunInfo(**{**fields, **changes})


CORPUS = make_corpus(4)
VERDICTS = [
    Verdict(CORPUS.tests[0].id, Outcome.CONFLICT_FREE, windows=2),
    Verdict(
        CORPUS.tests[1].id, Outcome.CONFLICTING, (make_finding("a"), make_finding("b")), windows=6, ignored={"timer": 2}
    ),
    Verdict(CORPUS.tests[2].id, Outcome.UNSTABLE, (make_finding("c"),), windows=6, ignored={"timer": 1, "memset": 4}),
    skipped(CORPUS.tests[3], "fake does not know the call open"),
]


@pytest.fixture
def complete(tmp_path):
    """A complete run directory."""
    path = new_directory(tmp_path / "run", "")
    with RunWriter.create(path, info(), CORPUS) as writer:
        tally = Tally(CORPUS.tests)
        for seconds, verdict in enumerate(VERDICTS):
            writer.append(verdict, seconds)
            tally.add({test.id: test for test in CORPUS.tests}[verdict.test_id], verdict)
        write_findings(path / "findings.parquet", judged_tests(load_run(path)))
        writer.finish(tally.summary("names", "fake", "conflict", 3.25, 1.5))
    return path


def test_a_run_is_read_back(complete):
    run = load_run(complete)
    assert run.complete
    assert run.info == info()
    assert run.corpus == CORPUS
    assert list(run.verdicts()) == VERDICTS
    summary = json.loads(encode(run.summary))
    assert summary["tests"] == 4 and summary["windows"] == 14 and summary["start_seconds"] == 1.5
    assert summary["ignored"] == {"memset": 4, "timer": 3}
    assert [one["calls"] for one in summary["sets"]] == [["link", "rename"], ["open", "open"]]
    assert summary["sets"][1] == {
        "calls": ["open", "open"],
        "tests": 2,
        "conflict_free": 0,
        "conflicting": 1,
        "unstable": 0,
        "wrong_result": 0,
        "skipped": 1,
        "crashed": 0,
    }
    assert read(Summary, encode(summary)) == run.summary


def test_equal_findings_of_two_sessions_are_one_object_and_one_line(tmp_path):
    """Each session builds its own; kept apart, memory grew with sessions, and stacks were compared for every test."""
    path = new_directory(tmp_path / "run", "")
    first, second = (
        Verdict(test.id, Outcome.CONFLICTING, (make_finding("a"),), windows=2) for test in CORPUS.tests[:2]
    )
    with RunWriter.create(path, info(), CORPUS) as writer:
        kept = [writer.append(verdict, 0.0) for verdict in (first, second)]
    assert kept == [first, second]
    assert kept[0].findings[0] is kept[1].findings[0]
    assert (path / "verdicts.jsonl").read_text().count('"finding":') == 1


def test_every_file_fits_its_schema(complete):
    validate(json.loads((complete / "run.json").read_text()), "run")
    validate(json.loads((complete / "summary.json").read_text()), "summary")
    for line in (complete / "verdicts.jsonl").read_text().splitlines():
        validate(json.loads(line), "verdict")
    assert sorted(path.name for path in complete.iterdir()) == [
        "corpus.jsonl.gz",
        "findings.parquet",
        "run.json",
        "summary.json",
        "verdicts.jsonl",
    ]


def test_the_table_has_a_row_per_standing_finding(complete):
    rows = pyarrow.parquet.read_table(complete / "findings.parquet").to_pylist()
    assert [(row["test_id"], row["field"]) for row in rows] == [
        (CORPUS.tests[1].id, "a"),
        (CORPUS.tests[1].id, "b"),
    ]
    row = rows[0]
    assert row["calls"] == ["open", "open"]
    assert row["fingerprint"] == fingerprint(["open", "open"], make_finding("a")).digest
    assert (row["kind"], row["technique"]) == ("data", "do-not-read")
    assert (row["object"], row["name"], row["sharing"]) == ("struct dentry", "struct dentry.a", "true")
    assert row["line"] == 0xFFFF888003A1C040
    assert (row["first_core"], row["first_call"], row["first_write"], row["second_write"]) == (0, "open", True, False)
    assert (row["first_offset"], row["first_size"]) == (8, 4)
    assert row["second_function"] == "dput"
    assert row["second_stack"] == ["dput+0x10", "do_syscall_64+0x5b"]


def test_a_run_without_findings_has_an_empty_table(tmp_path):
    path = new_directory(tmp_path / "run", "")
    with RunWriter.create(path, info(tests=0), make_corpus(0)) as writer:
        write_findings(path / "findings.parquet", judged_tests(load_run(path)))
        writer.finish(Tally([]).summary("names", "fake", "conflict", 0, 0))
    assert pyarrow.parquet.read_table(path / "findings.parquet").num_rows == 0


def test_the_report_has_every_test_and_says_what_was_run(complete):
    report = report_of(load_run(complete))
    assert [test.outcome for test in report.tests] == [verdict.outcome for verdict in VERDICTS]
    assert report.facts["options"] == "fs=none" and report.facts["modules"] == "1, a"
    assert "incomplete" not in report.facts


def interrupt(path, cut):
    """Makes a complete run an interrupted one: no summary, the last `cut` bytes of the verdicts not written."""
    (path / "summary.json").unlink()
    file = path / "verdicts.jsonl"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) - cut])


def test_an_interrupted_run_is_read_as_far_as_it_got(complete):
    interrupt(complete, cut=10)
    run = load_run(complete)
    assert not run.complete
    assert list(run.verdicts()) == VERDICTS[:3]
    assert (run.summary.tests, run.summary.seconds, run.summary.start_seconds) == (3, 2.0, 0.0)
    assert report_of(run).facts["incomplete"] == "interrupted after 3 of 4 tests"


@pytest.mark.parametrize("cut", [0, 1, 10, 100_000])
def test_a_partial_line_is_cut_off_before_more_is_written(complete, cut):
    interrupt(complete, cut)
    kept = list(load_run(complete).verdicts())
    assert kept == VERDICTS[: len(kept)]
    with RunWriter.resume(load_run(complete)) as writer:
        for verdict in VERDICTS[len(kept) :]:
            writer.append(verdict, 9.0)
    assert list(load_run(complete).verdicts()) == VERDICTS
    assert list(load_run(complete).findings()) == [make_finding(name) for name in "abc"]


def test_a_finding_of_many_tests_is_written_once(tmp_path):
    """With stacks and fields it has some 2 KB, and a field such as `d_lockref` is shared in thousands of tests."""
    corpus = make_corpus(50)
    path = new_directory(tmp_path / "run", "")
    with RunWriter.create(path, info(tests=50), corpus) as writer:
        for test in corpus.tests:
            writer.append(Verdict(test.id, Outcome.CONFLICTING, (make_finding("a"), make_finding("b")), 6), 0)
    text = (path / "verdicts.jsonl").read_text()
    assert text.count("do_syscall_64") == 4
    verdicts = list(load_run(path).verdicts())
    assert len({id(finding) for verdict in verdicts for finding in verdict.findings}) == 2


@pytest.mark.parametrize("length", [65_534, 65_535, 65_536, 200_000])
def test_a_partial_line_as_long_as_a_block_or_longer_is_cut_off(complete, length):
    """The end is read in blocks of 65,536 bytes, of which the last line's end may be the first byte."""
    with (complete / "verdicts.jsonl").open("ab") as file:
        file.write(b"x" * length)
    RunWriter.resume(load_run(complete)).close()
    assert list(load_run(complete).verdicts()) == VERDICTS


def test_two_writers_at_once_are_refused(complete):
    with RunWriter(complete), pytest.raises(RunError, match="being written by another commutant"):
        RunWriter(complete)
    RunWriter(complete).close()


def test_a_full_disk_is_named(tmp_path):
    path = new_directory(tmp_path / "run", "")
    (path / "verdicts.jsonl").symlink_to("/dev/full")
    with (
        RunWriter.create(path, info(), CORPUS) as writer,
        pytest.raises(RunError, match=r"verdicts.jsonl: No space left on device"),
    ):
        writer.append(VERDICTS[0], 1.0)


def test_an_atomic_write_that_fails_leaves_nothing(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(RunError, match=r"cannot write .*taken"):
        write_atomically(tmp_path / "taken", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def refused(path, read=lambda run: (run.summary, run.corpus, list(run.verdicts()))):
    with pytest.raises(UsageError) as caught:
        read(load_run(path))
    message = str(caught.value)
    assert "\n" not in message and str(path) in message
    return message


def test_what_is_no_run_directory_is_refused(tmp_path):
    assert "is not a directory" in refused(tmp_path / "missing")
    assert "has no run.json" in refused(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "verdicts.jsonl", "corpus.jsonl.gz"])
def test_a_pipe_in_place_of_a_file_is_refused(complete, name):
    """Reading waited for somebody to write to it."""
    (complete / name).unlink()
    os.mkfifo(complete / name)
    assert "regular file" in refused(complete)


@pytest.mark.parametrize(
    ("name", "expected"), [("run.json", "larger than 67108864 bytes"), ("verdicts.jsonl", "the line is too long")]
)
def test_more_than_64_mebibytes_in_one_piece_are_not_read(complete, name, expected):
    (complete / name).unlink()
    with (complete / name).open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert expected in refused(complete)


@pytest.mark.parametrize(("size", "sample", "fits"), [(1, 1, True), (0, 1, False), (4, 9, True), (2, 0, False)])
def test_how_tests_were_made_is_of_at_least_one_call_and_every_set(size, sample, fits):
    made = {"interface": "names", "calls": None, "size": size}
    said = json.dumps({**made, "sample": sample})
    if fits:
        assert read(Generated, said.encode()).sample == sample
        assert read(Generated, json.dumps(made).encode()).sample == 1, "each set, unless it says otherwise"
    else:
        with pytest.raises(ValueError, match=">= 1"):
            read(Generated, said.encode())


@pytest.mark.parametrize("count", ["repeats", "jobs"])
def test_at_least_one_repeat_and_one_job_were_made(complete, count):
    document = json.loads((complete / "run.json").read_text())
    for number in (1, 0):
        (complete / "run.json").write_text(json.dumps({**document, count: number}))
        if number:
            assert getattr(load_run(complete).info, count) == 1
        else:
            assert ">= 1" in refused(complete)


def test_what_a_run_says_of_itself_is_not_changed_by_readers(complete):
    summary = load_run(complete).summary
    for value in (info(), info().machine, Generated("names", None, 2), summary, summary.sets[0]):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, value.__struct_fields__[-1], None)


def test_an_entry_that_is_too_short_is_damage(complete):
    """What a line is called has three parts; two were a defect of ours, an IndexError."""
    lines = (complete / "verdicts.jsonl").read_text().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if '"finding":' in line)
    raw = json.loads(lines[number])
    raw["finding"]["fields"] = [[0, 1]]
    lines[number] = json.dumps(raw) + "\n"
    (complete / "verdicts.jsonl").write_text("".join(lines))
    assert f"verdicts.jsonl, line {number + 1} is damaged" in refused(complete)


def test_what_is_said_of_a_damaged_file_is_short(complete):
    """A text of 10,000 characters where a number should be was printed in full."""
    summary = json.loads((complete / "summary.json").read_text())
    (complete / "summary.json").write_text(json.dumps({**summary, "unstable": "x" * 10_000}))
    message = refused(complete)
    assert "Expected `int`, got `str` - at `$.unstable`" in message and len(message) < 1000


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("run.json", "", "run.json is damaged"),
        ("run.json", "[]", "Expected `object`, got `array`"),
        ("run.json", "{}", "expected schema_version 1, got None"),
        ("run.json", '{"kind": "run", "schema_version": 9}', "expected schema_version 1, got 9"),
        ("run.json", '{"kind": "walk", "schema_version": 1}', "expected a document of kind 'run', got 'walk'"),
        ("run.json", '{"kind": "run", "schema_version": 1}', "Object missing required field `commutant`"),
        ("run.json", "[" * 100_000, "run.json is damaged"),
        ("summary.json", "{", "summary.json is damaged"),
        ("summary.json", '{"schema_version": 1}', "Object missing required field `tests`"),
        ("corpus.jsonl.gz", "text", "line 1: not a gzip file"),
        ("verdicts.jsonl", "{}\n", "verdicts.jsonl, line 1 is damaged (Object missing required field `test`)"),
        ("verdicts.jsonl", "nonsense\n", "verdicts.jsonl, line 1 is damaged"),
        ("verdicts.jsonl", "\n", "verdicts.jsonl, line 1 is damaged"),
        ("verdicts.jsonl", "[]\n", "verdicts.jsonl, line 1 is damaged"),
        ("verdicts.jsonl", '{"detail": "\\ud800"}\n', "half of a surrogate pair"),
        ("verdicts.jsonl", '{"seconds": NaN}\n', "JSON is malformed: invalid character (byte 12)"),
        ("verdicts.jsonl", '{"finding": {}}\n', "Object missing required field `line` - at `$.finding`"),
        ("verdicts.jsonl", '{"test": 1}\n', "Expected `str`, got `int` - at `$.test`"),
        ("verdicts.jsonl", '{"finding": [], "number": 0}\n', "verdicts.jsonl, line 1 is damaged"),
    ],
)
def test_a_damaged_file_is_refused(complete, name, content, expected):
    (complete / name).write_text(content)
    assert expected in refused(complete)


@pytest.mark.parametrize("name", ["corpus.jsonl.gz", "verdicts.jsonl"])
def test_a_missing_file_is_refused(complete, name):
    (complete / name).unlink()
    assert name in refused(complete)


def change_json(path, **changes):
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **changes}))


def test_a_summary_that_does_not_add_up_is_refused(complete):
    change_json(complete / "summary.json", conflicting=2)
    assert "the six outcomes add up to 5" in refused(complete)
    change_json(complete / "summary.json", tests=5)
    assert "the sets do not add up" in refused(complete)


def test_a_complete_run_whose_verdicts_were_cut_off_is_refused(complete):
    """Its findings were missing, and a gate let the next run through or stopped it, by what was lost."""
    path = complete / "verdicts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert "the run is complete, yet tests without a verdict: 1" in refused(complete)


def test_verdicts_on_foreign_or_repeated_tests_are_refused(complete):
    file = complete / "verdicts.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[0]]))
    assert f"line {len(lines) + 1} is damaged" in refused(complete)
    file.write_text("".join(line for line in lines if '"number":0' not in line))
    assert "line 2 is damaged (the finding has the number 1, 0 is next)" in refused(complete)
    file.write_text("".join(line for line in lines if 'finding"' not in line))
    assert "line 2 is damaged (findings names one that does not stand before it: [0, 1])" in refused(complete)
    file.write_text(lines[0].replace(CORPUS.tests[0].id, "link-rename-000000000000"))
    assert "line 1 is damaged ('link-rename-000000000000' is not in the corpus" in refused(complete)


def test_random_damage_gives_one_line_or_a_run(complete):
    generator = random.Random(5)
    for name in ("run.json", "summary.json", "verdicts.jsonl"):
        file = complete / name
        whole = file.read_bytes()
        for _ in range(150):
            content = bytearray(whole)
            place = generator.randrange(len(content))
            content[place : place + generator.randrange(3)] = generator.randbytes(generator.randrange(3))
            file.write_bytes(content)
            try:
                run = load_run(complete)
                _ = (run.summary, list(run.verdicts()))
            except UsageError as error:
                assert "\n" not in str(error)
        file.write_bytes(whole)


def test_directories_are_numbered_and_never_existing_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [new_directory(None, "names-linux").name for _ in range(3)] == [f"names-linux-{n}" for n in (1, 2, 3)]
    assert new_directory(Path("a/b/c"), "").is_dir()
    with pytest.raises(UsageError, match="exists already"):
        new_directory(Path("a/b/c"), "")
    Path("file").touch()
    with pytest.raises(RunError, match="cannot make a directory in file: File exists"):
        new_directory(Path("file/run"), "")


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("linux", "linux"),
        ("linux:fs=ext4,kernel=/boot/x.deb", "linux-fs-ext4-kernel-boot-x.deb"),
        ("../../etc", "etc"),
        ("...", "unnamed"),
        ("", "unnamed"),
        ("a\n\0b", "a-b"),
        ("é" * 100, "unnamed"),
        ("x" * 1000, "x" * 60),
    ],
)
def test_folder_names_are_safe(argument, name):
    assert safe_folder_name(argument) == name
