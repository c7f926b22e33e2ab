"""Many tests as the lines of a corpus: made, moved between processes and written as text, and read when looked at."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

from commutant.testgen.reading import TestReader
from commutant.testgen.testcase import TestCase


class PackedTests(Sequence[TestCase]):
    """Tests by their lines, each id once; becomes test cases as a whole when the first is asked for."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines: dict[str, str] = {}
        for line in lines:
            self._lines.setdefault(_id_of(line), line)

    @property
    def lines(self) -> Iterable[str]:
        """The lines, without their ends."""
        return self._lines.values()

    @property
    def per_set(self) -> Counter[tuple[str, ...]]:
        """The number of tests by the calls of a set."""
        return Counter(tuple(test_id.split("-")[:-1]) for test_id in self._lines)

    @cached_property
    def _tests(self) -> list[TestCase]:
        reader = TestReader()
        return [reader.read(line.encode()) for line in self._lines.values()]

    @overload
    def __getitem__(self, index: int) -> TestCase: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TestCase]: ...
    def __getitem__(self, index: int | slice) -> TestCase | Sequence[TestCase]:
        return self._tests[index]

    def __iter__(self) -> Iterator[TestCase]:
        return iter(self._tests)

    def __len__(self) -> int:
        return len(self._lines)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class KeptTests(PackedTests):
    """The tests of a corpus file that was kept as a whole, with their numbers per set: unpacked when somebody looks at
    one."""

    def __init__(self, content: bytes, per_set: Counter[tuple[str, ...]]) -> None:
        self.content = content
        self._per_set = per_set

    @cached_property
    def _lines(self) -> dict[str, str]:  # type: ignore[override]
        lines = gzip.decompress(self.content).decode().splitlines()[1:]
        return {_id_of(line): line for line in lines}

    @property
    def per_set(self) -> Counter[tuple[str, ...]]:
        """The number of tests by the calls of a set."""
        return self._per_set.copy()

    def __len__(self) -> int:
        return self._per_set.total()


def _id_of(line: str) -> str:
    start = len('{"id":"')
    return line[start : line.index('"', start)]
