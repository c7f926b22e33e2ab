"""The target `scalefs`: the file system of docs/reference/scalefs.md, in programs under QEMU's user mode.

Each session is one program with one instance (crate `scalefs-runner`). A test's calls run in threads, each on a core of
the instance; its processes are callers of the same instance. `cores=N` configures the instance for N cores that tests
may use (it has one more, for set-up and observation), `seed=N` moves collisions of names in its tables and chooses the
cores that calls run on. With `warm=N` cores do not come to a test from their maintenance: each has made N - 1 rounds of
other calls since then, or fewer in other orders of the test's calls. `names`, `depth` and `users` are described in
`commutant.targets.process.surroundings`. `tx=both` makes the calls of a test in open transactions,
`tx=one` all but one of them alone.

`domains=N` is another target under the same name: the file system over N domains (`commutant.targets.domains`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from commutant.support import artifacts
from commutant.targets.base import Session, Target
from commutant.targets.counted import COUNTED_OPTIONS, USUAL, Counted, take_counted
from commutant.targets.domains import create as create_domains
from commutant.targets.options import number, one_of, read_options
from commutant.targets.process.program import Program, load_program
from commutant.targets.process.surroundings import OPTIONS as SURROUNDINGS
from commutant.targets.process.surroundings import Surroundings
from commutant.targets.process.target import ProgramTarget, other_seeds
from commutant.targets.process.transacted import TRANSACTED, Transacted, in_transactions
from commutant.targets.runner import LACKS, Signature, read_calls

OPTIONS = {
    "cores": number(2, 255),
    "seed": number(0, (1 << 64) - 1),
    "warm": number(2, 4096),
    "tx": one_of(*TRANSACTED),
    **SURROUNDINGS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFsOptions(Surroundings):
    """What the target argument asks for."""

    cores: int = 2
    seed: int = 1
    warm: int | None = None
    tx: Transacted | None = None
    counted: Counted = USUAL


def parse_options(argument: str, options: Mapping[str, str]) -> ScaleFsOptions:
    """The options of a target argument; raises UsageError for a key or value that there is not."""
    given, counted = take_counted(argument, options)
    return ScaleFsOptions(counted=counted, **read_options(argument, given, OPTIONS, *COUNTED_OPTIONS))


def create(argument: str, options: Mapping[str, str]) -> Target:
    """The target for `scalefs[:KEY=VALUE,...]`, not started; raises UsageError for keys not in `OPTIONS`.

    With `domains=N`, keys are those of `commutant.targets.domains`.
    """
    if "domains" in options:
        return create_domains(argument, options)
    return ScaleFsTarget(argument, parse_options(argument, options))


class ScaleFsTarget(ProgramTarget):
    """ScaleFS in traced programs; see `commutant.targets.base.Target`."""

    lacks = LACKS

    def __init__(self, argument: str, options: ScaleFsOptions) -> None:
        """Does nothing yet but keep the options."""
        super().__init__(argument, options.cores, options.counted)
        self.options = options

    def _read_calls(self) -> frozenset[Signature]:
        return read_calls(artifacts.scalefs_runner_path())

    def _load(self, workers: int) -> Program:
        options = self.options
        arguments = ("--cores", str(options.cores), "--workers", str(workers), "--seed", str(options.seed))
        warm = ("--warm", str(options.warm)) if options.warm else ()
        return load_program(artifacts.scalefs_runner_path(), (*arguments, *warm, *options.runner_arguments()))

    def sessions(self, count: int) -> Sequence[Session]:
        """As `ProgramTarget.sessions`, with transactions if they were asked for."""
        return in_transactions(super().sessions(count), self.options.tx)

    def reseeded(self) -> Sequence[ScaleFsTarget]:
        """The same with the next two seeds."""
        seeds = other_seeds(self.options.seed)
        return [ScaleFsTarget(self.argument, replace(self.options, seed=seed)) for seed in seeds]

    def describe(self) -> Mapping[str, object]:
        """Options, QEMU and the program's arguments."""
        return {
            "cores": self.options.cores,
            "hash_seed": self.options.seed,
            **({"warm": self.options.warm} if self.options.warm else {}),
            **self.options.described(),
            **({"transactions": self.options.tx} if self.options.tx else {}),
            "hash_seeds_of_conflicts": list(other_seeds(self.options.seed)),
            **super().describe(),
        }
