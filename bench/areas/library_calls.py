"""How much slower a library's calls are in a traced program than natively.

Those under test are recorded, all others, such as those of a set-up, are not. One call is repeated between two looks at
the thread's processor time, by the same code each time (`bench/programs/repeated.c` around the gallery's adapter of
dashmap): in a program by itself, in the same under QEMU without the tracer, in steps of a sequence, and within windows.
A sample is the ratio of two that follow each other, and of several repetitions the shortest counts: a busy machine can
only make them longer.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from bench.figure import Figure, Goal
from commutant.corpus import ExpectedOutcome, Order, PlacedCall
from commutant.guest import find_user_emulator
from commutant.targets.base import Job
from commutant.targets.gallery import ENTRIES, built
from commutant.targets.library import INCLUDE
from commutant.targets.process.session import ProcessSession
from commutant.targets.registry import load_target
from commutant.testgen import TestCase

TITLE = "Calls of libraries, traced"
SAMPLES = 7
TIMES = 10
NATIVE_TIMES = 500
SOURCE = Path(__file__).resolve().parents[1] / "programs" / "repeated.c"
CALLS = {"get": "get(key)", "put": "put(key, value)"}


def measure() -> list[Figure]:
    """How many times slower, per call of dashmap's."""
    with tempfile.TemporaryDirectory() as folder:
        adapter, program = Path(folder) / "repeated.so", Path(folder) / "repeated"
        measured = f'-DMEASURED="{built(ENTRIES["dashmap"])}"'
        for path, kind in ((adapter, ("-shared", "-fPIC")), (program, ())):
            command = ["gcc", "-O2", "-g", *kind, f"-I{INCLUDE}", measured, str(SOURCE), "-o", str(path)]
            subprocess.run(command, check=True)
        target = load_target(f"library:path={adapter}")
        try:
            target.start(lambda _doing: None, 2)
            (session,) = target.sessions(1)
            assert isinstance(session, ProcessSession)
            return [figure for name in CALLS for figure in _slower(name, session, program)]
        finally:
            target.close()


def _slower(name: str, session: ProcessSession, program: Path) -> list[Figure]:
    """The figures of one call."""
    emulated, others, recorded = [], [], []
    for _ in range(SAMPLES):
        native = _alone([str(program)], name, NATIVE_TIMES)
        emulated.append(_alone([*find_user_emulator().command, str(program)], name, TIMES) / native)
        others.append(min(_unrecorded(name, session) for _ in range(TIMES)) / native)
        recorded.append(min(_recorded(name, session) for _ in range(TIMES)) / native)
    kinds = (
        ("recorded", recorded, Goal("at_most", 100)),
        ("not recorded", others, Goal("at_most", 15)),
        ("under QEMU without the tracer (the limit)", emulated, None),
    )
    unit, command = "times native", "make bench-library_calls"
    return [Figure(f"dashmap's `{name}`, {kind}", unit, tuple(samples), command, goal) for kind, samples, goal in kinds]


def _alone(program: Sequence[str], name: str, times: int) -> float:
    answer = subprocess.run([*program, CALLS[name], str(times)], check=True, capture_output=True, text=True)
    return float(min(map(int, answer.stdout.split())))


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
    (record,) = session.run([Job(replace(test, id=test.content_id()), 0)])
    assert record.wrong is None and record.crashed is None, record
    return _told(session, [])


def _told(session: ProcessSession, steps: list[dict[str, object]]) -> float:
    """What the last repeated call took: expected is a number that no call takes, so that the actual one is shown."""
    last = {"call": "last", "process": 0, "args": {}, "result": -1}
    (record,) = session.run_sequences([json.dumps({"calls": [], "orders": [], "setup": [*steps, last], "observe": []})])
    assert record.actual is not None, record
    return float(json.loads(record.actual)["results"][-1])
