"""`make test`: linters, type checks and tests, side by side, and what each of them took.

Without an option it runs what a person waits for: the quick lane (scripts/lanes.py says what that is). `--all` runs the
whole lane besides, as continuous integration does. `--long` runs the tests of minutes, marked `long`, instead: all, or
those below the given paths. Nothing here uses the network.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import lanes
import no_std
import rust_tests
from lanes import BUILDING, Seconds
from rust import Toolchain
from rust_tests import RUST, SEED
from steps import NAME_WIDTH, ROOT, VENV, StepFailed, say, stream
from work import Done, SuiteEnd, Work, Workers, failure

PYTHON = str(VENV / "bin" / "python")
PYTHON_FOLDERS = ["src", "packages", "tests", "scripts", "bench"]
PYTHON_SEED = f"--hypothesis-seed={SEED}"
NO_TESTS = r"\s*$|running 0 tests|test result: ok\. 0 passed; 0 failed; 0 ignored"
"""What cargo prints of the many parts of crates that hold no tests."""
PASSED = r"(?ms)^successes:$.*?(?=^failures:$|^test result|\Z)"
"""What a program shows of the tests that passed; it says nothing about one that failed."""
COUNTED = ("histories", "plans of few calls", "deaths", "calls held against tmpfs", "combinations of rights")
"""What tests count in addition to themselves, a line such as `400 histories` each."""
LONG_TEST_LIMIT_SECONDS = 5400
"""After this a long test is stopped with all stacks; the quick ones' limit is in pyproject.toml."""
LONG_TEST_LIMIT = ["env", f"COMMUTANT_TEST_LIMIT_SECONDS={LONG_TEST_LIMIT_SECONDS - 60}"]
"""The same for programs that cargo runs in it, so that they tell their stacks first (scripts/limited.py)."""
USAGE = "usage: verify.py [--all | --long [PATH ...]]"


def linters(cargo: str, crates: Sequence[str] | None = None) -> list[Work]:
    """All linters, the quick ones first; clippy over all crates, or over the given ones alone."""
    ruff = ["--quiet", *PYTHON_FOLDERS]
    which = RUST if crates is None else [*(f"--package={crate}" for crate in crates), *RUST[1:]]
    clippy = [cargo, "clippy", "--quiet", "--keep-going", *which, "--all-targets", "--", "--deny", "warnings"]

    def linter(name: str, command: list[str], remedy: str = "each line above says where") -> Work:
        is_build = name == "clippy"
        # Before tests: a person wants to know at once.
        return Work("linters", name, command, 0.0 if is_build else 1e6, is_build=is_build, remedy=remedy)

    concise = ["--output-format", "concise"]
    found = [
        linter("ruff", ["ruff", "check", *concise, *ruff]),
        linter("ruff format", ["ruff", "format", "--check", *concise, *ruff], "`ruff format` mends it"),
        linter(
            "rustfmt",
            [cargo, "fmt", "--all", "--check", "--", "--files-with-diff"],
            "`cargo fmt --all` mends the files above",
        ),
        linter("mypy", ["mypy", "--no-error-summary"]),
    ]
    return found if crates == [] else [*found, linter("clippy", clippy)]


def python_tests(folder: Path, kept: Seconds, whole: bool, shard_count: int) -> list[Work]:
    """Python tests in shards of about equal time, each of which writes its seconds into the folder."""
    pytest = [PYTHON, "-m", "pytest", "--quiet", PYTHON_SEED]

    def piece(suite: str, number: int, paths: Sequence[str], seconds: float, *options: str) -> Work:
        options = (*options, "--seconds", str(folder / f"{suite}-{number}.json"))
        return Work(suite, f"{suite} ({number + 1})", [*pytest, *options, *paths], seconds)

    of_file = kept.of_whole_file if whole else kept.of_file
    seconds = {name: of_file(name) for name in lanes.test_files() if not lanes.is_building(name)}
    lane = [] if whole else ["--lane", "quick"]
    found = [
        piece("pytest", number, names, sum(seconds[name] for name in names), *lane)
        for number, names in enumerate(lanes.shards(seconds, shard_count))
    ]
    return [*found, *(piece(name, 0, [path], 200.0) for name, path in BUILDING.items())] if whole else found


