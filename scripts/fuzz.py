"""`make fuzz`: libFuzzer chooses calls, which are made on ScaleFS and on the reference `plain`, for SECONDS=60.

The calls are drawn from bytes (crate `call-language`). The fuzzer changes the bytes, keeps those that reach new code of
either implementation, and ends at the first difference, which is shrunk and reported (`fuzz/calls.rs`). It starts from
the inputs in `fuzz/seeds` and from those that it found before, which grow in `target/fuzz/corpus`, in a folder
of each version of the calls. Before that it has to find a planted fault, from nothing.

The compiler that builds the project builds this too, with the instructions of `FLAGS` in all crates; libFuzzer itself
comes as source (crate `libfuzzer-sys`), for which a C++ compiler is needed, and the network once.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from steps import ROOT, StepFailed, run, say, timed

TARGET = "x86_64-unknown-linux-gnu"
MANIFEST = ROOT / "fuzz" / "Cargo.toml"
FOLDER = ROOT / "target" / "fuzz"
SEEDS = ROOT / "fuzz" / "seeds" / "calls"
KEPT = FOLDER / "corpus"
LANGUAGE = (
    *sorted((ROOT / "crates" / "file-system" / "call-language" / "src").glob("*.rs")),
    ROOT / "crates" / "file-system" / "scalefs" / "tests" / "tmpfs" / "systems" / "comparison.rs",
)
"""The sources that say which calls bytes stand for."""
FLAGS = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "--cfg=fuzzing",
]
"""LLVM's SanitizerCoverage as libFuzzer reads it, of code whose branches stay apart; faults that can be planted."""
LIMIT_BYTES = 1024
"""Of longer inputs no more counts (`fuzz/calls.rs`)."""
OPTIONS = [f"-max_len={LIMIT_BYTES}", "-timeout=60", "-rss_limit_mb=4096", "-print_final_stats=1"]
PLANTED = "maxima: reset keeps its generation"
"""Sizes of before a cut count after it: three calls on one file show that, if no maintenance comes between."""
PLANTED_LIMIT_SECONDS = 300
NEEDS_COMPILER = "a C++ compiler (`c++`) is not installed: nothing was checked. Debian's is in the package `g++`"
NEEDS_LIBRARY = (
    "the source of libFuzzer is not there: nothing was checked. "
    "`cargo fetch --locked --manifest-path fuzz/Cargo.toml` downloads it, once"
)


class Outcome:
    """What a run of the fuzzer printed, and whether it ended without a finding."""

    def __init__(self, status: int, printed: str) -> None:
        self.found_nothing = status == 0
        self.printed = printed

    @property
    def executions(self) -> int:
        """How many inputs were run."""
        return self._last(r"stat::number_of_executed_units:\s*(\d+)")

    @property
    def counters(self) -> int:
        """How many counters of the code were reached."""
        return self._last(r"^#\d+\s.* cov: (\d+)")

    @property
    def all_counters(self) -> int:
        """How many there are."""
        return self._last(r"\((\d+) inline 8-bit counters\)")

    @property
    def finding(self) -> str:
        """What the program said before it ended."""
        message = r"^[^\n]*panicked at.*?(?=^stack backtrace|^note: run with|^==\d+==)"
        said = re.search(message, self.printed, re.MULTILINE | re.DOTALL)
        return said[0].strip() if said else self.printed[-4000:].strip()

    def _last(self, pattern: str) -> int:
        found = re.findall(pattern, self.printed, re.MULTILINE)
        return int(found[-1]) if found else 0


def require_what_it_takes() -> None:
    """Raises StepFailed, with what is needed, if there is no compiler or no source of libFuzzer."""
    if shutil.which("c++") is None:
        raise StepFailed(NEEDS_COMPILER)
    fetch: list[str | Path] = ["cargo", "fetch", "--quiet", "--locked", "--manifest-path", MANIFEST, "--target", TARGET]
    try:
        run([*fetch, "--offline"])
    except StepFailed:
        try:
            run(fetch)
        except StepFailed as failure:
            raise StepFailed(f"{failure}\n{NEEDS_LIBRARY}") from None


