"""A subject on this many virtual cores: a program under the emulator, with the counter of transfers."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from commutant.guest import find_user_emulator
from commutant.lock_view.recording import plain_folder
from commutant.scale.counts import TransferCounts, read_counts
from commutant.support import RunError, artifacts, plural, start_program

Engine = Literal["coroutines", "threads"]
"""What cores are: coroutines of a benchmark, or the threads of a program."""

CORE_LIMIT = 256
_LONGEST_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class ScaleConditions:
    """How a subject is made to run: all of it moves the counts, so all of it is said with them.

    Each core makes `warm_up` operations that do not count, then `operations` that do. It hands over to another core
    after each, and at `hand_over` of 1,024 accesses on average: of a benchmark to atomics, before them; of a program to
    memory, after them. `seed` says at which, and to whom. A core of a benchmark maintains after each `maintain_every`
    operations, and no two cores begin to count at the same one.
    """

    seed: int = 1
    operations: int = 1000
    warm_up: int = 1024
    hand_over: int = 32
    maintain_every: int = 64
    timeout_seconds: float = 600.0
    seeds: int = 1
    """With how many seeds, of which the first is `seed`."""


class Names(Protocol):
    """Names for one run: what lies at an address that was touched at a place, and who was there."""

    def stack(self, place: int) -> tuple[str, ...]:
        """The functions at a place, the innermost first, with files and lines."""

    def variable(self, address: int, place: int) -> str:
        """What lies at an address that was touched at a place."""

    def line(self, address: int) -> str:
        """What the line at an address is."""

    @property
    def stalls(self) -> int:
        """How many turns ended by the clock, so that another run may differ."""


class Subject(Protocol):
    """What is counted: a program that says by marks whose turn it is."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def operation(self) -> str:
        """What one of its operations is."""

    @property
    def engine(self) -> Engine:
        """What its cores are."""

    def command(self, cores: int, conditions: ScaleConditions, listing: Path) -> Sequence[str]:
        """How it is started; it writes into the file what names are made of."""

    @property
    def silence(self) -> str:
        """What it means if it has written no such file."""

    def environment(self, cores: int, conditions: ScaleConditions, listing: Path) -> Mapping[str, str]:
        """Variables that it has besides."""

    def names(self, listing: Path, counts: TransferCounts) -> AbstractContextManager[Names]:
        """Names for a run."""


@contextmanager
def counted(subject: Subject, cores: int, conditions: ScaleConditions) -> Iterator[tuple[TransferCounts, Names]]:
    """What was counted, and names for it; raises RunError if the subject does not come to its end."""
    with tempfile.TemporaryDirectory(prefix="commutant-scale-", dir=plain_folder()) as name:
        folder = Path(name)
        counter, report, listing = folder / "counter.so", folder / "counts.json", folder / "objects"
        # QEMU splits arguments at commas, which a path may have.
        counter.symlink_to(artifacts.transfers_plugin_path())
        variables = subject.environment(cores, conditions, listing)
        environment = [word for key, value in variables.items() for word in ("-E", f"{key}={value}")]
        plugin = ["-plugin", f"{counter},out={report}"]
        program = subject.command(cores, conditions, listing)
        command = [*find_user_emulator().command, *environment, *plugin, *program]
        _run(command, f"{subject.name} on {plural(cores, 'core')}", conditions.timeout_seconds, folder / "messages")
        if not listing.exists():
            raise RunError(f"{subject.name}: {subject.silence}")
        counts = read_counts(report.read_bytes() if report.exists() else b"")
        with subject.names(listing, counts) as naming:
            yield counts, naming


def _run(command: list[str], what: str, timeout_seconds: float, messages: Path) -> None:
    with messages.open("w+b") as file:
        with start_program(command, output=subprocess.DEVNULL, messages=file.fileno()) as process:
            try:
                process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                raise RunError(
                    f"{what} did not end within {timeout_seconds:g} s; fewer --operations take less, --timeout gives "
                    "more"
                ) from None
            finally:
                # Whatever stops this, Ctrl-C too, stops the program and what it has forked.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_MESSAGE))
        said = " ".join(file.read(_LONGEST_MESSAGE).decode(errors="replace").split())
    if process.returncode != 0:
        raise RunError(f"{what} failed (exit code {process.returncode}): {said or 'it printed nothing'}")
