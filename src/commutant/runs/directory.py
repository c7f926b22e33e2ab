"""Run directories: everything that one campaign leaves, made so that nothing already judged can be lost.

    run.json             what was run: versions, target, command, seed, machine (written once, at the start)
    corpus.jsonl.gz      the tests
    verdicts.jsonl       one line per judged test, and one per distinct finding, appended while the campaign goes
    findings.parquet     one row per test and standing finding (at the end)
    summary.json         the figures (last of all: its presence says that the campaign is complete)
    report.html          the page (see commutant.report)

Tests share the same few findings, each with two stacks: a finding stands in `verdicts.jsonl` once, numbered from 0 in
the order of the lines, before the first test that has it; tests refer to it by number. So the file, and the memory of
whoever reads it, grow with the number of distinct findings. So it is with pictures (`commutant.runs.pictures`).

Lines are appended in one write per test, so an interrupted campaign leaves at most one partial line at the end, which
reading skips and resuming cuts off. All other files appear under their name only when complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from commutant.campaign import Summary, Tally, Verdict
from commutant.corpus import Corpus, TestCase, read_corpus, write_corpus
from commutant.mtrace import Finding
from commutant.runs.pictures import PictureNumbers, PicturesRead
from commutant.support import MAX_CALLS_PER_SET, CommutantError, Once, RunError, UsageError, open_regular, whole_file

SCHEMA_VERSION = 1
RUN_FILE = "run.json"
CORPUS_FILE = "corpus.jsonl.gz"
VERDICTS_FILE = "verdicts.jsonl"
FINDINGS_FILE = "findings.parquet"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"

MAX_JSON_BYTES = 64 << 20
MAX_VERDICT_LINE_BYTES = 64 << 20

MAX_KNOWN_FINDINGS = 1 << 14
"""So many findings a writer knows by their identity, whatever sessions build; others it compares."""

TimedVerdict = tuple[Verdict, float]
"""A verdict, and the seconds that the campaign had run when it came."""

_Document = TypeVar("_Document")

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


@dataclass(frozen=True, slots=True)
class Generated:
    """How a corpus was made: from an interface argument, for sets of `size` calls out of `calls` (None: all)."""

    interface: str
    calls: tuple[str, ...] | None
    size: int

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Generated:
        """Reads what `asdict` gives; raises KeyError, TypeError or ValueError for anything else."""
        interface, calls, size = raw["interface"], raw["calls"], raw["size"]
        if type(interface) is not str or type(size) is not int or not 1 <= size <= MAX_CALLS_PER_SET:
            raise ValueError(f"generated: expected an interface and a size, got {interface!r:.80} and {size!r:.20}")
        if calls is not None and (type(calls) is not list or not all(type(call) is str for call in calls)):
            raise ValueError("generated: expected names of calls")
        return cls(interface, None if calls is None else tuple(calls), size)


def hash_of_tests(corpus: Corpus) -> str:
    """The SHA-256 of the ids of all tests in their order, and so of the tests."""
    digest = hashlib.sha256()
    for test in corpus.tests:
        digest.update(f"{test.id}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The content of `run.json` (docs/schemas/run.schema.json).

    `target` is the target argument, `target_description` what the target says of itself (kernel, QEMU, options),
    `started` a UTC time in ISO 8601, `machine` what the campaign ran on, `command` the command line. `tests_sha256` is
    `hash_of_tests`, and `generated` says how the tests are made again; None if they came out of a file. Runs of earlier
    versions have neither.
    """

    commutant: str
    python: str
    command: list[str]
    interface: str
    level: str
    model: str
    tests: int
    target: str
    target_description: Mapping[str, object]
    seed: int
    repeats: int
    jobs: int
    started: str
    machine: Mapping[str, object]
    tests_sha256: str = ""
    generated: Generated | None = None

    def to_json(self) -> dict[str, object]:
        """The JSON document."""
        return {"schema_version": SCHEMA_VERSION, "kind": "run", **asdict(self)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> RunInfo:
        """Reads what `to_json` gave; raises KeyError, TypeError or ValueError for anything else."""
        if raw["kind"] != "run" or raw["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"expected a run of schema_version {SCHEMA_VERSION}, got {raw['schema_version']!r}")
        texts = ("commutant", "python", "interface", "level", "model", "target", "started")
        for kind, keys in (
            (str, texts),
            (int, ("tests", "seed", "repeats", "jobs")),
            (list, ("command",)),
            (dict, ("target_description", "machine")),
        ):
            for key in keys:
                if type(raw[key]) is not kind:
                    raise ValueError(f"{key}: expected {kind.__name__}, got {type(raw[key]).__name__}")
        if not all(type(word) is str for word in raw["command"]):
            raise ValueError("command: expected a list of texts")
        given = {key: raw[key] for key in cls.__slots__ if key in raw}
        if type(given.get("tests_sha256", "")) is not str:
            raise ValueError("tests_sha256: expected str")
        if given.get("generated") is not None:
            given["generated"] = Generated.from_json(given["generated"])
        return cls(**given)


def safe_folder_name(text: str) -> str:
    """A target or interface argument as part of a folder's name: letters, digits, `.`, `_` and `-`, at most 60.

    >>> safe_folder_name("linux:fs=ext4,kernel=/boot/x")
    'linux-fs-ext4-kernel-boot-x'
    """
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", text)[:60].strip("-.")
    return name or "unnamed"


def new_directory(wanted: Path | None, default_name: str) -> Path:
    """Makes the directory of a run: `wanted`, or the first free `runs/<default_name>-<n>`.

    Raises UsageError if `wanted` exists, RunError if it cannot be made.
    """
    parent = wanted.parent if wanted is not None else Path("runs")
    try:
        if not parent.is_dir():
            parent.mkdir(parents=True)
        for number in itertools.count(1):
            directory = wanted or parent / f"{default_name}-{number}"
            try:
                directory.mkdir()
                return directory
            except FileExistsError as error:
                if wanted is not None:
                    raise UsageError(f"{wanted} exists already; -o takes the name of a new directory") from error
    except (OSError, ValueError) as error:
        raise RunError(f"cannot make a directory in {parent}: {_reason(error)}") from error
    raise AssertionError("numbers do not end")


def write_json(path: Path, document: Mapping[str, object]) -> None:
    """Writes a JSON document, all of it or nothing; raises RunError."""
    write_atomically(path, json.dumps(document, indent=1, ensure_ascii=False).encode(errors="backslashreplace") + b"\n")


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file so that it is never seen half written; raises RunError (full disk, missing permission)."""
    try:
        with whole_file(path) as file:
            file.write(content)
    except OSError as error:
        raise RunError(f"cannot write {path}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


class RunWriter:
    """Appends to a run directory. One writer at a time: the verdicts' file is locked while it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path / VERDICTS_FILE
        self._numbers: dict[Finding, int] = {}
        self._first: list[Finding] = []  # by number
        self._number = Once(self._new_number, MAX_KNOWN_FINDINGS)
        self._pictures = PictureNumbers()
        try:
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise RunError(f"cannot write {self._file}: {_reason(error)}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise RunError(f"{path} is being written by another commutant; wait until that has ended") from error

    @classmethod
    def create(cls, path: Path, info: RunInfo, corpus: Corpus) -> RunWriter:
        """Fills a new directory with run.json and the corpus and opens it for verdicts."""
        write_corpus(corpus, path / CORPUS_FILE)
        write_json(path / RUN_FILE, info.to_json())
        return cls(path)

    @classmethod
    def resume(cls, run: Run) -> RunWriter:
        """Opens the directory of an interrupted run, to go on where it ended; raises RunError or UsageError."""
        writer = cls(run.path)
        try:
            writer._cut_partial_line()
            drawn = PicturesRead()
            for record in run._records(drawn):
                if isinstance(record, Finding):
                    writer._number(record)
            writer._pictures = PictureNumbers(drawn.pictures, drawn.fields)
        except BaseException:
            writer.close()
            raise
        return writer

    def _cut_partial_line(self) -> None:
        """Removes what an interrupted writer left behind the last complete line."""
        try:
            size = os.fstat(self._descriptor).st_size
            keep = size
            while keep:
                block_start = max(0, keep - 65536)
                newline = os.pread(self._descriptor, keep - block_start, block_start).rfind(b"\n")
                if newline >= 0:
                    keep = block_start + newline + 1
                    break
                keep = block_start
            if keep != size:
                os.ftruncate(self._descriptor, keep)
        except OSError as error:
            raise RunError(f"cannot go on writing {self._file}: {_reason(error)}") from error

    def append(self, verdict: Verdict, seconds: float) -> Verdict:
        """Appends one verdict, and returns it with one object for equal findings of the run.

        `seconds` is how long the campaign has run by now. Raises RunError (full disk).
        """
        known = len(self._first)
        numbers = list(map(self._number, verdict.findings))
        pictures = self._pictures.of(verdict.pictures)
        documents: list[dict[str, object]] = [
            {"finding": finding.to_json(), "number": number}
            for number, finding in enumerate(self._first[known:], known)
        ]
        documents += self._pictures.take_new()
        documents.append({**verdict.to_json(numbers, pictures), "seconds": round(seconds, 3)})
        lines = "".join(f"{_encode(document)}\n" for document in documents).encode()
        try:
            written = os.write(self._descriptor, lines)
            while written < len(lines):
                written += os.write(self._descriptor, lines[written:])
        except OSError as error:
            raise RunError(f"cannot write {self._file}: {_reason(error)}") from error
        return replace(verdict, findings=tuple([self._first[number] for number in numbers])) if numbers else verdict

    def _new_number(self, finding: Finding) -> int:
        """The number of a finding that another session may have met before: then an equal one has it."""
        number = self._numbers.setdefault(finding, len(self._first))
        if number == len(self._first):
            self._first.append(finding)
        return number

    def finish(self, summary: Summary) -> None:
        """Writes summary.json, which says that the run is complete: after everything else. Raises RunError."""
        write_json(self.path / SUMMARY_FILE, summary.to_json())

    def close(self) -> None:
        """Closes the file and lets go of the lock; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Run:
    """A run directory read back. `run.json` is read at once, everything else when asked for."""

    def __init__(self, path: Path, corpus: Corpus | None, judged: Sequence[TimedVerdict] | None) -> None:
        self.path = path
        self.info = load_run_info(path / RUN_FILE)
        self._corpus = corpus
        self._judged = judged

    @property
    def complete(self) -> bool:
        """Whether the campaign ran to its end."""
        return (self.path / SUMMARY_FILE).exists()

    @property
    def corpus(self) -> Corpus:
        """The tests; raises UsageError if the file is damaged."""
        if self._corpus is None:
            self._corpus = read_corpus(self.path / CORPUS_FILE)
        return self._corpus

    @cached_property
    def tests(self) -> dict[str, TestCase]:
        """The tests by id."""
        return {test.id: test for test in self.corpus.tests}

    @cached_property
    def summary(self) -> Summary:
        """The figures; of an incomplete run those of what was judged, with `start_seconds` 0."""
        if self.complete:
            return _read_document(self.path / SUMMARY_FILE, Summary.from_json)
        tally, seconds = self.tally()
        return tally.summary(self.info.interface, self.info.target, self.info.level, seconds, 0.0)

    def tally(self) -> tuple[Tally, float]:
        """The verdicts counted, and the seconds that the campaign had run at the last of them."""
        tally, last = Tally(self.corpus.tests), 0.0
        for verdict, seconds in self.timed_verdicts():
            tally.add(self.tests[verdict.test_id], verdict)
            last = max(last, seconds)
        return tally, last

    def verdicts(self) -> Iterator[Verdict]:
        """The verdicts in the order in which they came; raises UsageError at a damaged line."""
        for verdict, _ in self.timed_verdicts():
            yield verdict

    def timed_verdicts(self) -> Iterator[TimedVerdict]:
        """As `verdicts`, each with the seconds that the campaign had run when it came."""
        if self._judged is not None:
            return iter(self._judged)
        return (record for record in self._records() if not isinstance(record, Finding))

    def findings(self) -> Iterator[Finding]:
        """The distinct findings by number; raises UsageError at a damaged line."""
        return (record for record in self._records() if isinstance(record, Finding))

    def _records(self, drawn: PicturesRead | None = None) -> Iterator[Finding | TimedVerdict]:
        """What the lines of the verdicts' file hold, in their order; pictures go into `drawn`."""
        path = self.path / VERDICTS_FILE
        number = 0
        seen: set[str] = set()
        findings: list[Finding] = []
        drawn = PicturesRead() if drawn is None else drawn
        try:
            with open(path, "rb", opener=open_regular) as file:
                while line := file.readline(MAX_VERDICT_LINE_BYTES):
                    number += 1
                    if not line.endswith(b"\n"):
                        if len(line) == MAX_VERDICT_LINE_BYTES:
                            raise ValueError("the line is too long")
                        break  # the writer was interrupted within its last line
                    raw = _load_json(line)
                    if "finding" in raw:
                        if raw["number"] != len(findings):
                            raise ValueError(f"the finding has the number {raw['number']!r}, {len(findings)} is next")
                        findings.append(Finding.from_json(raw["finding"]))
                        yield findings[-1]
                        continue
                    if drawn.take(raw):
                        continue
                    verdict, seconds = Verdict.from_json(raw, findings, drawn.pictures), raw["seconds"]
                    if type(seconds) not in (int, float) or not seconds >= 0:
                        raise ValueError(f"seconds is a number from 0, got {seconds!r}")
                    if verdict.test_id not in self.tests or verdict.test_id in seen:
                        raise ValueError(f"{verdict.test_id!r} is not in the corpus or judged twice")
                    seen.add(verdict.test_id)
                    yield verdict, float(seconds)
            missing = len(self.tests) - len(seen)
            if missing and self.complete:
                raise ValueError(f"the run is complete, yet tests without a verdict: {missing}")
        except OSError as error:
            raise UsageError(f"cannot read {path}: {_reason(error)}; expected a run directory") from error
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise _damaged(path, error, number) from error


def load_run(path: Path, corpus: Corpus | None = None, judged: Sequence[TimedVerdict] | None = None) -> Run:
    """Opens a run directory; raises UsageError, one line, if it is none or damaged.

    Who has the directory's corpus or all its verdicts already gives them, to save the time of reading them again.
    """
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory; expected a run directory as `commutant check` makes it")
    if not (path / RUN_FILE).exists():
        raise UsageError(f"{path} has no {RUN_FILE}; expected a run directory as `commutant check` makes it")
    return Run(path, corpus, judged)


def load_run_info(path: Path) -> RunInfo:
    """What a `run.json` says, wherever it lies; raises UsageError, one line, if it is none or damaged."""
    return _read_document(path, RunInfo.from_json)


def _load_json(content: bytes) -> Any:
    """A JSON value; raises ValueError also for what Python lets pass: NaN, and halves of surrogate pairs."""
    raw = json.loads(content, parse_constant=_no_constant)
    if b"\\ud" in content.lower():
        json.dumps(raw, ensure_ascii=False).encode()
    return raw


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _read_document(path: Path, read: Callable[[Mapping[str, Any]], _Document]) -> _Document:
    try:
        with open(path, "rb", opener=open_regular) as file:
            content = file.read(MAX_JSON_BYTES + 1)
        if len(content) > MAX_JSON_BYTES:
            raise ValueError(f"larger than {MAX_JSON_BYTES} bytes")
        raw = _load_json(content)
        if type(raw) is not dict:
            raise ValueError("not a JSON object")
        return read(raw)
    except CommutantError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {path}: {_reason(error)}") from error
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception, line: int | None = None) -> UsageError:
    reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
    where = f"{path}, line {line}" if line else str(path)
    return UsageError(f"{where} is damaged ({reason:.300}); run the check again, or restore the file")
