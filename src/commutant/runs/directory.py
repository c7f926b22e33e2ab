"""Run directories: everything that one campaign leaves, made so that nothing already judged can be lost.

    run.json             what was run: versions, target, command, seed, machine (written once, at the start)
    corpus.jsonl.gz      the tests
    verdicts.jsonl       one line per judged test, and one per distinct finding, appended while the campaign goes
    findings.parquet     one row per test and standing finding (at the end)
    summary.json         the figures (last of all: its presence says that the campaign is complete)
    report.html          the page (see commutant.report)

Tests share few findings, each with two stacks: a finding stands in `verdicts.jsonl` once, and tests refer to it
by number (`commutant.runs.lines`). So the file, and the memory of a reader, grow with the number of distinct findings.

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
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from commutant.campaign import Summary, Tally, Verdict
from commutant.corpus import Corpus, Level, TestCase, read_corpus, write_corpus
from commutant.documents import Count, Document, Part, read, text
from commutant.mtrace import Finding
from commutant.runs.lines import LineReader, LineWriter, TimedVerdict
from commutant.support import MAX_CALLS_PER_SET, RunError, UsageError, open_regular, whole_file

RUN_FILE = "run.json"
CORPUS_FILE = "corpus.jsonl.gz"
VERDICTS_FILE = "verdicts.jsonl"
FINDINGS_FILE = "findings.parquet"
SUMMARY_FILE = "summary.json"
REPORT_FILE = "report.html"

MAX_JSON_BYTES = 64 << 20
MAX_VERDICT_LINE_BYTES = 64 << 20

T = TypeVar("T")


class Generated(Part, frozen=True):
    """How a corpus was made: from an interface argument, for every `sample`th set of `size` calls out of `calls`
    (None: all)."""

    interface: str
    calls: tuple[str, ...] | None
    size: Annotated[int, Meta(ge=1, le=MAX_CALLS_PER_SET)]
    sample: Annotated[int, Meta(ge=1)] = 1


def hash_of_tests(corpus: Corpus) -> str:
    """The SHA-256 of the ids of all tests in their order, and so of the tests."""
    digest = hashlib.sha256()
    for test in corpus.tests:
        digest.update(f"{test.id}\n".encode())
    return digest.hexdigest()


class HostDescription(Part, frozen=True):
    """What a campaign runs on, without its name; as `platform` names it."""

    system: str
    release: str
    machine: str
    cpus: Count
    memory_bytes: Count


class RunInfo(Document, frozen=True, kw_only=True):
    """What was run, with what, on what: the content of `run.json`.

    `target` is the target argument, `target_description` what the target says of itself (kernel, QEMU, options),
    `started` a UTC time in ISO 8601, `command` the command line. `tests_sha256` is `hash_of_tests`, and `generated`
    says how the tests are made again; null if they came out of a file. `origin_sha256` is `hash_of_origin`. Runs of
    earlier versions have none of these. `naming` says which names findings have (`commutant.mtrace.NAMING`).
    """

    kind: Literal["run"] = "run"
    commutant: str
    python: str
    command: list[str]
    interface: str
    level: Level
    model: str
    tests: Count
    target: str
    target_description: dict[str, Any]
    seed: Count
    repeats: Annotated[int, Meta(ge=1)]
    jobs: Annotated[int, Meta(ge=1)]
    started: str
    machine: HostDescription
    tests_sha256: str = ""
    generated: Generated | None = None
    origin_sha256: str = ""
    naming: Annotated[int, Meta(ge=1)] = 1

    def require_origin(self, path: Path) -> None:
        """Raises UsageError if what says how the tests are made is not what it was: at once, not once they are made."""
        if self.origin_sha256 and self.origin_sha256 != hash_of_origin(self):
            raise UsageError(
                f"{path} is damaged: what it says of its tests (interface, calls, size, sample, level, model, their "
                "number and hash) is not what the run wrote"
            )


def hash_of_origin(info: RunInfo) -> str:
    """The SHA-256 of all that says which tests a run has."""
    made = info.generated and (
        info.generated.interface,
        info.generated.calls,
        info.generated.size,
        info.generated.sample,
    )
    origin = (info.interface, info.level, info.model, info.tests, info.tests_sha256, made)
    return hashlib.sha256(json.dumps(origin).encode()).hexdigest()


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


def write_document(path: Path, document: object) -> None:
    """Writes a JSON document, all of it or nothing; raises RunError."""
    write_atomically(path, text(document).encode())


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
        self._lines = LineWriter()
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
        write_document(path / RUN_FILE, info)
        return cls(path)

    @classmethod
    def resume(cls, run: Run) -> RunWriter:
        """Opens the directory of an interrupted run, to go on where it ended; raises RunError or UsageError."""
        writer = cls(run.path)
        try:
            writer._cut_partial_line()
            known = LineReader()
            for _ in run._records(known):
                pass
            writer._lines = LineWriter(known.findings, known.pictures, known.fields, known.courses)
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
        lines, kept = self._lines.lines(verdict, seconds)
        try:
            written = os.write(self._descriptor, lines)
            while written < len(lines):
                written += os.write(self._descriptor, lines[written:])
        except OSError as error:
            raise RunError(f"cannot write {self._file}: {_reason(error)}") from error
        return kept

    def finish(self, summary: Summary) -> None:
        """Writes summary.json, which says that the run is complete: after everything else. Raises RunError."""
        write_document(self.path / SUMMARY_FILE, summary)

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
            return _read_document(self.path / SUMMARY_FILE, Summary)
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

    def _records(self, known: LineReader | None = None) -> Iterator[Finding | TimedVerdict]:
        """Findings and verdicts in the order of their lines; `known` is what the lines referred to."""
        path = self.path / VERDICTS_FILE
        number = 0
        seen: set[str] = set()
        known = LineReader() if known is None else known
        try:
            with open(path, "rb", opener=open_regular) as file:
                while line := file.readline(MAX_VERDICT_LINE_BYTES):
                    number += 1
                    if not line.endswith(b"\n"):
                        if len(line) == MAX_VERDICT_LINE_BYTES:
                            raise ValueError("the line is too long")
                        break  # the writer was interrupted within its last line
                    record = known.take(line)
                    if record is None:
                        continue
                    if isinstance(record, Finding):
                        yield record
                        continue
                    verdict = record[0]
                    if verdict.test_id not in self.tests or verdict.test_id in seen:
                        raise ValueError(f"{verdict.test_id!r} is not in the corpus or judged twice")
                    seen.add(verdict.test_id)
                    yield record
            missing = len(self.tests) - len(seen)
            if missing and self.complete:
                raise ValueError(f"the run is complete, yet tests without a verdict: {missing}")
        except OSError as error:
            raise UsageError(f"cannot read {path}: {_reason(error)}; expected a run directory") from error
        except ValueError as error:
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
    return _read_document(path, RunInfo)


def _read_document(path: Path, declaration: type[T]) -> T:
    try:
        with open(path, "rb", opener=open_regular) as file:
            content = file.read(MAX_JSON_BYTES + 1)
        if len(content) > MAX_JSON_BYTES:
            raise ValueError(f"larger than {MAX_JSON_BYTES} bytes")
        return read(declaration, content)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {_reason(error)}; expected a file of a run directory") from error
    except ValueError as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception, line: int | None = None) -> UsageError:
    where = f"{path}, line {line}" if line else str(path)
    return UsageError(f"{where} is damaged ({error!s:.300}); run the check again, or restore the file")
