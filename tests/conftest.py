"""For all tests: signals do what they do in a terminal, and no property has a time in which it must be checked.

A shell starts what runs in its background with SIGINT ignored, and nohup does so with SIGHUP; children inherit that,
and rightly leave such signals ignored. Tests that send them to children need the default.

How long an example takes, to be drawn or to be checked, says more of what else the machine does than of the code.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("commutant", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("commutant")

_SECONDS: Counter[str] = Counter()
"""How long each file of tests took, for `make check`, which chooses by it."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds set-up, call and end of one test to its file's time."""
    _SECONDS[report.location[0]] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keeps the times, unless only some tests of the files ran, as by `-k`."""
    option = session.config.option
    if option.keyword or option.markexpr != "not long" or any("::" in name for name in session.config.args):
        return
    file = session.config.rootpath / "target" / "test-seconds.json"
    try:
        known = json.loads(file.read_text()) if file.is_file() else {}
        known.update({name: round(seconds, 2) for name, seconds in _SECONDS.items()})
        temporary = Path(f"{file}.new")
        temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
        temporary.replace(file)
    except (OSError, ValueError):
        pass  # a note for later, not a result


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
