"""One benchmark on so many virtual cores: the runner under the emulator, with the counter of transfers."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commutant.guest import find_user_emulator
from commutant.scale.benchmarks import Benchmark
from commutant.scale.counts import TransferCounts, read_counts
from commutant.scale.naming import CountNames
from commutant.support import RunError, artifacts, start_program

CORE_LIMIT = 256
_LONGEST_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class ScaleConditions:
    """How a benchmark is made: all of it moves the counts, so all of it is said with them.

    Each core makes `warm_up` operations that do not count, then `operations` that do. It hands over to another core
    after each, and before `hand_over` of 1,024 accesses to atomics, on average; `seed` says before which, and to whom.
    A core maintains after each `maintain_every` operations, and no two cores begin to count at the same one.
    """

    seed: int = 1
    operations: int = 1000
    warm_up: int = 1024
    hand_over: int = 32
    maintain_every: int = 64
    timeout_seconds: float = 600.0

    def arguments(self) -> list[str]:
        """As the runner takes them, in its order."""
        numbers = (self.operations, self.warm_up, self.seed, self.hand_over, self.maintain_every)
        return [str(number) for number in numbers]


@contextmanager
def counted(
    benchmark: Benchmark, cores: int, conditions: ScaleConditions
) -> Iterator[tuple[TransferCounts, CountNames]]:
    """What was counted, and names for it; raises RunError if the benchmark does not come to its end."""
    runner = artifacts.scale_runner_path()
    with tempfile.TemporaryDirectory(prefix="commutant-scale-") as name:
        folder = Path(name)
        counter, report, listing = folder / "counter.so", folder / "counts.json", folder / "objects"
        # QEMU splits arguments at commas, which a path may have.
        counter.symlink_to(artifacts.transfers_plugin_path())
        program = [str(runner), benchmark.name, str(cores), *conditions.arguments(), str(listing)]
        command = [*find_user_emulator().command, "-plugin", f"{counter},out={report}", *program]
        _run(command, f"{benchmark.name} on {cores} cores", conditions.timeout_seconds)
        counts = read_counts(report.read_bytes() if report.exists() else b"")
        descriptor = os.open(listing, os.O_RDONLY)
        try:
            yield counts, CountNames(runner, descriptor, counts)
        finally:
            os.close(descriptor)


def _run(command: list[str], what: str, timeout_seconds: float) -> None:
    with start_program(command, output=subprocess.DEVNULL, messages=subprocess.PIPE) as process:
        try:
            _, messages = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            raise RunError(
                f"{what} did not end within {timeout_seconds:g} s; fewer --operations take less, --timeout gives more"
            ) from None
        finally:
            # Whatever stops this, Ctrl-C too, stops the program.
            process.kill()
    if process.returncode != 0:
        told = " ".join(messages.decode(errors="replace").split())[:_LONGEST_MESSAGE]
        raise RunError(f"{what} failed (exit code {process.returncode}): {told or 'it printed nothing'}")
