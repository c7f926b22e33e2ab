"""The command line: `commutant VERB ...`, one module per verb.

Verbs are thin: they read arguments, call the one public function of a package, and print. Modules that take long to
import (Z3, pyarrow, rich) are imported by the function that needs them, so that `--version` and completion are quick.
"""

from __future__ import annotations


def main() -> int:
    """Runs the command line of this process and returns the exit code."""
    try:
        from commutant.cli.main import run

        return run()
    except KeyboardInterrupt:  # before `run` could say anything about it
        return 130
