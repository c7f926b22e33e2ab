"""What transactions cost on ScaleFS: a call alone in one and as one of ten, large ones, a rename made of two calls,
whole programs, and what they are to others; and whether an attacker gets between two calls of one. `bench.txos` sets
the figures next to those of TxOS.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.commands import ROOT, text_of
from bench.figure import Figure, Goal
from bench.txos import table

TITLE = "Transactions on ScaleFS"

CALLS = ("access", "open", "create+unlink", "link+unlink", "rename+rename", "mkdir+rmdir")
MODES = {"one": ("alone in one", 2.5), "ten": ("in one of ten", 1.8)}
"""Which calls are in a transaction, in words, and the most that the mean of all calls may cost, of outside. By the
parts of a call that leaves a trace of its answers, and of a check that compares versions, a look costs 1.5 and 1.4
times a plain one; marks, notes for an heir and the look before the decision are what changes cost besides. So 1.5 in
one of ten, the first goal, was below what is known to be possible.
"""
PHASES = 1.5
"""Of the phases of programs, and of a directory service; 1.4 of PostMark. They follow from those of calls."""

TABLE = table
"""What the figures are shown as."""

GOALS = {
    "10,000 names in one, per name, of outside": Goal("at_most", 2),
    "plain create and unlink beside transactions, of beside plain calls": Goal("at_most", 1.02),
    "plain stat beside transactions, of beside plain calls": Goal("at_most", 1.01),
    "longest call of a writer beside a transaction of 10,000 names": Goal("at_most", 1),
    "attempts of a transaction of 10,000 calls against two writers of what it reads": Goal("at_most", 12),
    "longest call of such a writer": Goal("at_most", 150),
    "PostMark, in transactions, of outside": Goal("at_most", 1.4),
}
"""By the names of what the benchmarks print; those of whole groups are in `_goal`."""

_BENCH = ("cargo", "bench", "--quiet", "-p", "transact", "--bench", "transactions")
_WORKLOADS = ("cargo", "bench", "--quiet", "-p", "transact", "--bench", "workloads")
_HISTORIES = ("cargo", "test", "--release", "--quiet", "-p", "transact", "--test", "histories", "not_commute")
_BUILD = ("cargo", "build", "--release", "-p", "transact", "--bench", "transactions", "--message-format=json")
_ATTACK = ("cargo", "run", "--release", "--quiet", "-p", "transact", "--example", "attacker", "--")
_ATTACKED = re.compile(r"(in transactions|without): the attacker wins (\d+) of (\d+)")
_COLLECTED = re.compile(r"Collected : (\d+)")
_EXECUTABLE = re.compile(r'"executable":"([^"]+/transactions-[0-9a-f]+)"')
_ROUNDS = (40, 80)
_CALLS_PER_ROUND = 10
_ATTACKS = 1_000_000
_CASES = 20_000


def measure() -> list[Figure]:
    """Times of calls, renames and programs, instructions of calls, histories without an order, rounds of the attacker.

    `TRANSACTIONS=small` in the environment tries a hundredth of the histories and the attacker's rounds.
    """
    part = 100 if os.environ.get("TRANSACTIONS") == "small" else 1
    calls = list(timed(text_of(*_BENCH), " ".join(_BENCH)))
    programs = list(timed(text_of(*_WORKLOADS), " ".join(_WORKLOADS)))
    return [
        *calls,
        *of_all_calls(calls),
        *programs,
        *of_all_phases(programs),
        *counted(),
        *searched(_CASES // part),
        *attacked(_ATTACKS // part),
    ]


def _goal(name: str) -> Goal | None:
    if name in GOALS:
        return GOALS[name]
    if name.startswith("rename as link and unlink"):
        return Goal("at_most", 0.35)
    if name.endswith(", in transactions, of outside"):
        return Goal("at_most", PHASES)
    return Goal("at_most", 0.5) if name.endswith(", of tmpfs") else None


def _geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def of_all_calls(figures: Sequence[Figure]) -> Iterator[Figure]:
    """The mean of all calls' parts of the time outside, sample by sample, and the slowest of those of tmpfs's time."""
    command = " ".join(_BENCH)
    for words, bound in MODES.values():
        outside = [figure.samples for figure in figures if figure.name.endswith(f", {words}, of outside")]
        means = tuple(map(_geometric_mean, zip(*outside, strict=True)))
        yield Figure(f"time {words}, of outside, geometric mean", "", means, command, Goal("at_most", bound))
        tmpfs = [figure for figure in figures if figure.name.endswith(f", {words}, of tmpfs")]
        slowest = max(tmpfs, key=lambda figure: figure.median)
        yield Figure(f"slowest call {words}, of tmpfs", "", slowest.samples, command, Goal("at_most", 0.5))


def of_all_phases(figures: Sequence[Figure]) -> Iterator[Figure]:
    """The mean of all phases of the programs, sample by sample."""
    for of, bound in (("outside", PHASES), ("tmpfs", 0.5)):
        end = f", in transactions, of {of}"
        phases = [f.samples for f in figures if f.name.endswith(end) and not f.name.startswith("directory service")]
        means = tuple(map(_geometric_mean, zip(*phases, strict=True)))
        name = f"all phases, of {of}, geometric mean"
        yield Figure(name, "", means, " ".join(_WORKLOADS), Goal("at_most", bound))


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
        mean = _geometric_mean(ratios[mode])
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


def searched(cases: int) -> Iterator[Figure]:
    """Histories without an order, of this many drawn: the test fails at the first."""
    command = ("env", f"HISTORIES={cases}", *_HISTORIES)
    text_of(*command)
    name = "histories without an order"
    yield Figure(name, f"of {cases:,}", (0.0,), " ".join(command[1:]), Goal("at_most", 0))


def attacked(rounds: int) -> Iterator[Figure]:
    """Rounds that an attacker wins who changes what a name leads to between check and use, and those of the control."""
    command = (*_ATTACK, str(rounds))
    won: dict[str, list[tuple[int, int]]] = {"in transactions": [], "without": []}
    for how, wins, of in _ATTACKED.findall(text_of(*command)):
        won[how].append((int(wins), int(of)))
    goals = {"in transactions": Goal("at_most", 0), "without": Goal("at_least", 1)}
    for how, ways in won.items():
        tried = sum(of for _, of in ways)
        name = f"rounds that an attacker wins, {how}"
        yield Figure(name, f"of {tried:,}", (float(sum(wins for wins, _ in ways)),), " ".join(command), goals[how])
