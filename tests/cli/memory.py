"""How much memory a command takes at most."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# What the system counts for a child begins with what its parent had when it made it: so a small program in between.
_MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_memory_bytes(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """The largest resident set of a command; raises CalledProcessError if it does not end well."""
    measure = [sys.executable, "-c", _MEASURE, *command]
    answer = subprocess.run(measure, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return int(answer.stdout) * 1024
