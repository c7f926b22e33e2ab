"""The benchmarks that the runner has (crates/file-system/scale-runner): their cores are coroutines of one thread."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commutant.scale.counting import Engine, ScaleConditions
from commutant.scale.counts import TransferCounts
from commutant.scale.naming import RunnerNames
from commutant.support import UsageError, artifacts, did_you_mean
from commutant.targets.process import ask


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its name, and what one operation of it is."""

    name: str
    operation: str
    engine: Engine = "coroutines"
    silence: str = "the runner wrote no list of its objects"

    def command(self, cores: int, conditions: ScaleConditions, listing: Path) -> Sequence[str]:
        """As `Subject.command`."""
        c = conditions
        numbers = (cores, c.operations, c.warm_up, c.seed, c.hand_over, c.maintain_every)
        return [str(artifacts.scale_runner_path()), self.name, *map(str, numbers), str(listing)]

    def environment(self, cores: int, conditions: ScaleConditions, listing: Path) -> Mapping[str, str]:
        """As `Subject.environment`."""
        return {}

    @contextmanager
    def names(self, listing: Path, counts: TransferCounts) -> Iterator[RunnerNames]:
        """As `Subject.names`."""
        descriptor = os.open(listing, os.O_RDONLY)
        try:
            yield RunnerNames(artifacts.scale_runner_path(), descriptor, counts)
        finally:
            os.close(descriptor)


@cache
def benchmarks() -> Sequence[Benchmark]:
    """All of them, in the runner's order; raises RunError if there is no runner."""
    lines = (line.partition(" ") for line in ask(artifacts.scale_runner_path(), "--list").splitlines())
    return [Benchmark(name, operation) for name, _, operation in lines]


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of that name; raises UsageError if there is none."""
    known = {benchmark.name: benchmark for benchmark in benchmarks()}
    if name not in known:
        raise UsageError(
            f"expected a benchmark that `commutant scale` lists, got {name!r:.80}{did_you_mean(name, tuple(known))}"
        )
    return known[name]
