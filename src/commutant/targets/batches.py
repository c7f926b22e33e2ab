"""What a session gives a runner at once, and what it makes of the answer: a batch of windows, or one of sequences.

Sessions differ in how bytes get to a runner and back, and in what a dead implementation means; what the bytes say is
the same for all of them and stands here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, Self, TypeVar

from commutant import _native
from commutant.corpus import TestCase, encode
from commutant.documents import builtins
from commutant.mtrace import TracedWindow
from commutant.support import IdentityCache, UsageError
from commutant.targets.base import Job, SequenceRecord, WindowRecord
from commutant.targets.names import renamed

Record = TypeVar("Record")


class Batch(Protocol, Generic[Record]):
    """Windows that go to a runner together; the runner's results and the tracer's windows correspond to them."""

    def __len__(self) -> int:
        """How many windows."""

    def part(self, start: int, stop: int) -> Self:
        """The windows from `start` up to `stop`."""

    def encode(self) -> bytes:
        """The batch as the runner reads it; UsageError if a test cannot be run at all."""

    def records(self, results: bytes, traced: Sequence[TracedWindow]) -> list[Record]:
        """A record per window. ValueError if the bytes are not the results of this batch."""

    def crashed(self, index: int, why: str) -> Record:
        """The record of a window in which the implementation died."""


class CaseRegistry:
    """The test cases that a session has met, each read once however often it is run, and parts that tests share once
    for all of them."""

    def __init__(self, name_length: int | None = None) -> None:
        """`name_length` is that of the names in all tests; None leaves them as they are."""
        renaming = renamed(name_length) if name_length is not None else str

        def written(part: object) -> str:
            return renaming(encode(builtins(part)))

        self.native = _native.TestBook()
        self._numbers: dict[str, int] = {}
        self._calls = IdentityCache(lambda calls: self.native.add_calls(written(calls)))
        self._setup = IdentityCache(lambda setup: self.native.add_steps("setup", written(setup)))
        self._observe = IdentityCache(lambda observe: self.native.add_steps("observe", written(observe)))
        self._orders = IdentityCache(lambda orders: self.native.add_orders(written(orders)))

    def number(self, test: TestCase) -> int:
        """The number of a test in the native book; UsageError if it cannot be run."""
        number = self._numbers.get(test.id)
        if number is None:
            try:
                number = self.native.add_case(
                    self._calls(test.calls),
                    self._setup(test.setup),
                    self._observe(test.observe),
                    self._orders(test.orders),
                )
            except ValueError as error:
                raise UsageError(f"{test.id} cannot be run: {error}") from None
            self._numbers[test.id] = number
        return number


_NOTHING: tuple[None, None, None, tuple[int, ...]] = (None, None, None, ())


class WindowBatch:
    """Jobs, to be judged by what their tests accept."""

    def __init__(self, registry: CaseRegistry, jobs: Sequence[Job]) -> None:
        self._registry = registry
        self._jobs = jobs
        self._windows: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def part(self, start: int, stop: int) -> WindowBatch:
        """As `Batch.part`."""
        return WindowBatch(self._registry, self._jobs[start:stop])

    def encode(self) -> bytes:
        """As `Batch.encode`."""
        self._windows = [(self._registry.number(job.test), job.order_index) for job in self._jobs]
        try:
            return self._registry.native.encode(self._windows)
        except (ValueError, IndexError) as error:
            raise UsageError(f"{self._jobs[0].test.id} and others cannot be sent to the runner: {error}") from None

    def records(self, results: bytes, traced: Sequence[TracedWindow]) -> list[WindowRecord]:
        """As `Batch.records`."""
        judged = self._registry.native.judge(self._windows, results)
        return [
            WindowRecord(
                job,
                window.findings,
                window.ignored,
                wrong,
                pictures=window.pictures,
                course=window.course,
                unsupported=unsupported,
                unreached=unreached,
                aborted=tuple(aborted),
            )
            for job, window, (wrong, unsupported, unreached, aborted) in zip(
                self._jobs, traced, (one or _NOTHING for one in judged), strict=True
            )
        ]

    def crashed(self, index: int, why: str) -> WindowRecord:
        """As `Batch.crashed`."""
        return WindowRecord(self._jobs[index], crashed=why)


class SequenceBatch:
    """Sequences of calls, to be compared with what is expected of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._native: _native.Sequences | None = None

    def __len__(self) -> int:
        return len(self._texts)

    def part(self, start: int, stop: int) -> SequenceBatch:
        """As `Batch.part`."""
        return SequenceBatch(self._texts[start:stop])

    def encode(self) -> bytes:
        """As `Batch.encode`."""
        try:
            self._native = _native.Sequences(self._texts)
            return self._native.encode()
        except ValueError as error:
            raise UsageError(f"a sequence cannot be sent to the runner: {error}") from None

    def records(self, results: bytes, traced: Sequence[TracedWindow]) -> list[SequenceRecord]:
        """As `Batch.records`."""
        assert self._native is not None, "results come after the batch was encoded"
        return [SequenceRecord(actual) for actual in self._native.read(results)]

    def crashed(self, index: int, why: str) -> SequenceRecord:
        """As `Batch.crashed`."""
        return SequenceRecord(crashed=why)
