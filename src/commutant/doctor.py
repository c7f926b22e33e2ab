"""Is everything there that a check needs? One `Diagnosis` per question, each with what to do if the answer is no.

The checks ask the same functions that a campaign uses, so that what fails there is found here first.
"""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from commutant.documents import Document, Part
from commutant.guest import Emulator, default_kernel, find_emulator, find_user_emulator, tested_versions
from commutant.support import CommutantError, annotations_folder, artifacts, build_advice, pages_folder

MIN_PYTHON = (3, 11)
TRIED_SYSTEMS = (("debian", "12"), ("debian", "13"))
TOOLS = {
    "apt-get": "downloads kernels and packages",
    "dpkg-deb": "unpacks Debian's packages",
    "zstd": "unpacks newer kernels",
    "setpriv": "ends what was started",
    "prlimit": "bounds what is unpacked",
    "mke2fs": "linux:fs=ext4",
    "mkfs.xfs": "linux:fs=xfs",
    "mkfs.btrfs": "linux:fs=btrfs",
    "gcc": "kernel build, libraries",
}
"""What is run in addition to QEMU, and what for."""

MEMORY_PER_MACHINE_BYTES = 700 << 20
"""What one virtual machine takes: 512 MiB of guest memory, and QEMU's own."""

_TIMEOUT_SECONDS = 20.0


class State(StrEnum):
    """What a check found; only `PROBLEM` keeps a campaign from running."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Diagnosis(Part, frozen=True):
    """The answer to one question: what was found, and what to do about it (empty if all is well)."""

    name: str
    state: State
    found: str
    advice: str = ""


class DoctorReport(Document, frozen=True):
    """All answers; `ok` is false if one of them keeps a check from running."""

    ok: bool
    checks: tuple[Diagnosis, ...]


def run_checks(jobs: int) -> Iterator[Diagnosis]:
    """All checks, one after the other; `jobs` is how many virtual machines a campaign would start."""
    questions: list[tuple[str, Callable[[], Diagnosis]]] = [
        ("system", check_system),
        ("python", check_python),
        ("native module", check_native_module),
        ("qemu", check_qemu),
        ("qemu for programs", check_user_qemu),
        ("tools", check_tools),
        ("kernel", check_kernel),
        ("tracer plugin", check_plugin),
        ("runner", check_runner),
        ("cache folder", check_cache_folder),
        ("pages", check_pages),
        ("memory", lambda: check_memory(jobs)),
        ("shared memory", lambda: check_shared_memory(jobs)),
    ]
    for name, question in questions:
        try:
            yield question()
        except CommutantError as error:
            yield Diagnosis(name, State.PROBLEM, str(error))


def check_system() -> Diagnosis:
    """The system is one of those that were tried."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    found = release.get("PRETTY_NAME", "unknown")
    if platform.machine() != "x86_64":
        return Diagnosis(
            "system", State.PROBLEM, f"{found}, {platform.machine()}", "use x86-64: the tracer knows no other"
        )
    if (release.get("ID"), release.get("VERSION_ID")) in TRIED_SYSTEMS:
        return Diagnosis("system", State.OK, found)
    return Diagnosis("system", State.WARNING, found, "tried are Debian 12 and 13 (docs/reference/systems.md)")


def check_python() -> Diagnosis:
    """Python is new enough."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= MIN_PYTHON:
        return Diagnosis("python", State.OK, found)
    return Diagnosis("python", State.PROBLEM, found, "use Python 3.11 or newer")


def check_native_module() -> Diagnosis:
    """The native module can be imported."""
    try:
        importlib.import_module("commutant._native")
    except ImportError as error:
        advice = build_advice()
        return Diagnosis("native module", State.PROBLEM, str(error), advice)
    return Diagnosis("native module", State.OK, "commutant._native")


def judge_emulator(emulator: Emulator) -> Diagnosis:
    """Whether a QEMU that can trace at all is of a version that was tested."""
    if not emulator.untested:
        return Diagnosis("qemu", State.OK, f"{emulator.path}, {emulator.version}")
    advice = f"tested are {tested_versions()}; every campaign's self-test decides whether this one traces rightly"
    return Diagnosis("qemu", State.WARNING, f"{emulator.path}, {emulator.version}", advice)


def check_qemu() -> Diagnosis:
    """QEMU is there, starts, and is of a version that names the right virtual CPU for each access."""
    return judge_emulator(find_emulator())


def check_user_qemu() -> Diagnosis:
    """There is an emulator of programs; without one `locks` and the targets that are programs do not run."""
    try:
        emulator = find_user_emulator()
    except CommutantError as error:
        return Diagnosis("qemu for programs", State.WARNING, str(error), "commutant prepare --emulator")
    found = f"{emulator.path}, {emulator.version}"
    if emulator.untested:
        return Diagnosis("qemu for programs", State.WARNING, found, f"tested are {tested_versions()}")
    return Diagnosis("qemu for programs", State.OK, found)


def check_tools() -> Diagnosis:
    """The programs that packages, kernels and disks need; each is missed only by what it is for."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    missing = [f"{tool} ({use})" for tool, use in TOOLS.items() if shutil.which(tool, path=path) is None]
    if not missing:
        return Diagnosis("tools", State.OK, f"{len(TOOLS)} programs")
    return Diagnosis("tools", State.WARNING, f"missing: {', '.join(missing)}", "install those that you want to use")


