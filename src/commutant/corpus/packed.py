"""Tests as the bytes of a corpus file: a gzip member for the header, and one for the tests of each set of calls.

What generates the tests of a set also packs them, so that what moves between processes, into the cache and into files
is small and packed once; a test is read when somebody looks at it. Readers of gzip take members that follow each other
for one file.
"""

from __future__ import annotations

import gzip
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

from commutant.corpus.reading import TestReader
from commutant.corpus.testcase import CorpusHeader, TestCase


def pack(lines: Iterable[str]) -> bytes:
    """A member that holds these lines; equal lines give equal bytes."""
    return gzip.compress("".join([f"{line}\n" for line in lines]).encode(), compresslevel=6, mtime=0)


class PackedTests(Sequence[TestCase]):
    """Tests by their members, with their numbers per set; read when somebody looks, and kept once all were read."""

    def __init__(self, members: bytes, per_set: Mapping[tuple[str, ...], int]) -> None:
        self.members = members
        self.per_set = Counter(per_set)

    @cached_property
    def _tests(self) -> list[TestCase]:
        return list(self._read())

    def _read(self) -> Iterator[TestCase]:
        reader = TestReader()
        with gzip.GzipFile(fileobj=io.BytesIO(self.members)) as lines:
            yield from map(reader.read, lines)

    def first(self) -> TestCase | None:
        """The first test, read alone."""
        return next(self._read(), None)

    @overload
    def __getitem__(self, index: int) -> TestCase: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TestCase]: ...
    def __getitem__(self, index: int | slice) -> TestCase | Sequence[TestCase]:
        return self._tests[index]

    def __iter__(self) -> Iterator[TestCase]:
        return iter(self._tests)

    def __len__(self) -> int:
        return self.per_set.total()

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class FiledTests(list[TestCase]):
    """The tests of a corpus file, with its header and all of its bytes: a copy of it need not be packed again."""

    def __init__(self, tests: Iterable[TestCase], header: CorpusHeader, content: bytes) -> None:
        super().__init__(tests)
        self.header = header
        self.content = content
