"""`make test`: linters, type checks and tests, in the order in which they fail fastest.

The linters all run, whichever of them fails, so that one run shows all there is to mend; the tests run only if they
pass. `--long` runs the tests of minutes, marked `long`, instead. Nothing here uses the network.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rust import Toolchain
from steps import ROOT, VENV, StepFailed, run, say, stream, timed

PYTHON = str(VENV / "bin" / "python")
PYTHON_FOLDERS = ["src", "tests", "scripts", "bench"]


def lints(cargo: str) -> list[tuple[str, str, list[str]]]:
    """Name, what is true once it has passed, and command of every linter."""
    return [
        ("ruff", "no finding", ["ruff", "check", "--quiet", *PYTHON_FOLDERS]),
        ("ruff format", "all formatted", ["ruff", "format", "--check", "--quiet", *PYTHON_FOLDERS]),
        ("mypy", "no error", ["mypy", "--no-error-summary"]),
        ("rustfmt", "all formatted", [cargo, "fmt", "--all", "--check", "--", "--color=never"]),
        ("clippy", "no warning", [cargo, "clippy", "--quiet", *RUST, "--all-targets", "--", "-D", "warnings"]),
    ]


RUST = ["--workspace", "--locked", "--offline"]


def lint(cargo: str) -> list[str]:
    """Runs all linters and returns the names of those that found something; what they found has been printed."""
    failed = []
    for name, passed, command in lints(cargo):
        try:
            with timed(name, passed):
                run(command)
        except StepFailed as failure:
            print(f"{failure}\n{name} failed", file=sys.stderr, flush=True)
            failed.append(name)
    return failed


def test(cargo: str) -> list[str]:
    """Runs the Rust and the Python tests, showing what they print; returns the names of those that failed."""
    failed = []
    suites: list[tuple[str, Callable[[], None]]] = [
        ("cargo test", lambda: stream([cargo, "test", "--quiet", *RUST])),
        ("pytest", lambda: stream([PYTHON, "-m", "pytest", "--quiet", "--durations=5"])),
    ]
    for name, suite in suites:
        started = time.monotonic()
        say(name, "running")
        try:
            suite()
        except StepFailed as failure:
            print(f"{failure}\n{name} failed", file=sys.stderr, flush=True)
            failed.append(name)
        else:
            say(name, f"passed: {time.monotonic() - started:.1f} s")
    return failed


def test_long() -> list[str]:
    """Runs the tests of minutes."""
    try:
        stream([PYTHON, "-m", "pytest", "-m", "long"])
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return ["pytest -m long"]
    return []


def main(arguments: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit code."""
    started = time.monotonic()
    if arguments not in ([], ["--long"]):
        print(f"usage: verify.py [--long], not {' '.join(arguments)}", file=sys.stderr)
        return 2
    try:
        cargo = Toolchain.find().cargo
        failed = test_long() if arguments else lint(cargo) or test(cargo)
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    if failed:
        print(f"make test failed in: {', '.join(failed)}", file=sys.stderr)
        return 1
    say("make test", f"passed: {time.monotonic() - started:.0f} s in {ROOT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
