"""Small invented tests, findings and a target without a machine, for the tests of everything above `targets.base`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from commutant.corpus.file import Corpus
from commutant.corpus.testcase import ExpectedOutcome, Order, PlacedCall, SetupStep, Step, TestCase
from commutant.mtrace.finding import Access, Finding
from commutant.support import OnProgress, Progress
from commutant.support.errors import RunError
from commutant.targets.base import Job, WindowRecord

Script = Callable[[Job, int], WindowRecord]
"""What a window shows, from the job and the number of windows of that test and order before it."""


def make_test(number: int = 0, calls: Sequence[str] = ("link", "rename")) -> TestCase:
    """A test that differs from that of another number by a file name."""
    name = f"n{number}"
    placed = tuple(PlacedCall(call, {"name": name}, index % 2, 0, index) for index, call in enumerate(calls))
    outcome = ExpectedOutcome(tuple(0 for _ in calls), ({"errno": "ENOENT"},))
    test = TestCase(
        id="",
        level="conflict",
        path=number,
        equivalence_class="old ≠ new",
        calls=placed,
        setup=(SetupStep("open", {"name": name, "creat": True}, 0, 0),),
        observe=(Step("stat", {"name": name}, 0),),
        orders=tuple(Order(order, (outcome,)) for order in itertools.permutations(range(len(calls)))),
    )
    return structs.replace(test, id=test.content_id())


def make_corpus(count: int, calls: Sequence[Sequence[str]] = (("link", "rename"), ("open", "open"))) -> Corpus:
    """A corpus of `count` tests, the sets of calls taking turns."""
    tests = [make_test(number, calls[number % len(calls)]) for number in range(count)]
    return Corpus("names", "conflict", "0123abcd", tests)


def make_finding(name: str = "d_lockref", functions: tuple[str, str] = ("dget", "dput")) -> Finding:
    """A finding on a field of `struct dentry`."""
    first, second = (
        Access(core, core == 0, 8, 4, function, (f"{function}+0x10", "do_syscall_64+0x5b"))
        for core, function in enumerate(functions)
    )
    return Finding(0xFFFF888003A1C040, "struct dentry", name, "true", first, second)


def clean(job: Job, before: int) -> WindowRecord:
    """A window in which nothing was shared."""
    return WindowRecord(job)


def conflicting(job: Job, before: int) -> WindowRecord:
    """A window with the same finding each time."""
    return WindowRecord(job, (make_finding(),), {"timer": 1})


class FakeSession:
    """A session that answers from a script; `before` counts windows and is shared by the sessions of a target."""

    def __init__(self, script: Script, before: dict[tuple[str, int], int] | None = None) -> None:
        self.script = script
        self.closed = False
        self.batches: list[int] = []
        self._before = {} if before is None else before

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        self.batches.append(len(jobs))
        for job in jobs:
            if self.closed:
                raise RunError("the session is closed")
            key = job.test.id, job.order_index
            before = self._before.get(key, 0)
            self._before[key] = before + 1
            yield self.script(job, before)

    def close(self) -> None:
        self.closed = True


class FakeTarget:
    """A target whose sessions answer from a script; knows all calls but those in `unknown`."""

    def __init__(self, script: Script = clean, unknown: Iterable[str] = (), argument: str = "fake") -> None:
        self.argument = argument
        self.others: Sequence[FakeTarget] = ()
        self.key_windows = 0
        self.script = script
        self.unknown = set(unknown)
        self.started = False
        self.closed = False
        self.made: list[FakeSession] = []
        self.before: dict[tuple[str, int], int] = {}

    def implements(self, call: str, parameters: Iterable[str]) -> bool:
        return call not in self.unknown

    def start(self, on_progress: OnProgress, core_count: int) -> None:
        on_progress(Progress(text="starting nothing"))
        self.started = True

    def sessions(self, count: int) -> Sequence[FakeSession]:
        self.made = [FakeSession(self.script, self.before) for _ in range(count)]
        return self.made

    def reseeded(self) -> Sequence[FakeTarget]:
        return self.others

    def describe(self) -> Mapping[str, object]:
        return {"kernel": "none", "options": {"fs": "none"}}

    def close(self) -> None:
        self.closed = True
        for session in self.made:
            session.close()
