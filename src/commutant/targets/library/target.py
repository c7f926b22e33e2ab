"""A library in traced programs (crate `library-runner`): each session is one program with one adapter loaded."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from commutant import _native
from commutant.mtrace import Finding, TracedWindow
from commutant.support import RunError, UsageError, artifacts, start_program
from commutant.targets.base import Target
from commutant.targets.counted import USUAL, Counted
from commutant.targets.library.adapter import check_file, project_of
from commutant.targets.library.options import Options, parse_options
from commutant.targets.process.drawings import Drawn
from commutant.targets.process.program import NameSource
from commutant.targets.process.running import LIMITS
from commutant.targets.process.target import ProgramTarget, other_seeds
from commutant.targets.runner import Signature, parse_calls

INCLUDE = Path(__file__).resolve().parent / "include"
"""The folder of `commutant.h`."""

RUST_CRATE = INCLUDE.parent / "rust"
"""The folder of the crate `commutant-adapter`."""

_ANSWER_SECONDS = 20.0
_LIMITS = dataclasses.replace(LIMITS, memory_bytes=4 << 30)
"""What an adapter may take that is loaded without an emulator."""


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `library:path=FILE[,cores=N][,seed=N][,allocator=...]`, not started; raises UsageError."""
    return LibraryTarget(argument, parse_options(argument, options))


@dataclass(frozen=True, slots=True)
class LibraryProgram:
    """The runner with an adapter; see `commutant.targets.process.program.Program`."""

    path: Path
    arguments: tuple[str, ...]
    counted: Counted = USUAL
    counts_windows: bool = True

    def command(self, listing: int, progress: int) -> list[str]:
        """As `Program.command`."""
        files = ["--objects", f"/proc/self/fd/{listing}", "--progress", f"/proc/self/fd/{progress}"]
        return [str(self.path), *self.arguments, *files]

    def naming(self, listing: int) -> _LibraryNaming:
        """As `Program.naming`: names come from the debug information of what is loaded."""
        return _LibraryNaming(_native.LoadedNames(f"/proc/{os.getpid()}/fd/{listing}"))

    def counting(self, counted: Counted) -> LibraryProgram:
        """As `Program.counting`."""
        return dataclasses.replace(self, counted=counted)


@dataclass(frozen=True, slots=True)
class _LibraryNaming:
    source: NameSource

    def named(self, finding: Finding) -> Finding:
        """As `Naming.named`: the trace reader has said all."""
        return finding

    def drawn(self, window: TracedWindow) -> Drawn:
        """As `Naming.drawn`: the trace reader has said all."""
        return window.pictures, window.course


class LibraryTarget(ProgramTarget):
    """A library behind an adapter; see `commutant.targets.base.Target`."""

    def __init__(self, argument: str, options: Options) -> None:
        """Does nothing yet but keep the options."""
        super().__init__(argument, options.cores, options.counted)
        self.options = options

    @property
    def folder_name(self) -> str:
        """What a run's folder is called after: the adapter's project, and the options that are not the usual ones."""
        options = self.argument.partition(":")[2].split(",")
        others = [option for option in options if not option.startswith("path=")]
        return "-".join([project_of(self.options.path), *others])

    def _read_calls(self) -> frozenset[Signature]:
        """Loads the adapter once, without the emulator; raises UsageError if it cannot be loaded."""
        check_file(self.options.path)
        command = [str(artifacts.library_runner_path()), *self.options.place, "--calls"]
        with start_program(command, messages=subprocess.PIPE, limits=_LIMITS, is_confined=True) as process:
            try:
                output, words = process.communicate(timeout=_ANSWER_SECONDS)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise RunError(f"{self.options.path}: asking for its calls: {error}") from None
        if process.returncode != 0:
            lines = words.decode(errors="replace").strip().splitlines()
            said = lines[-1].removeprefix("commutant-library-runner: ") if lines else "nothing"
            if process.returncode == 2:
                raise UsageError(said)
            raise UsageError(
                f"{self.options.path}: loading it ended the program ({process.returncode}); it says: {said}"
            )
        return parse_calls(output.decode(errors="replace"), self.options.path)

    def _load(self, workers: int) -> LibraryProgram:
        check_file(self.options.path)
        options = self.options
        numbers = ("--cores", str(options.cores), "--workers", str(workers), "--seed", str(options.seed))
        arguments = (*options.place, *numbers, "--allocator", options.allocator)
        return LibraryProgram(artifacts.library_runner_path(), arguments)

    key_windows = 4096
    """Windows with keys of their own that a check runs besides: libraries spread keys over places by hashes."""

    def reseeded(self) -> Sequence[LibraryTarget]:
        """The same with the next two seeds."""
        seeds = other_seeds(self.options.seed)
        return [self._with(dataclasses.replace(self.options, seed=seed)) for seed in seeds]

    def _with(self, options: Options) -> LibraryTarget:
        """The same with other options."""
        return LibraryTarget(self.argument, options)

    def describe(self) -> Mapping[str, object]:
        """Options, what the adapter's file is, QEMU and the program's arguments."""
        options = self.options
        return {
            "adapter": str(options.path),
            **({} if options.name is None else {"adapter_name": options.name}),
            "adapter_sha256": hashlib.sha256(options.path.read_bytes()).hexdigest(),
            "cores": options.cores,
            "allocator": options.allocator,
            "hash_seed": options.seed,
            "hash_seeds_of_conflicts": list(other_seeds(options.seed)),
            **super().describe(),
        }
