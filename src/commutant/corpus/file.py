"""Corpus files: test cases on disk, written the same way every time and read with suspicion.

A corpus is a gzip-compressed JSON-lines file, a header and one test per line (docs/reference/test-cases.md;
docs/schemas/corpus.schema.json). Corpora are passed around, so a file is taken as hostile: its size, packed and
unpacked, line length and number of tests are bounded, every value is checked, and ids are computed again from the
content. What is wrong is reported as one line with file and line number.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from msgspec import UNSET

from commutant.corpus.packed import FiledTests, PackedTests, pack
from commutant.corpus.reading import TestReader
from commutant.corpus.testcase import CorpusHeader, Level, ShardEntry, TestCase, encode, read_header
from commutant.corpus.untested import Untested
from commutant.corpus.values import Malformed
from commutant.documents import builtins
from commutant.support import RunError, UsageError, open_regular, paused_collector, plural, read_regular, whole_file

if TYPE_CHECKING:
    from commutant.analyzer import Analysis

MAX_LINE_BYTES = 1 << 20
MAX_FILE_BYTES = 1 << 28
MAX_TOTAL_BYTES = 1 << 29

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Test cases of one interface at one level.

    `model_hash` names the version of the model they come from. `untested` tells, per set of calls (names joined by
    `-`), of the classes without a test and why; `analysis` is what they were generated from, and `has_searched` says
    that set-ups were found by search. None of this is known of a corpus read from a file but the number of classes.
    """

    interface: str
    level: Level
    model_hash: str
    tests: Sequence[TestCase]
    untested: Mapping[str, Sequence[Untested]] = field(default_factory=dict)
    analysis: Analysis | None = field(default=None, compare=False, repr=False)
    has_searched: bool = field(default=False, compare=False)
    left_out: Mapping[tuple[str, ...], int] = field(default_factory=dict, compare=False)
    """Per set of calls, how many tests of level `conflict` the level `cover` leaves out at most."""
    shard: ShardEntry | None = None
    """Which part of another corpus this is."""

    def with_tests(self, tests: Sequence[TestCase]) -> Corpus:
        """Some of the tests alone, which are a shard of nothing."""
        return replace(self, tests=tests, shard=None)

    @property
    def without_setup(self) -> dict[str, int]:
        """Per set of calls, how many classes have no test, mostly since no calls build their states."""
        return {name: sum(one.classes for one in of_set) for name, of_set in self.untested.items()}

    def header(self) -> CorpusHeader:
        """The first line of the corpus file."""
        return CorpusHeader(
            interface=self.interface,
            level=self.level,
            model=self.model_hash,
            tests=len(self.tests),
            without_setup=dict(sorted(self.without_setup.items())) or UNSET,
            shard=self.shard or UNSET,
        )


def tests_per_set(tests: Sequence[TestCase]) -> Counter[tuple[str, ...]]:
    """The number of tests by the calls of a set."""
    if isinstance(tests, PackedTests):
        return tests.per_set
    return Counter(tuple([call.call for call in test.calls]) for test in tests)


def first_test(tests: Sequence[TestCase]) -> TestCase | None:
    """The first of the tests, without reading the others; None of none."""
    return tests.first() if isinstance(tests, PackedTests) else next(iter(tests), None)


def content_of(corpus: Corpus) -> bytes:
    """The corpus as a file holds it; corpora that were generated alike give equal bytes."""
    tests, header = corpus.tests, corpus.header()
    if isinstance(tests, FiledTests) and tests.header == header:
        return tests.content
    if isinstance(tests, PackedTests):
        members = [tests.members]
    else:
        members = [pack(encode(test.to_json()) for test in of_set) for _, of_set in groupby(tests, _set_name)]
    return b"".join([pack([encode(builtins(header))]), *members])


_set_name = attrgetter("set_name")


def write_corpus(corpus: Corpus, path: Path) -> None:
    """Writes the corpus to `path`, all of it or nothing.

    Raises RunError if the file cannot be written (full disk, missing permission).
    """
    try:
        with whole_file(path) as file:
            file.write(content_of(corpus))
    except OSError as error:
        raise RunError(f"cannot write the corpus {path}: {error.strerror or error}") from error


