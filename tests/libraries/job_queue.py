"""A model with a choice: any waiting job may be leased. Its set-ups are found by a search, of which some lease."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commutant.lang import Errno, Interface, Invocation, Map, Sort, call, choose, invoke, unused, well_formed


class Payload(Sort, word="payload"):
    """What a job is to do."""


class Job(Sort, opaque=True, word="job"):
    """A job's number, which the queue picks."""


class JobQueue(Interface):
    """Jobs that wait, and jobs that somebody works on."""

    waiting: Map[Job, Payload]
    leased: Map[Job, Payload]

    @call
    def submit(self, payload: Payload) -> Job:
        """A job more."""
        job = unused(Job)
        self.waiting[job] = payload
        return job

    @call
    def lease(self) -> Errno | Job:
        """Any job that waits."""
        if not self.waiting:
            return Errno.EAGAIN
        job = choose(self.waiting)
        self.leased[job] = self.waiting.pop(job)
        return job

    @call
    def payload(self, job: Job) -> Errno | Payload:
        """What a leased job is to do."""
        return self.leased.get(job, Errno.ENOENT)

    @call
    def ack(self, job: Job) -> Errno | int:
        """A leased job is done."""
        if job not in self.leased:
            return Errno.ENOENT
        del self.leased[job]
        return 0

    @call
    def nack(self, job: Job) -> Errno | int:
        """A leased job waits again."""
        if job not in self.leased:
            return Errno.ENOENT
        self.waiting[job] = self.leased.pop(job)
        return 0

    @well_formed("leased")
    def not_both(self, job: Job, payload: Payload) -> bool:
        """No job is in both."""
        return job not in self.waiting

    def observe(self, values: Mapping[type, Sequence[Any]]) -> Iterator[Invocation]:
        """What leased jobs are to do."""
        for job in self.leased:
            yield invoke("payload", job=job)
