"""A newer kernel than the default one, as Debian has it for this release: downloaded, and tried on all file systems."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from commutant.guest.file_systems import FILE_SYSTEMS
from commutant.guest.prepare import prepare
from commutant.targets.base import Job
from commutant.targets.linux.target import LinuxOptions, LinuxTarget
from tests.targets.handwritten import CREATE_CREATE, RIGHT
from tests.targets.test_posix18 import sample

pytestmark = pytest.mark.long

PACKAGE = "linux-image-6.12-amd64"


@pytest.fixture(scope="module", params=FILE_SYSTEMS)
def target(request: pytest.FixtureRequest) -> Iterator[LinuxTarget]:
    """The target with this kernel on each file system, started: the self-test has passed."""
    kernel = prepare(PACKAGE)
    assert kernel.release.startswith("6.12.")
    target = LinuxTarget(f"linux:fs={request.param},kernel={PACKAGE}", LinuxOptions(request.param, kernel=kernel))
    target.start(lambda _: None, 2)
    yield target
    target.close()


def test_it_does_what_the_models_say(target: LinuxTarget) -> None:
    (session,) = target.sessions(1)
    jobs = [Job(test, order) for test in [*RIGHT, *sample()] for order in range(len(test.orders))]
    wrong = {record.job.test.id: record.wrong or record.crashed for record in session.run(jobs)}
    session.close()
    assert {test_id: why for test_id, why in wrong.items() if why} == {}


def test_what_is_shared_is_named(target: LinuxTarget) -> None:
    (session,) = target.sessions(1)
    records = list(session.run([Job(CREATE_CREATE, order) for order in (0, 1, 0, 1)]))
    session.close()
    for record in records:
        names = {finding.name for finding in record.findings}
        assert any("d_lockref" in name for name in names) and any("i_rwsem" in name for name in names)
        assert "unknown" not in names
    frames = {frame for record in records for finding in record.findings for frame in finding.first.stack}
    assert any("openat" in frame for frame in frames)
