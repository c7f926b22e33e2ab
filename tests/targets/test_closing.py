"""What has a thread in native code is closed before the interpreter ends.

Such a thread was unwound through Rust at the end of a program that had not closed its target, and the program aborted.
"""

from __future__ import annotations

import subprocess
import sys

FORGETFUL = """
from commutant.support import no_progress
from commutant.targets.registry import load_target

target = load_target("scalefs")
target.start(no_progress, 2)
sessions = target.sessions(1)
print("forgotten")
"""


def test_a_target_that_is_not_closed_does_no_harm_at_the_end() -> None:
    command = [sys.executable, "-c", FORGETFUL]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "forgotten\n", "")
