"""The self-test stops a campaign if a plant is misjudged, whichever way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from commutant.mtrace.finding import Access, Finding
from commutant.mtrace.trace import TracedWindow
from commutant.support.errors import RunError
from commutant.targets.base import Job, WindowRecord
from commutant.targets.linux import selftest
from commutant.targets.linux.session import LinuxSession

NOTHING: tuple[str, ...] = ()
TRUTH = {
    "getppid-getppid": NOTHING,
    "fstat-fstat different": NOTHING,
    "fstat-fstat same": ("struct file.f_count",),
    "open-open": ("struct dentry.d_lockref.count", "struct inode.i_rwsem.count", "struct inode.i_mtime"),
}


def _key(job: Job) -> str:
    name = job.test.set_name
    if name == "fstat-fstat":
        return f"{name} {'same' if job.test.calls[0].args == job.test.calls[1].args else 'different'}"
    return name


def _finding(name: str) -> Finding:
    thing, _, path = name.partition(".")
    access = Access(0, True, 0, 4, "f", ("f+0x1",))
    return Finding(64, thing, path, "true", access, access)


class _FakeSession:
    """Answers the self-test from a table; every `noise`-th window shows a timer's line and accesses in addition."""

    def __init__(
        self, truth: dict[str, tuple[str, ...]], counted: tuple[int, ...] = (100, 103), noise: int = 0
    ) -> None:
        self._truth = truth
        self._counted = counted
        self._noise = noise
        self.wrong: str | None = None

    def run_traced(self, jobs: Sequence[Job]) -> Iterator[tuple[WindowRecord, TracedWindow | None]]:
        for number, job in enumerate(jobs):
            names = self._truth[_key(job)]
            if self._noise and number % self._noise == 0:
                names = (*names, "struct timer_base.lock")
            findings = tuple(map(_finding, names))
            counted = (201, 1076) if self._noise and number % self._noise == 0 else self._counted
            yield WindowRecord(job, findings, wrong=self.wrong), TracedWindow(number, findings, {}, counted)


def _check(fake: _FakeSession) -> None:
    selftest.check(cast(LinuxSession, fake))


def test_the_truth_passes() -> None:
    _check(_FakeSession(TRUTH))


def test_noise_in_a_minority_of_windows_passes() -> None:
    _check(_FakeSession(TRUTH, noise=3))


@pytest.mark.parametrize(
    ("plant", "found", "expected"),
    [
        (
            "getppid-getppid",
            ("struct file.f_count",),
            "getppid and getppid: expected no shared line, found struct file",
        ),
        ("fstat-fstat different", ("struct x.y",), "two pipes: expected no shared line"),
        ("fstat-fstat same", NOTHING, "one pipe: expected the shared line file.f_count, found nothing"),
        ("open-open", ("struct dentry.d_lockref",), "expected the shared line i_rwsem, found struct dentry.d_lockref"),
        ("open-open", ("struct inode.i_rwsem",), "expected the shared line d_lockref"),
    ],
)
def test_each_misjudged_plant_is_named(plant: str, found: tuple[str, ...], expected: str) -> None:
    with pytest.raises(RunError, match=expected):
        _check(_FakeSession({**TRUTH, plant: found}))


@pytest.mark.parametrize("counted", [(), (100,), (0, 100), (100, 0), (1000, 10)])
def test_a_tracer_that_mixes_up_cores_is_noticed(counted: tuple[int, ...]) -> None:
    with pytest.raises(RunError, match="same number of accesses on both cores"):
        _check(_FakeSession(TRUTH, counted))


def test_a_wrong_result_stops_it_too() -> None:
    fake = _FakeSession(TRUTH)
    fake.wrong = "order 0,1: call 0, getppid(): returned EPERM"
    with pytest.raises(RunError, match="returned EPERM"):
        _check(fake)


def test_without_types_any_shared_line_will_do_where_one_is_planted() -> None:
    unnamed = {key: ("unknown",) if names else NOTHING for key, names in TRUTH.items()}
    selftest.check(cast(LinuxSession, _FakeSession(unnamed)), types=False)
    with pytest.raises(RunError, match="expected the shared line"):
        _check(_FakeSession(unnamed))
    with pytest.raises(RunError, match="one pipe: expected a shared line, found nothing"):
        selftest.check(cast(LinuxSession, _FakeSession({**unnamed, "fstat-fstat same": NOTHING})), types=False)
