"""`make test`: linters, type checks and tests, in the order in which they fail fastest.

The linters all run, whichever of them fails, so that one run shows all there is to mend; the tests run only if they
pass, in two lanes side by side. `--long` runs the tests of minutes, marked `long`, instead: all, or those below the
given paths. Nothing here uses the network.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rust import Toolchain
from steps import ROOT, VENV, StepFailed, run, say, stream, timed

PYTHON = str(VENV / "bin" / "python")
PYTHON_FOLDERS = ["src", "tests", "scripts", "bench"]
RUST = ["--workspace", "--locked", "--offline"]
SEED = 2013
"""Of all random cases: what passes once passes always. Without it, `cargo test` and `pytest` draw others each time."""
RUST_SEED = ["env", f"PROPTEST_RNG_SEED={SEED}"]
SCHEDULED = ["env", "RUSTFLAGS=--cfg shuttle", f"CARGO_TARGET_DIR={ROOT / 'target' / 'shuttle'}"]
"""For threads of which a scheduler lets one run at a time (crates/structures/sync); all is built apart."""
PRINTING = ["--", "--show-output"]
"""Tests that pass print as well: how many histories, calls and deaths there were."""
BUILDING = {"sanitizers": "tests/scalefs/test_sanitizers.py", "libraries": "tests/libraries"}
"""Python tests that mostly build: crates with sanitizers, and projects in three languages. They run apart."""
PYTHON_SEED = f"--hypothesis-seed={SEED}"
NO_TESTS = r"\s*$|running 0 tests|test result: ok\. 0 passed; 0 failed; 0 ignored"
"""What cargo prints of the many parts of crates that hold no tests."""
PASSED = r"(?ms)^successes:$.*?(?=^failures:$|^test result|\Z)"
"""What cargo shows of the tests that passed; it says nothing about one that failed."""
COUNTED = ("histories", "plans of few calls", "deaths", "calls held against tmpfs", "combinations of rights")
"""What tests count beside themselves, a line such as `400 histories` each."""
LONG_TEST_LIMIT_SECONDS = 5400
"""After this a long test is stopped with all stacks; the quick ones' limit is in pyproject.toml."""
LONG_TEST_LIMIT = ["env", f"COMMUTANT_TEST_LIMIT_SECONDS={LONG_TEST_LIMIT_SECONDS - 60}"]
"""The same for programs that cargo runs in it, so that they tell their stacks first (scripts/limited.py)."""


@dataclass(frozen=True)
class Suite:
    """Tests that one command runs: what they are called, and the command."""

    name: str
    command: list[str]


@dataclass(frozen=True)
class Linter:
    """A linter: its name, what is true once it has passed, its command, and how to mend what it finds."""

    name: str
    passed: str
    command: list[str]
    remedy: str = "each line above says where"


def linters(cargo: str, crates: Sequence[str] | None = None) -> list[Linter]:
    """All linters, the quick ones first; clippy over all crates, or over the given ones alone."""
    ruff = ["--quiet", *PYTHON_FOLDERS]
    which = RUST if crates is None else [*(f"--package={crate}" for crate in crates), *RUST[1:]]
    clippy = [cargo, "clippy", "--quiet", "--keep-going", *which, "--all-targets", "--", "--deny", "warnings"]
    found = [
        Linter("ruff", "no finding", ["ruff", "check", "--output-format", "concise", *ruff]),
        Linter(
            "ruff format",
            "all formatted",
            ["ruff", "format", "--check", "--output-format", "concise", *ruff],
            "`ruff format` mends it",
        ),
        Linter(
            "rustfmt",
            "all formatted",
            [cargo, "fmt", "--all", "--check", "--", "--files-with-diff"],
            "`cargo fmt --all` mends the files above",
        ),
        Linter("mypy", "no error", ["mypy", "--no-error-summary"]),
    ]
    return found if crates == [] else [*found, Linter("clippy", "no warning", clippy)]


def lint(cargo: str, crates: Sequence[str] | None = None) -> list[str]:
    """Runs all linters and returns the names of those that found something; what they found has been printed."""
    failed = []
    for linter in linters(cargo, crates):
        try:
            with timed(linter.name, linter.passed):
                run(linter.command)
        except StepFailed as failure:
            print(f"{failure}\n{linter.name} failed; {linter.remedy}", file=sys.stderr, flush=True)
            failed.append(linter.name)
    return failed


def histories(cargo: str) -> list[str]:
    """The command that runs all tests that are made for a scheduler."""
    crates, tests = scheduled_tests()
    chosen = [*(f"--package={crate}" for crate in crates), *(part for test in tests for part in ("--test", test))]
    quietly = ["test", "--quiet", "--no-fail-fast", "--profile=schedules"]
    return [*SCHEDULED, cargo, *quietly, *chosen, *RUST[1:], *PRINTING]


SEEKS_SCHEDULES = r"must_be_caught|must_catch|\bovertake|\bexplore\(|(?m:^#!\[cfg\(shuttle\)\])"
"""What a test program says that is made for a scheduler."""