class Report:
    """Says what ended how, keeps what it took, and which pieces failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self._done = 0
        self.programs: dict[str, dict[str, float]] = {"programs": {}, "schedules": {}}

    def ended(self, done: Done) -> None:
        """Shows a piece that failed at once; notes what a program took."""
        suite, _, name = done.work.name.partition(" ")
        part = {"cargo": "programs", "histories": "schedules"}.get(suite)
        if part is not None and done.work.command[0] == rust_tests.LIMITED:
            self.programs[part][name.removeprefix("test ")] = done.processor_seconds
        if done.status not in (0, _NO_TESTS_RAN if done.work.suite == "pytest" else 0):
            told = re.sub(PASSED, "", failure(done))
            shown = "\n".join(line for line in told.splitlines() if not re.match(NO_TESTS, line))
            _clear()
            print(shown, file=sys.stderr, flush=True)
            self.failed.append(done.work.name)
        self._done += 1
        if sys.stdout.isatty():
            _clear()
            print(f"{'tests':<{NAME_WIDTH}} {self._done} pieces done, the last: {done.work.name}", end="\r", flush=True)

    def suite_ended(self, end: SuiteEnd) -> None:
        """One line for a suite of which all passed."""
        _clear()
        if not any(done.work.name in self.failed for done in end.pieces):
            counts = counted("\n".join(done.output for done in end.pieces))
            took = f"{end.seconds:.1f} s, {end.processor_seconds:.0f} s of processor time"
            say(end.name, f"passed: {took}" + (f", {counts}" if counts else ""))


def _clear() -> None:
    """Takes the line that says how far it is off a terminal."""
    if sys.stdout.isatty():
        print("\x1b[2K", end="", flush=True)


_NO_TESTS_RAN = 5
"""Pytest's exit code where all tests of the files are in another lane."""


def counted(printed: str) -> str:
    """How many tests passed and were skipped, and what they counted, by what programs and pytest printed."""
    passed = sum(map(int, re.findall(r"(?m)^(?:test result: ok\. )?(\d+) passed", printed)))
    skipped = sum(map(int, re.findall(r"(?m)^\d+ passed, (\d+) skipped", printed)))
    found = {what: sum(map(int, re.findall(rf"(?m)^(\d+) {what}$", printed))) for what in COUNTED}
    counts = [f"{passed} tests"] if passed else []
    counts += [f"{count:,} {what}" for what, count in found.items() if count]
    return ", ".join([*counts, *([f"{skipped} skipped"] if skipped else [])])


def worker_count() -> int:
    """One for each processor that this process may use; two at least, since a build waits now and then."""
    return max(2, len(os.sched_getaffinity(0)))


def test(cargo: str, whole: bool) -> list[str]:
    """Runs linters and tests side by side; returns the names of the pieces that failed."""
    kept = Seconds.kept()
    report = Report()
    count = worker_count()
    with tempfile.TemporaryDirectory(prefix="commutant-tests-") as name:
        folder = Path(name)
        pieces = [rust_tests.tests(cargo, kept, whole), *linters(cargo), *no_std.pieces(cargo)]
        pieces += python_tests(folder, kept, whole, 3 * count)
        if whole:
            pieces += [rust_tests.documentation(cargo), rust_tests.histories(cargo, kept)]
        Workers(count, report.ended, report.suite_ended).run(pieces)
        tests: dict[str, float] = dict.fromkeys(lanes.test_files(), 0.0) if whole else {}
        for file in folder.glob("*.json"):
            tests.update(json.loads(file.read_text(encoding="utf-8")))
    lanes.note({"tests": tests, **report.programs})
    return report.failed


def test_long(paths: list[str]) -> list[str]:
    """Runs the tests of minutes below the paths, or all; one that takes longer than the limit of a test hangs.

    Each test is named when it begins, and its result when it ends, so that a run of hours shows what it does.
    """
    limit = f"faulthandler_timeout={LONG_TEST_LIMIT_SECONDS}"
    pytest = [PYTHON, "-m", "pytest", "-m", "long", "--verbose", "--durations=10", "--override-ini", limit]
    try:
        stream([*LONG_TEST_LIMIT, *pytest, *paths])
    except StepFailed as failed:
        print(failed, file=sys.stderr)
        return ["pytest -m long"]
    return []


def main(arguments: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit code."""
    started = time.monotonic()
    long = arguments[:1] == ["--long"]
    if arguments not in ([], ["--all"]) and not long:
        print(f"{USAGE}, not {' '.join(arguments)}", file=sys.stderr)
        return 2
    names = {(): "make test", ("--all",): "make test ALL=1", ("--long",): "make test-long"}
    target = names.get(tuple(arguments), " ".join(["verify.py", *arguments]))
    try:
        cargo = Toolchain.find().cargo
        failed = test_long(arguments[1:]) if long else test(cargo, whole=bool(arguments))
    except StepFailed as failed_step:
        print(failed_step, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    if failed:
        print(f"{target} failed in: {', '.join(failed)}", file=sys.stderr)
        return 1
    if not arguments:
        say("left out", "what takes long: `make test ALL=1` runs all, as continuous integration does")
    say(target, f"passed: {time.monotonic() - started:.0f} s in {ROOT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
