"""`make fuzz`, its second half: fuzzers write what others may send, and each reader is given it, SECONDS=60 in all.

`fuzz/readers.py` has the readers in Python (atheris), `fuzz/formats.rs` those in Rust (libFuzzer). Of both, inputs that
reach new code are kept in `target/fuzz/corpus` and begin the next run, next to those in `fuzz/seeds`. A reader that
raises something else than its error, takes more than ten seconds for one input or more than 1 GiB ends the run, and the
input is kept. Before that a planted fault has to be found in each half.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import fuzz
from steps import ROOT, StepFailed, install_locked, say, timed

PYTHON = Path(sys.executable)
LOCK = "requirements-fuzz.lock"
HARNESS = ROOT / "fuzz" / "readers.py"
SEEDS = ROOT / "fuzz" / "seeds"
READERS = ("corpora", "runs", "suppressions", "records", "kernels")
FORMATS = "formats"
PLANTED = {"suppressions": "readers: no suppression outlives its century", FORMATS: "formats: a trace has a header"}
OPTIONS = ["-max_len=65536", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]
PLANTED_LIMIT_SECONDS = 300
NEEDS_ATHERIS = (
    "atheris is not there: no reader in Python was fuzzed. It comes by pip from requirements-fuzz.lock, once"
)


def install_atheris() -> None:
    """Installs it next to the packages of `make setup`. Raises StepFailed, with what is needed, if it cannot be had."""
    try:
        install_locked(LOCK, "atheris")
    except StepFailed as failure:
        raise StepFailed(f"{failure}\n{NEEDS_ATHERIS}") from None


def outcome_of(
    reader: str, program: Path | None, options: Sequence[str | Path], extra: Mapping[str, str]
) -> fuzz.Outcome:
    """Runs one reader's fuzzer to its end; `program` is that of the readers in Rust."""
    command = [str(PYTHON), str(HARNESS), reader] if program is None else [str(program)]
    with tempfile.TemporaryDirectory(prefix="commutant-fuzz-") as place:  # fuzzers end without cleaning up
        ended = subprocess.run(
            [*command, *OPTIONS, *map(str, options)],
            env={**os.environ, "RUST_BACKTRACE": "0", "TMPDIR": place, **extra},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    return fuzz.Outcome(ended.returncode, ended.stdout + ended.stderr)


def find_planted_fault(reader: str, program: Path | None) -> fuzz.Outcome:
    """Looks for the planted fault, from the seeds. Raises StepFailed if it is not found."""
    with tempfile.TemporaryDirectory(prefix="commutant-fuzz-") as folder:
        limits = [f"-max_total_time={PLANTED_LIMIT_SECONDS}", "-seed=1", f"-artifact_prefix={folder}/", folder]
        outcome = outcome_of(
            reader, program, [*limits, str(SEEDS / reader)], {"COMMUTANT_PLANTED_FAULT": PLANTED[reader]}
        )
    if outcome.found_nothing or not re.search(r"planted", outcome.printed):
        raise StepFailed(
            f"{outcome.finding}\nthe planted fault `{PLANTED[reader]}` was missed: silence would say nothing"
        )
    return outcome


def search(reader: str, program: Path | None, seconds: int) -> fuzz.Outcome:
    """Looks for findings from the seeds and from what earlier runs reached."""
    kept = fuzz.FOLDER / "corpus" / reader
    kept.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-artifact_prefix={fuzz.FOLDER}/found-{reader}-"]
    return outcome_of(reader, program, [*limits, kept, SEEDS / reader], {})


def main(arguments: list[str]) -> int:
    """Fuzzes for as many seconds as the first argument says, the named readers or all; returns the exit code."""
    return fuzz.exit_code(checked, arguments)


def checked(arguments: list[str]) -> int:
    """Its exit code. Raises StepFailed if nothing can be checked."""
    known = (*READERS, FORMATS)
    wanted = arguments[1:] or list(known)
    if not arguments or not re.fullmatch(r"[1-9]\d{0,6}", arguments[0]) or not set(wanted) <= set(known):
        got = " ".join(arguments) or "nothing"
        print(f"expected a number of seconds from 1 on, and any of {', '.join(known)}; got {got}", file=sys.stderr)
        return 2
    program = None
    if FORMATS in wanted:
        fuzz.require_what_it_takes()
        with timed("readers in Rust", "built"):
            program = fuzz.build().with_name(FORMATS)
    if set(wanted) & set(READERS):
        install_atheris()
    each = max(1, int(arguments[0]) // len(wanted))
    failed = False
    for reader in wanted:
        of_rust = program if reader == FORMATS else None
        if reader in PLANTED:
            say("planted fault", f"found after {find_planted_fault(reader, of_rust).executions} executions ({reader})")
        began = time.monotonic()
        outcome = search(reader, of_rust, each)
        seconds = time.monotonic() - began
        if outcome.found_nothing:
            say(reader, f"nothing found: {seconds:.0f} s, {outcome.executions} executions, {outcome.counters} counters")
        else:
            failed = True
            files = re.findall(r"Test unit written to (\S+)", outcome.printed)
            print(f"{reader}: {outcome.printed[-2000:].strip()}\nkept: {' '.join(files)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
