"""The machine and the commit that figures belong to: a figure without them says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def describe() -> dict[str, str]:
    """Processor, cores, memory, system, versions of what is measured, and the commit."""
    return {
        "processor": _field(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _memory(),
        "system": f"{_release()}, Linux {platform.release()}",
        "QEMU": _first_line("qemu-system-x86_64", "--version").removeprefix("QEMU emulator version "),
        "Python": platform.python_version(),
        "Rust": _first_line("rustc", "--version").removeprefix("rustc "),
        "commit": _commit(),
    }


def _field(file: Path, name: str) -> str | None:
    for line in file.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _memory() -> str:
    total = _field(Path("/proc/meminfo"), "MemTotal") or "0 kB"
    return f"{int(total.split()[0]) / 2**20:.0f} GiB"


def _release() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "unknown distribution"


def _first_line(*command: str) -> str:
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return (output.splitlines() or ["none"])[0]


def _commit() -> str:
    commit = _first_line("git", "rev-parse", "--short=12", "HEAD")
    changed = _first_line("git", "status", "--porcelain", "--untracked-files=no", "--", "src", "crates", "bench")
    return f"{commit} with changes" if changed != "none" else commit
