"""Tests whose calls are made in transactions, and sequences that are cut into transactions.

A test becomes several, one for each order in which the transactions of its calls may end; its window is one of each.
That is said to the runner by a step of the set-up (crates/file-system/scalefs-runner/src/transacting.rs):

    both    each call in a transaction of its own, all begun before any call:  ends="01", ends="10"
    one     one call in a transaction, the others outside any:                 ends="0",  ends="1"

An abort is shown as a finding of its own object, so that reports count it and draw its heat map as they do of lines.
"""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from commutant.corpus import SetupStep, TestCase
from commutant.mtrace import Access, Finding
from commutant.targets.base import Job, SequenceRecord, Session, WindowRecord

Transacted = Literal["both", "one"]
"""Which calls of a test are in transactions: all of them, or one at a time."""

TRANSACTED: tuple[Transacted, ...] = ("both", "one")

ABORTED = "aborted transaction"
"""The object of findings that are aborts."""

_LONGEST_TRANSACTION = 5
_ALONE_OF = 4
"""Of this many pieces that a sequence is cut into, one is a call outside any transaction."""


class TransactedSession:
    """A session whose tests and sequences are made in transactions; see `commutant.targets.base.Session`."""

    def __init__(self, session: Session, transacted: Transacted) -> None:
        """Over a session of a runner that knows transactions."""
        self._session = session
        self._transacted = transacted
        self._known: dict[str, tuple[TestCase, ...]] = {}

    def run(self, jobs: Sequence[Job]) -> Iterator[WindowRecord]:
        """A record per job: all that was seen in its windows, one for each order of ends."""
        parts = [self._parts(job.test) for job in jobs]
        expanded = [Job(part, job.order_index) for job, tests in zip(jobs, parts, strict=True) for part in tests]
        records = self._session.run(expanded)
        for job, tests in zip(jobs, parts, strict=True):
            yield _as_one(job, [next(records) for _ in tests])

    def run_sequences(self, texts: Sequence[str]) -> Iterator[SequenceRecord]:
        """The sequences, cut into transactions; each in the same way whenever it is run."""
        cuts = [_cut(text) for text in texts]
        records = self._session.run_sequences([text for text, _ in cuts])
        for (_, added), record in zip(cuts, records, strict=True):
            yield SequenceRecord(_without(record.actual, added), record.crashed)

    def close(self) -> None:
        """As `commutant.targets.base.Session.close`."""
        self._session.close()

    def _parts(self, test: TestCase) -> tuple[TestCase, ...]:
        known = self._known.get(test.id)
        if known is None:
            ends = _ends(len(test.calls), self._transacted)
            known = self._known[test.id] = tuple([_part(test, calls) for calls in ends])
        return known


def in_transactions(sessions: Sequence[Session], transacted: Transacted | None) -> Sequence[Session]:
    """The sessions, with transactions if they are asked for."""
    return sessions if transacted is None else [TransactedSession(session, transacted) for session in sessions]


def _ends(calls: int, transacted: Transacted) -> Iterator[str]:
    """The calls in transactions, in each order in which these may end."""
    count = calls if transacted == "both" else 1
    return ("".join(map(str, order)) for order in itertools.permutations(range(calls), count))


def _part(test: TestCase, ends: str) -> TestCase:
    step = SetupStep("transactions", {"ends": ends}, 0, 0)
    return replace(test, id=f"{test.id}/{ends}", setup=(step, *test.setup))


def _as_one(job: Job, records: Sequence[WindowRecord]) -> WindowRecord:
    """What was seen in the windows of a job, with a finding for each abort; no pictures, of which aborts have none."""
    aborted = sorted({call for record in records for call in record.aborted})
    seen = [finding for record in records for finding in record.findings]
    seen += [_abort(job.test, call) for call in aborted]
    ignored = Counter[str]()
    for record in records:
        ignored.update(record.ignored)

    def first(texts: Iterator[str | None]) -> str | None:
        return next((text for text in texts if text is not None), None)

    return WindowRecord(
        job,
        tuple({finding.identity: finding for finding in seen}.values()),
        ignored,
        wrong=first(record.wrong for record in records),
        crashed=first(record.crashed for record in records),
        unsupported=first(record.unsupported for record in records),
        unreached=first(record.unreached for record in records),
        aborted=tuple(aborted),
    )


def _abort(test: TestCase, loser: int) -> Finding:
    """The abort of a call's transaction as a finding: another call of the test has changed what it has seen."""
    winner = next(index for index in range(len(test.calls)) if index != loser or len(test.calls) == 1)

    def access(call: int, write: bool) -> Access:
        placed = test.calls[call]
        return Access(placed.core, write, 0, 1, placed.call, (placed.call,))

    return Finding(0, ABORTED, "", "true", access(loser, False), access(winner, True))


def _cut(text: str) -> tuple[str, list[int]]:
    """The sequence with transactions around pieces of it, and the positions of the steps that begin and end them.

    A piece is of one process and one core. Where it is cut follows from the text.
    """
    sequence = json.loads(text)
    draw = random.Random(zlib.crc32(text.encode()))
    steps: list[dict[str, Any]] = []
    added: list[int] = []

    def add(call: str, like: dict[str, Any]) -> None:
        added.append(len(steps))
        place: dict[str, Any] = {key: like[key] for key in ("process", "core") if key in like}
        steps.append({"call": call, "args": {}, "result": 0, **place})

    for _, same in itertools.groupby(sequence["setup"], key=lambda step: (step["process"], step.get("core"))):
        piece = list(same)
        while piece:
            length = draw.randint(1, _LONGEST_TRANSACTION)
            together, piece = piece[:length], piece[length:]
            is_alone = draw.randrange(_ALONE_OF) == 0
            if not is_alone:
                add("begin_transaction", together[0])
            steps += together
            if not is_alone:
                add("end_transaction", together[0])
    return json.dumps({**sequence, "setup": steps}), added


def _without(actual: str | None, added: Sequence[int]) -> str | None:
    """What came, without what steps returned that were added."""
    if actual is None:
        return None
    came = json.loads(actual)
    if "results" in came:
        came["results"] = [result for place, result in enumerate(came["results"]) if place not in set(added)]
    return json.dumps(came)