def check_kernel() -> Diagnosis:
    """Debian's kernel is prepared, and what lies in the cache is what was unpacked there."""
    kernel = default_kernel()
    kernel.read()
    return Diagnosis("kernel", State.OK, f"Linux {kernel.release} ({kernel.source})")


def check_plugin() -> Diagnosis:
    """QEMU loads the tracer plugin (a machine without CPUs is started with it, and ended)."""
    plugin = artifacts.plugin_path()
    command = [find_emulator().path, "-M", "none", "-display", "none", "-nodefaults", "-monitor", "stdio"]
    command += ["-plugin", f"{plugin},out=/dev/null,record=off"]
    try:
        answer = subprocess.run(
            command, input="quit\n", capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Diagnosis("tracer plugin", State.PROBLEM, f"{plugin}: {error}", build_advice())
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split())[:200] or f"exit code {answer.returncode}"
        advice = f"{build_advice()}; QEMU and plugin must be of one interface version"
        return Diagnosis("tracer plugin", State.PROBLEM, f"QEMU does not load {plugin}: {reason}", advice)
    return Diagnosis("tracer plugin", State.OK, "loaded by QEMU")


def check_runner() -> Diagnosis:
    """The runner is there and a program for x86-64."""
    runner = artifacts.runner_path()
    try:
        with runner.open("rb") as file:
            header = file.read(20)
    except OSError as error:
        return Diagnosis("runner", State.PROBLEM, f"{runner}: {error.strerror}", build_advice())
    if header[:5] != b"\x7fELF\x02" or header[18:20] != b"\x3e\x00":
        return Diagnosis("runner", State.PROBLEM, f"{runner} is no x86-64 program", build_advice())
    return Diagnosis("runner", State.OK, f"{runner.stat().st_size >> 10} KiB")


def cache_folder() -> Path:
    """Where the prepared kernel and cached analyses lie."""
    import platformdirs

    return platformdirs.user_cache_path("commutant")


def check_cache_folder() -> Diagnosis:
    """Files can be made in the cache folder."""
    folder = cache_folder()
    probe = folder / f".doctor-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"probe")
        probe.unlink()
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        advice = "make it writable, or name another place in XDG_CACHE_HOME"
        return Diagnosis("cache folder", State.PROBLEM, f"{folder}: {error.strerror}", advice)
    if free_bytes < 1 << 30:
        return Diagnosis("cache folder", State.WARNING, f"{folder}: {_mib(free_bytes)} free", "free 1 GiB there")
    return Diagnosis("cache folder", State.OK, f"{folder}, {_mib(free_bytes)} free")


def check_pages() -> Diagnosis:
    """The pages that hints name and the header for annotations are there, where they can be read."""
    pages, header = pages_folder() / "docs" / "guides", annotations_folder() / "commutant_locks.h"
    missing = next((path for path in (pages, header) if not path.exists()), None)
    if missing is not None:
        return Diagnosis("pages", State.WARNING, f"{missing} is missing", build_advice())
    return Diagnosis("pages", State.OK, f"{pages.parent}; {header}")


def check_memory(jobs: int) -> Diagnosis:
    """There is memory for as many virtual machines as a campaign would start."""
    available_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                available_bytes = int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass  # then what the system library says must do
    wanted_bytes = jobs * MEMORY_PER_MACHINE_BYTES
    found = f"{_mib(available_bytes)} available, {_mib(wanted_bytes)} wanted for {jobs} virtual machines"
    if available_bytes >= wanted_bytes:
        return Diagnosis("memory", State.OK, found)
    fewer = max(1, available_bytes // MEMORY_PER_MACHINE_BYTES)
    return Diagnosis("memory", State.PROBLEM, found, f"free some, or use --jobs {fewer}")


def check_shared_memory(jobs: int) -> Diagnosis:
    """Memory can be shared between the virtual machines and this program."""
    try:
        descriptor = os.memfd_create("commutant-doctor")
    except OSError as error:
        advice = "allow memfd_create (a sandbox or an old kernel forbids it)"
        return Diagnosis("shared memory", State.PROBLEM, f"{error.strerror}", advice)
    try:
        os.ftruncate(descriptor, jobs * MEMORY_PER_MACHINE_BYTES)
    except OSError as error:
        return Diagnosis(
            "shared memory", State.PROBLEM, f"{error.strerror}", "raise the limit on file sizes (ulimit -f)"
        )
    finally:
        os.close(descriptor)
    return Diagnosis("shared memory", State.OK, "memfd_create works")


def _mib(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MiB"
