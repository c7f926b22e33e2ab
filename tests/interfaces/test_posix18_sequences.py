"""Random sequences of posix18's calls, on the model and on the kernel that runs these tests, compared after every call.

Results and everything that can be observed must agree, and so must which files' times each call marks. (A store to a
shared mapping may mark them or not; from then on only that file's sizes and contents are compared.)
"""

from __future__ import annotations

import json
import platform
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from commutant.lang import Invocation, invoke, load_interface
from commutant.lang.nondeterminism import ConcreteOracle, answered_by
from commutant.lang.types import BoolType, IntType, SortType, Type
from commutant.testgen.canonical import Canonical
from commutant.testgen.concrete import ConcreteModel
from tests.interfaces.host import Host, Pairing

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="the model follows Linux")

POSIX18 = load_interface("posix18")
VALUES: Mapping[str, list[Any]] = {
    "Process": [0, 1],
    "Directory": ["d0", "d1"],
    "Name": ["n0", "n1", "n2"],
    "Address": [1, 2, 3],
    "Data": [0, 1, 2],
}
LENGTH = 40

EVERY_CHANGE_SHOWS = tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (6, 13)
"""Whether a time that was looked at always changes when it is marked (Linux 6.13: FS_MGTIME)."""


def drawn(type_: Type, chance: random.Random) -> Any:
    if isinstance(type_, SortType):
        return chance.choice(VALUES[type_.sort.__name__])
    if isinstance(type_, BoolType):
        return chance.random() < (0.8 if type_.usual else 0.4)
    assert isinstance(type_, IntType)
    return chance.randint(type_.low or 0, 3 if type_.high is None else type_.high)


def random_calls(chance: random.Random) -> Iterator[Invocation]:
    for process in VALUES["Process"]:
        yield invoke("enter_directory", process=process, directory=chance.choice(VALUES["Directory"]))
    for _ in range(LENGTH):
        name = chance.choice(POSIX18.call_names())
        parameters = POSIX18.signature(name).parameters
        yield invoke(name, **{parameter: drawn(type_, chance) for parameter, type_ in parameters.items()})


class Sides:
    """The model and the host, which make the same calls."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._state: Any = POSIX18()
        self._pairing = Pairing()
        self._canonical = Canonical()
        self._seen: dict[Any, tuple[Any, Any]] = {}

    def make(self, invocation: Invocation) -> Any:
        """Makes a call on both sides; what each returned."""
        arguments = dict(invocation.arguments)
        returned = ConcreteModel(POSIX18).perform(self._state, invocation.call, arguments)
        process = arguments.pop("process", 0)
        came = self._host.call(process, invocation.call, arguments)
        return json.loads(json.dumps(self._canonical.json(returned))), came

    def agree(self, invocation: Invocation) -> None:
        """Makes a call on both sides; results and everything else must agree, but for times."""
        expected, came = self.make(invocation)
        assert self._pairing.fits(_without_times(expected), _without_times(came)), (invocation, expected, came)

    def agree_on_everything(self, stored: bool) -> None:
        """Observes both sides; `stored`: the call before was a store to memory."""
        self._pairing.begin_section()
        for directory in VALUES["Directory"]:
            self._look(invoke("peek_directory", directory=directory, times=True), stored)
        for process in VALUES["Process"]:
            self._look(invoke("peek_descriptors", process=process, times=True), stored)
        for process in VALUES["Process"]:
            self.agree(invoke("peek_memory", process=process))

    def _look(self, invocation: Invocation, stored: bool) -> None:
        expected, came = self.make(invocation)
        assert self._pairing.fits(_without_times(expected), _without_times(came)), (invocation, expected, came)
        for wanted, found in zip(expected["seq"], came["seq"], strict=True):
            model, host = wanted["struct"]["stat"]["struct"], found["struct"]["stat"]["struct"]
            for kind in ("mtime", "ctime"):
                key = (model["ino"]["id"], kind)
                before = self._seen.get(key)
                self._seen[key] = (model[kind], host[kind])
                if before is None or stored or model["pipe"]:
                    continue
                marked, changed = before[0] != model[kind], before[1] != host[kind]
                if EVERY_CHANGE_SHOWS or not marked:
                    assert marked == changed, (invocation, key, wanted, found)


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: None if name in ("mtime", "ctime") else _without_times(item) for name, item in value.items()}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def check(seed: int, root: Path) -> None:
    chance = random.Random(seed)
    made = []
    with Host(root) as host, answered_by(ConcreteOracle()):
        sides = Sides(host)
        for invocation in random_calls(chance):
            made.append(invocation)
            try:
                sides.agree(invocation)
                sides.agree_on_everything(stored=invocation.call == "memwrite")
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, after {made}: {error}") from None


@pytest.mark.parametrize("seed", range(12))
def test_sequences(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path / "run")


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 2000, 100))
def test_many_sequences(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 100):
        check(seed, tmp_path / f"run{seed}")