def scheduled_tests() -> tuple[list[str], list[str]]:
    """The crates and test programs that plant faults, themselves or in a module of theirs, let threads be overtaken,
    or are nothing without a scheduler. Only the build under `--cfg shuttle` can do so: what is left out has never been
    seen to fail, and of its plans the system's threads overtake each other by chance, if at all."""
    crates, tests = set(), set()
    for program in ROOT.glob("crates/*/*/tests/**/*.rs"):
        folder = next(above for above in program.parents if above.name == "tests")
        is_program = program.parent == folder or (program.parent.parent == folder and program.name == "main.rs")
        if not is_program:
            continue
        text = program.read_text(encoding="utf-8")
        modules = [program.parent / name for name in re.findall(r"(?m)^mod (\w+);", text)]
        parts = [text, *(part.read_text(encoding="utf-8") for module in modules for part in module_files(module))]
        if any(re.search(SEEKS_SCHEDULES, part) for part in parts):
            crates.add(folder.parent.name)
            tests.add(program.stem if program.parent == folder else program.parent.name)
    return sorted(crates), sorted(tests)


def module_files(module: Path) -> list[Path]:
    """The files of a module that lies at this path, in one file or in a folder."""
    file = module.with_suffix(".rs")
    return [*([file] if file.is_file() else []), *module.glob("**/*.rs")]


LANES = 2
"""A build keeps both cores busy only now and then and a Python test keeps one: two side by side waste neither."""


def suites(cargo: str) -> list[Suite]:
    """What there is to run, in the order in which it begins; the lane that is free takes the next.

    The two that take longest come first: what cargo builds and runs, and the Python tests.
    """
    pytest = [PYTHON, "-m", "pytest", "--quiet", "--durations=5", PYTHON_SEED]
    return [
        Suite("cargo test", [*RUST_SEED, cargo, "test", "--quiet", "--no-fail-fast", *RUST, *PRINTING]),
        Suite("pytest", [*pytest, *(f"--ignore={path}" for path in BUILDING.values())]),
        Suite("histories", histories(cargo)),
        *(Suite(name, [*pytest, path]) for name, path in BUILDING.items()),
    ]


def run_lane(waiting: deque[Suite]) -> list[str]:
    """Runs the suites that nobody has taken yet, one after the other, each with one line at its end; returns the names
    of those that failed.

    What a suite prints is kept back, so that two lanes do not mix, and shown if the suite fails.
    """
    failed: list[str] = []
    while True:
        try:
            suite = waiting.popleft()
        except IndexError:
            return failed
        started = time.monotonic()
        try:
            printed = run(suite.command)
        except StepFailed as failure:
            told = re.sub(PASSED, "", str(failure))
            shown = "\n".join(line for line in told.splitlines() if not re.match(NO_TESTS, line))
            print(f"{shown}\n{suite.name} failed", file=sys.stderr, flush=True)
            failed.append(suite.name)
        else:
            say(suite.name, f"passed: {time.monotonic() - started:.1f} s, {counted(printed)}")


def counted(printed: str) -> str:
    """How many tests passed and were skipped, and what they counted, by what cargo or pytest printed."""
    passed = sum(map(int, re.findall(r"(?m)^(?:test result: ok\. )?(\d+) passed", printed)))
    skipped = sum(map(int, re.findall(r"(?m)^\d+ passed, (\d+) skipped", printed)))
    found = {what: sum(map(int, re.findall(rf"(?m)^(\d+) {what}$", printed))) for what in COUNTED}
    counts = [f"{passed} tests", *(f"{count:,} {what}" for what, count in found.items() if count)]
    return ", ".join([*counts, *([f"{skipped} skipped"] if skipped else [])])


def test(cargo: str) -> list[str]:
    """Runs the Rust and the Python tests, side by side; returns the names of those that failed."""
    say("tests", "running: cargo's and Python's side by side")
    waiting = deque(suites(cargo))
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(run_lane, waiting) for _ in range(LANES)]
        try:
            return [name for lane in running for name in lane.result()]
        except KeyboardInterrupt:
            waiting.clear()  # the terminal has sent the signal to the commands as well: they end by themselves
            raise


def test_long(paths: list[str]) -> list[str]:
    """Runs the tests of minutes below the paths, or all; one that takes longer than the limit of a test hangs.

    Each test is named when it begins, and its result when it ends, so that a run of hours shows what it does.
    """
    limit = f"faulthandler_timeout={LONG_TEST_LIMIT_SECONDS}"
    try:
        stream(
            [
                *LONG_TEST_LIMIT,
                PYTHON,
                "-m",
                "pytest",
                "-m",
                "long",
                "--verbose",
                "--durations=10",
                "--override-ini",
                limit,
                *paths,
            ]
        )
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return ["pytest -m long"]
    return []


def main(arguments: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit code."""
    started = time.monotonic()
    if arguments and arguments[0] != "--long":
        print(f"usage: verify.py [--long [PATH ...]], not {' '.join(arguments)}", file=sys.stderr)
        return 2
    target = {0: "make test", 1: "make test-long"}.get(len(arguments), " ".join(["verify.py", *arguments]))
    try:
        cargo = Toolchain.find().cargo
        failed = test_long(arguments[1:]) if arguments else lint(cargo) or test(cargo)
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    if failed:
        print(f"{target} failed in: {', '.join(failed)}", file=sys.stderr)
        return 1
    say(target, f"passed: {time.monotonic() - started:.0f} s in {ROOT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
