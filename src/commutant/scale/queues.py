"""Throughput by a closed queueing network: cores go round, and each line that moves is a server with a queue of its
own.

A core works by itself for a time, then asks for lines, one after the other; a line serves one core at a time, and takes
the latency of a transfer for it. All cores are alike, and visit each line as often as was counted. This is the network
that exact mean value analysis solves (Reiser and Lavenberg 1980): with n cores, who comes to a line finds on average
what is there with n - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_SMALLEST = 1e-4
"""What makes up a smaller part of an operation's time than this, and so never has a queue, only takes its time."""


@dataclass(frozen=True, slots=True)
class Server:
    """This many servers that are alike, and the time that an operation takes of each of them when it is alone."""

    count: int
    demand_ns: float


@dataclass(frozen=True, slots=True)
class Throughput:
    """Of one core, with as many as were asked about: time of an operation, and how much of it goes to waiting in
    queues; and what part of the time the busiest server works."""

    operation_ns: float
    queued_ns: float
    busiest: float


def throughput(own_ns: float, servers: Iterable[Server], cores: int) -> Throughput:
    """What an operation takes that needs so much time of its own, and of these servers."""
    servers = list(servers)
    least = _SMALLEST * own_ns
    delay_ns = own_ns + sum(server.count * server.demand_ns for server in servers if server.demand_ns < least)
    queued = [server for server in servers if server.demand_ns >= least]
    lengths = [0.0] * len(queued)
    operation_ns = delay_ns
    for present in range(1, cores + 1):
        residences = [server.demand_ns * (1 + length) for server, length in zip(queued, lengths, strict=True)]
        operation_ns = delay_ns + sum(
            server.count * residence for server, residence in zip(queued, residences, strict=True)
        )
        lengths = [present / operation_ns * residence for residence in residences]
    served_ns = sum(server.count * server.demand_ns for server in servers)
    busiest = max((server.demand_ns for server in servers), default=0.0) * cores / operation_ns
    return Throughput(operation_ns, max(0.0, operation_ns - own_ns - served_ns), min(1.0, busiest))


def servers_of(lines_by_transfers: Sequence[tuple[int, int]], operations: int, latency_ns: float) -> list[Server]:
    """The lines of a run as servers: how many lines moved how often during this many operations."""
    return [Server(lines, transfers / operations * latency_ns) for transfers, lines in lines_by_transfers]
