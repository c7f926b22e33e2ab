"""The benchmarks that the runner has (crates/file-system/scale-runner)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from commutant.support import UsageError, artifacts, did_you_mean
from commutant.targets.process import ask


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its name, and what one operation of it is."""

    name: str
    operation: str


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