def read_corpus(path: Path) -> Corpus:
    """Reads and checks a whole corpus file.

    Raises UsageError, one line with file and line number, if there is no such file or anything in it is not as
    docs/schemas/corpus.schema.json says.
    """
    with _Lines(path) as lines, paused_collector():
        first = lines.next()
        if first is None:
            lines.fail("empty file: expected a corpus header")
        reader = TestReader()
        try:
            header = read_header(reader.decode(first))
            tests: list[TestCase] = []
            seen: set[str] = set()
            while (line := lines.next()) is not None:
                test = reader.read(line)
                if test.id in seen:
                    lines.fail(f"the test {test.id} stands in the corpus twice")
                seen.add(test.id)
                tests.append(test)
                if len(tests) > header.tests:
                    lines.fail(f"more tests than the {header.tests:,} that the header names")
        except Malformed as error:
            lines.fail(str(error))
        except (ValueError, RecursionError) as error:  # JSONDecodeError and UnicodeDecodeError are ValueErrors
            lines.fail(f"not JSON ({error.msg if isinstance(error, json.JSONDecodeError) else error})")
        if len(tests) != header.tests:
            named = plural(header.tests, "test")
            lines.fail(f"the file ends after {len(tests):,} of the {named} that the header names")
    without_setup = header.without_setup or {}
    untested = {name: (Untested("", classes, ""),) for name, classes in without_setup.items()}
    filed = FiledTests(tests, header, lines.content)
    return Corpus(header.interface, header.level, header.model, filed, untested, shard=header.shard or None)


def looks_like_corpus(path: Path) -> bool:
    """Whether a command-line argument means a corpus file rather than an interface: by its name, or by its content."""
    if path.name.endswith((".jsonl.gz", ".jsonl")):
        return True
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(2) == _GZIP_MAGIC
    except (OSError, ValueError):
        return False


def select_tests(tests: Sequence[TestCase], calls: Sequence[str]) -> list[TestCase]:
    """The tests that `--calls` means: those of exactly this set, or of any set made of a larger list of calls."""
    wanted = sorted(calls)
    among = set(calls)

    def fits(test: TestCase) -> bool:
        names = [call.call for call in test.calls]
        return sorted(names) == wanted if len(names) == len(calls) else among.issuperset(names)

    return [test for test in tests if fits(test)]


class _Lines:
    """The lines of a gzip file, one after the other, within the limits; knows the number of the line for messages."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        self._left_bytes = MAX_TOTAL_BYTES
        try:
            self.content = read_regular(path, MAX_FILE_BYTES)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"cannot read the corpus {path}: {reason}; expected a file that `commutant generate -o` has written"
            ) from error
        if len(self.content) > MAX_FILE_BYTES:
            raise UsageError(f"cannot read the corpus {path}: expected at most {MAX_FILE_BYTES} bytes")
        self._file = gzip.GzipFile(fileobj=io.BytesIO(self.content))

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def next(self) -> bytes | None:
        """The next line, None at the end of the file."""
        self._number += 1
        try:
            line = self._file.readline(MAX_LINE_BYTES + 1)
        except gzip.BadGzipFile as error:
            self.fail("not a gzip file" if self._number == 1 else f"damaged ({error})")
        except EOFError:
            self.fail("the file is cut off")
        except (zlib.error, OSError) as error:
            self.fail(f"damaged ({error})")
        if not line:
            return None
        if len(line) > MAX_LINE_BYTES:
            self.fail(f"a line longer than {MAX_LINE_BYTES} bytes")
        self._left_bytes -= len(line)
        if self._left_bytes < 0:
            self.fail(f"more than {MAX_TOTAL_BYTES} bytes when unpacked")
        return line

    def fail(self, problem: str) -> NoReturn:
        raise UsageError(
            f"{self._path}, line {self._number}: {problem}; expected a corpus as `commutant generate` writes it"
        )
