"""What needs neither guest nor emulator, so that every Python can be tried where there is none: package and tests.

    python scripts/without_guest.py setup   .venv with the locked packages and the native module; no system package
    python scripts/without_guest.py test    the tests below

They hold what depends on the version of Python: the language of models, symbolic execution, conditions, tests made from
them, documents, corpora, runs and reports.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import setup
from rust import Toolchain
from steps import StepFailed, stream

TESTS = (
    "tests/analyzer",
    "tests/compare",
    "tests/interfaces",
    "tests/lang",
    "tests/remedy",
    "tests/report",
    "tests/support",
    "tests/symbolic",
    "tests/testgen",
)
LEFT_OUT = (
    "tests/analyzer/test_cluster.py::test_tests_are_run_by_workers_as_here",
    "tests/remedy/test_planted.py",
    "tests/remedy/test_transfers.py",
    "tests/report/test_locks_page_browser.py",
    "tests/report/test_page_browser.py",
    "tests/report/test_page_two_runs.py",
)
"""What starts the emulator or a browser all the same."""


def main(arguments: Sequence[str]) -> int:
    """Does what the one argument asks for; returns the exit code."""
    try:
        match arguments:
            case ["setup"]:
                toolchain = Toolchain.find()
                setup.virtual_environment()
                setup.crates(toolchain)
                setup.native_module(toolchain)
            case ["test"]:
                stream([setup.PYTHON, "-m", "pytest", "--quiet", *TESTS, *(f"--deselect={test}" for test in LEFT_OUT)])
            case _:
                print(f"usage: without_guest.py setup|test, not {' '.join(arguments)}", file=sys.stderr)
                return 2
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
