"""Where the compiled files lie that Commutant hands to the emulator: the tracer plugin and the runners.

`make setup` builds them and puts them into `_artifacts` next to this module; the wheel carries them from there.
"""

from __future__ import annotations

from pathlib import Path

from commutant.support.errors import RunError
from commutant.support.installed import build_advice

_FOLDER = Path(__file__).resolve().parents[1] / "_artifacts"


def plugin_path() -> Path:
    """The QEMU plugin (a shared library for any of its plugin interfaces). Raises RunError if it is missing."""
    return _artifact("libcommutant_mtrace_plugin.so", "the tracer plugin")


def runner_path() -> Path:
    """The runner: a static x86-64 program that executes test cases. Raises RunError if it is missing."""
    return _artifact("commutant-runner", "the runner")


def scalefs_runner_path() -> Path:
    """The runner of the target `scalefs`: a static x86-64 program. Raises RunError if it is missing."""
    return _artifact("commutant-scalefs-runner", "the runner of the target scalefs")


def library_runner_path() -> Path:
    """The runner of libraries: a dynamic x86-64 program that loads adapters. Raises RunError if it is missing."""
    return _artifact("commutant-library-runner", "the runner of libraries")


def locks_plugin_path() -> Path:
    """The lock recorder, a QEMU plugin. Raises RunError if it is missing."""
    return _artifact("libcommutant_locks_plugin.so", "the lock recorder")


def lock_preload_path() -> Path:
    """The library that stands in front of pthread's locks under the recorder. Raises RunError if it is missing."""
    return _artifact("libcommutant_lock_preload.so", "the library in front of pthread's locks")


def transfers_plugin_path() -> Path:
    """The counter of transfers, a QEMU plugin. Raises RunError if it is missing."""
    return _artifact("libcommutant_transfers_plugin.so", "the counter of transfers")


def scale_runner_path() -> Path:
    """The runner of benchmarks of many virtual cores: a static x86-64 program. Raises RunError if it is missing."""
    return _artifact("commutant-scale-runner", "the runner of benchmarks")


def scale_turns_path() -> Path:
    """The library that has a program's threads take turns. Raises RunError if it is missing."""
    return _artifact("libcommutant_scale_turns.so", "the library that has threads take turns")


def olf_adapters_path() -> Path:
    """The adapters of lists of crate `olf`, named `list`, `map` and `sorted`. Raises RunError if they are missing."""
    return _artifact("libcommutant_olf.so", "the library of the target olf")


def try_path() -> Path:
    """The program behind `commutant try`. Raises RunError if it is missing."""
    return _artifact("commutant-try", "the program of `commutant try`")


def _artifact(name: str, meaning: str) -> Path:
    path = _FOLDER / name
    if not path.is_file():
        raise RunError(f"{meaning} is missing: expected {path}; {build_advice()}")
    return path
