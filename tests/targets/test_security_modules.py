"""Linux with the security modules that its kernel has by default: what they share has a name, too."""

from __future__ import annotations

import pytest

from commutant.targets.base import Job
from commutant.targets.linux.target import LinuxOptions, LinuxTarget
from tests.targets.handwritten import CREATE_CREATE

pytestmark = pytest.mark.long


def test_the_label_of_apparmor_is_named_by_the_pointer_to_it() -> None:
    """It lies in memory of kmalloc: findings in it were of `kmalloc-1k`."""
    target = LinuxTarget("linux:security=on", LinuxOptions(security="on"))
    try:
        target.start(lambda _: None, 2)
        (session,) = target.sessions(1)
        records = list(session.run([Job(CREATE_CREATE, order) for order in (0, 1)]))
        session.close()
    finally:
        target.close()
    names = {finding.name for record in records for finding in record.findings}
    assert any(name.startswith("struct aa_profile.label") for name in names)
    assert not any(name.startswith("kmalloc-1k") for name in names)