def build() -> Path:
    """Builds the program that runs one input after the other; returns its path."""
    chosen = {"RUSTFLAGS": " ".join(FLAGS), "CARGO_TARGET_DIR": str(FOLDER)}
    # With a named target, programs that only help to build come without the instructions.
    where: list[str | Path] = ["--manifest-path", MANIFEST, "--target", TARGET]
    run(["cargo", "build", "--release", "--locked", "--offline", *where], env=chosen)
    return FOLDER / TARGET / "release" / "calls"


def fuzz(program: Path, arguments: Sequence[str | Path], extra: Mapping[str, str]) -> Outcome:
    """Runs the fuzzer to its end."""
    command = [str(program), *OPTIONS, *map(str, arguments)]
    environment = {**os.environ, "RUST_BACKTRACE": "0", **extra}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    return Outcome(ended.returncode, ended.stdout + ended.stderr)


def find_planted_fault(program: Path) -> Outcome:
    """Looks for the planted fault, without seeds. Raises StepFailed if it is not found as a difference."""
    with tempfile.TemporaryDirectory(prefix="commutant-fuzz-") as folder:
        limits = [f"-max_total_time={PLANTED_LIMIT_SECONDS}", "-seed=1", f"-artifact_prefix={folder}/"]
        outcome = fuzz(program, limits, {"COMMUTANT_PLANTED_FAULT": PLANTED})
    if outcome.found_nothing or "on ScaleFS" not in outcome.finding:
        raise StepFailed(f"{outcome.finding}\nthe planted fault `{PLANTED}` was missed: silence would say nothing")
    return outcome


def language() -> str:
    """The version of the calls: bytes stand for the same ones as long as it is the same."""
    digest = hashlib.sha256()
    for file in LANGUAGE:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:8]


def kept_inputs(version: str) -> list[Path]:
    """The folder of inputs of this version, which grows; after it those that other versions left. Says so of these:
    to this version they are other sequences, to start from like any bytes."""
    own = KEPT / f"calls-{version}"
    own.mkdir(parents=True, exist_ok=True)
    others = sorted(folder for folder in KEPT.glob("calls*") if folder != own)
    if count := sum(1 for folder in others for _ in folder.iterdir()):
        say("kept inputs", f"{count} of other versions of the calls: they stand for other calls now ({KEPT})")
    return [own, *others]


def search(program: Path, seconds: int) -> Outcome:
    """Looks for differences from the seeds and from what earlier runs reached."""
    version = language()
    limits = [f"-max_total_time={seconds}", f"-artifact_prefix={FOLDER}/found-{version}-"]
    return fuzz(program, [*limits, *kept_inputs(version), SEEDS], {})


def main(arguments: list[str]) -> int:
    """Fuzzes for as many seconds as the argument says; returns the exit code."""
    return exit_code(checked, arguments)


def exit_code(checked: Callable[[list[str]], int], arguments: list[str]) -> int:
    """What `checked` returns; 1, and why, if nothing can be checked; 130 if somebody interrupts it."""
    try:
        return checked(arguments)
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


def checked(arguments: list[str]) -> int:
    """Its exit code. Raises StepFailed if nothing can be checked."""
    if len(arguments) != 1 or not re.fullmatch(r"[1-9]\d{0,6}", arguments[0]):
        print(f"expected one number of seconds from 1 on; got {' '.join(arguments) or 'nothing'}", file=sys.stderr)
        return 2
    require_what_it_takes()
    with timed("fuzzer", "built"):
        program = build()
    planted = find_planted_fault(program)
    say("planted fault", f"found after {planted.executions} executions: {planted.finding.splitlines()[1]}")
    began = time.monotonic()
    outcome = search(program, int(arguments[0]))
    seconds = time.monotonic() - began
    if not outcome.found_nothing:
        print(outcome.finding, file=sys.stderr)
        artifacts = re.findall(r"Test unit written to (\S+)", outcome.printed)
        for file in artifacts:
            print(f"`{program} {file}` repeats it, while calls are of version {language()}", file=sys.stderr)
        return 1
    reached = f"{outcome.counters} of {outcome.all_counters} counters reached"
    speed = f"{outcome.executions} executions, {outcome.executions / seconds:.0f} a second"
    say("calls", f"no difference: {seconds:.0f} s, {speed}, {reached}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
