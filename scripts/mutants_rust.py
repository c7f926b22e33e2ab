"""`make test-mutants` for the Rust half: how many of the small faults that `cargo-mutants` makes the tests find.

cargo-mutants copies the tree, changes one function or operator at a time, builds the crate and runs the tests that
have to notice. What is drawn depends on the seed alone: part SEED of N parts of all mutants of a crate, with N so large
that about COUNT are in one. Results are kept in `target/mutants`, and a mutant that was caught is not tried again as
long as they are there, so that an interrupted run goes on. The tool itself is installed once, as pinned below.

Mutants that survive and that nobody can tell from the original stand in `scripts/equivalent_mutants.txt`, each with the
reason; they are not counted.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steps import ROOT, environment, run

VERSION = "27.1.0"
TOOLS = ROOT / "target" / "tools"
KEPT = ROOT / "target" / "mutants"
EQUIVALENT = ROOT / "scripts" / "equivalent_mutants.txt"

CRATES: dict[str, tuple[str, ...]] = {
    "posix-calls": ("scalefs", "plain"),
    "scalefs": ("scalefs",),
    "hashdir": ("hashdir",),
    "refcache": ("refcache",),
    "maxima": ("maxima",),
    "radix": ("radix",),
    "pages": ("pages",),
    "percpu": ("percpu",),
    "epoch": ("epoch",),
    "commit": ("commit", "hashdir"),
    "seqlock": ("seqlock", "radix"),
    "history": ("history",),
    "wire": ("wire",),
    "symbolic": ("symbolic",),
    "lock-study": ("lock-study",),
    "mtrace": ("mtrace",),
}
"""By crate: those whose tests have to notice."""

MINIMUM_SECONDS = 60


@dataclass(frozen=True)
class Score:
    """What became of the mutants that were drawn; `missed` are those that no test noticed."""

    drawn: int
    caught: int
    timed_out: int
    unviable: int
    equivalent: int
    missed: Sequence[str]

    @property
    def percent(self) -> float:
        """Of those that build and are not equivalent, how many were noticed."""
        noticed = self.caught + self.timed_out
        return 100 * noticed / max(1, noticed + len(self.missed))


def install() -> Path:
    """The tool; installed if it is not there. Raises StepFailed if it cannot be."""
    program = TOOLS / "bin" / "cargo-mutants"
    if not program.exists() or VERSION not in run([program, "mutants", "--version"]):
        run(["cargo", "install", "cargo-mutants", "--version", VERSION, "--locked", "--force", "--root", TOOLS])
    return program


def shard(program: Path, crate: str, count: int, seed: int) -> tuple[int, int]:
    """Which of how many parts is drawn; all mutants are one if there are few."""
    every = json.loads(run([program, "mutants", "--list", "--json", "--package", crate]))
    parts = max(1, len(every) // count)
    return seed % parts, parts


def try_mutants(crate: str, count: int, seed: int) -> Score:
    """Draws about so many mutants of a crate and runs the tests. Raises StepFailed if they fail without a mutant."""
    program = install()
    part, parts = shard(program, crate, count, seed)
    output = KEPT / f"rust-{crate}-{part}-of-{parts}"
    output.mkdir(parents=True, exist_ok=True)
    tested = [option for name in CRATES[crate] for option in ("--test-package", name)]
    command: list[str | Path] = [
        program, "mutants", "--package", crate, *tested, "--shard", f"{part}/{parts}", "--sharding", "round-robin",
        "--iterate", "--output", output, "--minimum-test-timeout", str(MINIMUM_SECONDS), "--no-shuffle",
        "--colors", "never", "--cargo-arg=--offline", "--profile", "dev",
    ]  # fmt: skip
    # What survives is no failure of the command: its codes 2 and 3 say that something was missed, or took too long.
    extra = {"CARGO_TARGET_DIR": str(KEPT / "build"), "COMMUTANT_TEST_LIMIT_SECONDS": "3600", "HISTORIES_MS": "0"}
    ended = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env=environment(extra), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    if ended.returncode not in (0, 2, 3):
        raise SystemExit(f"{crate}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return score(output / "mutants.out")


def score(results: Path) -> Score:
    """Reads what cargo-mutants wrote, together with what earlier runs of the same part had caught."""
    equivalent = set(_equivalent())
    listed = {kind: _lines(results / f"{kind}.txt") for kind in ("caught", "missed", "timeout", "unviable")}
    before = _lines(results / "previously_caught.txt")
    missed = [name for name in listed["missed"] if _without_place(name) not in equivalent]
    caught = len({*listed["caught"], *before})
    return Score(
        drawn=caught + sum(len(listed[kind]) for kind in ("missed", "timeout", "unviable")),
        caught=caught,
        timed_out=len(listed["timeout"]),
        unviable=len(listed["unviable"]),
        equivalent=len(listed["missed"]) - len(missed),
        missed=missed,
    )


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def _without_place(name: str) -> str:
    """A mutant without its line and column, which other changes move."""
    return re.sub(r":\d+:\d+: ", ": ", name)


def _equivalent() -> list[str]:
    """The mutants that make no difference; each line of the file is one and, behind ` # `, the reason."""
    lines = [line for line in _lines(EQUIVALENT) if line and not line.startswith("#")]
    unreasoned = [line for line in lines if " # " not in line]
    if unreasoned:
        raise SystemExit(f"{EQUIVALENT.name}: expected `MUTANT # REASON`, got {unreasoned[0]!r}")
    return [line.split(" # ")[0] for line in lines]
