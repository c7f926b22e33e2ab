"""What transactions cost on ScaleFS: a call alone in one and as one of ten, large ones, a rename made of two calls; and
whether an attacker gets between two calls of one. TxOS's figures (thesis, tables 5.1 and figure 5.1) are the goals'
neighbours: a call cost it 3.0 to 10.7 times as much alone in a transaction, and 1.3 to 7.4 times as one of several.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.commands import ROOT, text_of
from bench.figure import Figure, Goal

TITLE = "Transactions on ScaleFS"

CALLS = ("access", "open", "create+unlink", "link+unlink", "rename+rename", "mkdir+rmdir")
MODES = {"one": ("alone in one", 2.5), "ten": ("in one of ten", 1.5)}
"""Which calls are in a transaction, in words, and the most that the mean of all calls may cost, of outside."""

_BENCH = ("cargo", "bench", "--quiet", "-p", "transact", "--bench", "transactions")
_BUILD = ("cargo", "build", "--release", "-p", "transact", "--bench", "transactions", "--message-format=json")
_ATTACK = ("cargo", "run", "--release", "--quiet", "-p", "transact", "--example", "attacker", "--")
_ATTACKED = re.compile(r"(in transactions|without): the attacker wins (\d+) of (\d+)")
_COLLECTED = re.compile(r"Collected : (\d+)")
_EXECUTABLE = re.compile(r'"executable":"([^"]+/transactions-[0-9a-f]+)"')
_ROUNDS = (40, 80)
_CALLS_PER_ROUND = 10
_ATTACKS = 1_000_000


def measure() -> list[Figure]:
    """Times of calls and renames, instructions of calls, and rounds that the attacker wins."""
    return [*timed(text_of(*_BENCH), " ".join(_BENCH)), *counted(), *attacked(_ATTACKS)]


def _goal(name: str) -> Goal | None:
    if name.startswith("10,000 names"):
        return Goal("at_most", 2)
    if name.startswith("rename as link and unlink"):
        return Goal("at_most", 0.35)
    return Goal("at_most", 0.5) if name.endswith(", of tmpfs") else None


def timed(output: str, command: str) -> Iterator[Figure]:
    """The figures of the benchmark's lines: a name, a unit and samples."""
    for line in output.splitlines():
        name, unit, samples = line.split("\t")
        yield Figure(name, unit, tuple(map(float, samples.split())), command, _goal(name))


def counted() -> Iterator[Figure]:
    """Instructions of each call, as many times those outside a transaction, and the mean of all calls."""
    found = _EXECUTABLE.search(text_of(*_BUILD))
    if found is None:
        raise RuntimeError(f"`{' '.join(_BUILD)}` names no program")
    program = Path(found[1]).relative_to(ROOT)
    ratios: dict[str, list[float]] = {mode: [] for mode in MODES}
    for call in CALLS:
        plain = _instructions(program, call, "plain")
        command = f"valgrind --tool=callgrind {program} --count {call} plain {_ROUNDS[1]}"
        yield Figure(f"instructions of {call}, outside a transaction", "", (plain,), command)
        for mode, (words, _) in MODES.items():
            ratios[mode].append(_instructions(program, call, mode) / plain)
            yield Figure(f"instructions of {call}, {words}, of outside", "", (ratios[mode][-1],), command)
    for mode, (words, bound) in MODES.items():
        mean = math.exp(sum(map(math.log, ratios[mode])) / len(CALLS))
        name = f"instructions {words}, of outside, geometric mean"
        yield Figure(name, "", (mean,), "make bench-transactions", Goal("at_most", bound))


def _instructions(program: Path, call: str, mode: str) -> float:
    """Instructions of one call, with what surrounds it: from the difference of two runs."""
    few, many = (_collected(program, call, mode, rounds) for rounds in _ROUNDS)
    calls = (_ROUNDS[1] - _ROUNDS[0]) * _CALLS_PER_ROUND * (2 if "+" in call else 1)
    return (many - few) / calls


def _collected(program: Path, call: str, mode: str, rounds: int) -> int:
    counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program)]
    result = subprocess.run(
        [*counting, "--count", call, mode, str(rounds)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = _COLLECTED.search(result.stderr)
    if result.returncode != 0 or found is None:
        raise RuntimeError(f"counting instructions of {call}, {mode}:\n{result.stderr}")
    return int(found[1])


def attacked(rounds: int) -> Iterator[Figure]:
    """Rounds that an attacker wins who changes what a name leads to between check and use, and those of the control."""
    command = (*_ATTACK, str(rounds))
    won: dict[str, list[tuple[int, int]]] = {"in transactions": [], "without": []}
    for how, wins, of in _ATTACKED.findall(text_of(*command)):
        won[how].append((int(wins), int(of)))
    goals = {"in transactions": Goal("at_most", 0), "without": Goal("at_least", 1)}
    for how, ways in won.items():
        tried = sum(of for _, of in ways)
        name = f"rounds of {tried:,} that an attacker wins, {how}"
        yield Figure(name, "", (float(sum(wins for wins, _ in ways)),), " ".join(command), goals[how])
