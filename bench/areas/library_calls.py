"""How much slower a library's calls are in a traced program than natively: those under test, which are recorded, and all
others, such as those of a set-up.

One call is repeated between two looks at the thread's processor time, by the same code each time (`bench/programs/
repeated.c` around the gallery's adapter of dashmap): loaded into this process, in steps of a sequence, and within
windows. Each sample is a ratio of two that follow each other, so that a busy machine slows both.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from bench.figure import Figure, Goal
from commutant.corpus import ExpectedOutcome, Order, PlacedCall
from commutant.targets.base import Job
from commutant.targets.gallery import ENTRIES, built
from commutant.targets.library import INCLUDE
from commutant.targets.process.session import ProcessSession
from commutant.targets.registry import load_target
from commutant.testgen import TestCase

TITLE = "Calls of libraries, traced"
SAMPLES = 9
TIMES = 5
"""A sample is the median of so many repetitions."""
PROGRAM = Path(__file__).resolve().parents[1] / "programs" / "repeated.c"
CALLS = {"get": "get(key)", "put": "put(key, value)"}


def measure() -> list[Figure]:
    """How many times slower, per call of dashmap's."""
    with tempfile.TemporaryDirectory() as folder:
        adapter = Path(folder) / "repeated.so"
        measured = f'-DMEASURED="{built(ENTRIES["dashmap"])}"'
        command = ["gcc", "-O2", "-g", "-shared", "-fPIC", f"-I{INCLUDE}", measured, str(PROGRAM), "-o", str(adapter)]
        subprocess.run(command, check=True)
        target = load_target(f"library:path={adapter}")
        try:
            target.start(lambda _doing: None, 2)
            (session,) = target.sessions(1)
            assert isinstance(session, ProcessSession)
            return [figure for name in CALLS for figure in _slower(name, session, _Native(adapter))]
        finally:
            target.close()


class _Native:
    """The same code in this process."""

    def __init__(self, adapter: Path) -> None:
        self._library = ctypes.CDLL(str(adapter))
        self._library.made.restype = ctypes.c_void_p
        self._library.repeated.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
        self._library.repeated.restype = ctypes.c_int64
        self._object = self._library.made()

    def nanoseconds(self, name: str) -> float:
        """Of the repeated call; the median, since others use the processor's caches, too."""
        one = [self._library.repeated(self._object, CALLS[name].encode()) for _ in range(100 * TIMES)]
        return statistics.median(one)


def _slower(name: str, session: ProcessSession, native: _Native) -> list[Figure]:
    """The figures of one call."""
    recorded, others = [], []
    for _ in range(SAMPLES):
        base = native.nanoseconds(name)
        others.append(statistics.median(_unrecorded(name, session) for _ in range(TIMES)) / base)
        recorded.append(statistics.median(_recorded(name, session) for _ in range(TIMES)) / base)
    command = "make bench-library_calls"
    return [
        Figure(f"dashmap `{name}`, recorded", "times native", tuple(recorded), command, Goal("at_most", 100)),
        Figure(f"dashmap `{name}`, not recorded", "times native", tuple(others), command, Goal("at_most", 15)),
    ]


def _unrecorded(name: str, session: ProcessSession) -> float:
    return _told(session, [{"call": name, "process": 0, "args": {}, "core": 0, "result": None}])


def _recorded(name: str, session: ProcessSession) -> float:
    outcomes = (ExpectedOutcome((None, None), ()),)
    test = TestCase(
        id="",
        level="conflict",
        path=0,
        equivalence_class="timed",
        calls=tuple(PlacedCall(name, {}, 0, core, core) for core in (0, 1)),
        setup=(),
        observe=(),
        orders=(Order((0, 1), outcomes),),
    )
    (record,) = session.run([Job(dataclasses.replace(test, id=test.content_id()), 0)])
    assert record.wrong is None and record.crashed is None, record
    return _told(session, [])


def _told(session: ProcessSession, steps: list[dict[str, object]]) -> float:
    """What the last repeated call took: expected is a number that no call takes, so that what came is told."""
    last = {"call": "last", "process": 0, "args": {}, "result": -1}
    (record,) = session.run_sequences([json.dumps({"calls": [], "orders": [], "setup": [*steps, last], "observe": []})])
    assert record.actual is not None, record
    return float(json.loads(record.actual)["results"][-1])
