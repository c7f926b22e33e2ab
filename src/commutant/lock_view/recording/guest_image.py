"""The root file system of a guest that runs a workload: Debian's packages unpacked into an archive for the kernel.

A workload is a shell script. Comments at its start say what it needs:

    # packages: gcc libc6-dev make
    # sources: flac

Packages come with all that they depend on; sources are unpacked as /src/NAME. All of the script is recorded, unless a
comment `# recorded: between switches` says that it turns the recorder on and off itself, each time with the command
`switch-recorder`.
"""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from commutant.guest import Archive, CpioWriter, binary_packages, open_package, open_sources, source_archive
from commutant.support import Budget, RunError, UsageError, read_regular

_BASE_PACKAGES = ("coreutils", "dash", "mount")
_SWITCHES = re.compile(r"# recorded: between switches\s*")
_NEED = re.compile(r"# (packages|sources):((?: [a-z0-9][a-z0-9+.-]*)+)\s*")
_SCRIPT_LIMIT_BYTES = 1 << 20
_IMAGE_LIMIT_BYTES = 1 << 30
_UNPACKED_LIMIT_BYTES = 2 << 30
"""Of one package, with what is left out."""
_UNPACK_SECONDS = 600.0

_LEFT_OUT = re.compile(
    r"usr/share/(doc|man|locale|info|lintian|bug|bash-completion|gdb|gcc)/|var/|"
    r".*/(lto1|lto-dump|lib(asan|tsan|ubsan|lsan|hwasan|gprofng|cc1).*)$"
)
"""What no workload reads and takes half of the room: documentation, sanitizers, link-time optimisation."""

BEGUN = "commutant: the workload begins"
ENDED = "commutant: the workload ended with "
"""What the guest prints on its console; the latter with the exit code after it."""

_INIT = f"""#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tracefs tracefs /sys/kernel/tracing
echo "{BEGUN}" > /dev/console
test -e /switches || switch-recorder
sh /workload < /dev/null > /output 2>&1
status=$?
test -e /switches || switch-recorder
tail -n 20 /output > /dev/console
echo "{ENDED}$status" > /dev/console
stty -F /dev/console -echo
echo b > /proc/sysrq-trigger
"""
"""The first program. Changing a terminal's mode waits until what was written to it is out; resetting the machine does
not, and lost the last line in one of six runs."""

_MERGED = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
"""Folders of the root that are links into `usr`, where Debian 13's packages have their files; those of 12 in either."""

_SWITCH = b"""#!/bin/sh
echo guest > /proc/sys/kernel/hostname
"""
"""Writing the host's name is what the recorder understands (crates/emulator/locks-plugin/src/kernel/functions.rs)."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A script that is run in a guest, and what it needs there."""

    name: str
    script: bytes
    packages: tuple[str, ...]
    sources: tuple[str, ...]
    switches_recorder: bool


def read_workload(path: Path) -> Workload:
    """Reads a script; raises UsageError if it cannot be read or is none."""
    try:
        script = read_regular(path, _SCRIPT_LIMIT_BYTES)
        text = script.decode()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a shell script to run in the guest") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected a shell script in UTF-8, got something else") from None
    if len(script) > _SCRIPT_LIMIT_BYTES or "\0" in text or not text.strip():
        raise UsageError(f"{path}: expected a shell script of at most 1 MiB, got something else")
    needs: dict[str, list[str]] = {"packages": [], "sources": []}
    switches = False
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if found := _NEED.fullmatch(line):
            needs[found[1]] += found[2].split()
        elif _SWITCHES.fullmatch(line):
            switches = True
        elif line.startswith(("# packages:", "# sources:", "# recorded:")):
            expected = "'# packages: NAME NAME', '# sources: NAME' or '# recorded: between switches'"
            raise UsageError(f"{path}: expected {expected}, got {line[:60]!r}")
    return Workload(path.name, script, tuple(needs["packages"]), tuple(needs["sources"]), switches)


def build_image(workload: Workload) -> bytes:
    """The archive with the workload and all that it needs, downloaded where it has not been before. Raises RunError."""
    image = _Image()
    for path in binary_packages(sorted({*_BASE_PACKAGES, *workload.packages})):
        budget = Budget(str(path), _UNPACKED_LIMIT_BYTES, _UNPACK_SECONDS)
        with open_package(path, budget) as archive:
            image.add_all(archive, PurePosixPath("."), 0)
    for name in workload.sources:
        path = source_archive(name)
        budget = Budget(str(path), _UNPACKED_LIMIT_BYTES, _UNPACK_SECONDS)
        with open_sources(path, budget) as archive:
            image.add_all(archive, PurePosixPath("src") / name, 1)
    return image.finish(workload)


class _Image:
    """An archive that gets each name once."""

    def __init__(self) -> None:
        self._archive = CpioWriter()
        self._names: set[str] = set()
        self._links: list[tuple[str, str]] = []
        self._contents: dict[str, tuple[bytes, bool]] = {}
        self._bytes = 0
        for name in ("dev", "proc", "sys", "tmp", "root", "src"):
            self._directory(PurePosixPath(name))
        for name in _MERGED:
            self._directory(PurePosixPath("usr") / name)
            self._archive.symbolic_link(name, f"usr/{name}")
        self._archive.character_device("dev/console", 5, 1)
        self._archive.character_device("dev/null", 1, 3)

    def _directory(self, path: PurePosixPath) -> None:
        for parent in (*reversed(path.parents), path):
            name = str(parent)
            if name != "." and name not in self._names:
                self._names.add(name)
                self._archive.directory(name)

    def add_all(self, archive: Archive, below: PurePosixPath, stripped: int) -> None:
        """Adds what an archive holds, without the first `stripped` parts of its names. Raises RunError."""
        for member in archive:
            self._add(archive, member, below, stripped)

    def _add(self, archive: Archive, member: tarfile.TarInfo, below: PurePosixPath, stripped: int) -> None:
        path = _inside(member.name, below, stripped)
        if path is None or str(path) in self._names or _LEFT_OUT.match(str(path)):
            return
        name = str(path)
        if member.isdir():
            self._directory(path)
            return
        self._directory(path.parent)
        if member.issym():
            self._archive.symbolic_link(name, member.linkname)
        elif member.islnk():
            target = _inside(member.linkname, below, stripped)
            if target is None or str(target) not in self._contents:
                return
            self._file(name, *self._contents[str(target)])
        elif member.isfile():
            self._file(name, archive.read(member), bool(member.mode & 0o100))
        else:
            return
        self._names.add(name)

    def _file(self, name: str, content: bytes, executable: bool) -> None:
        self._bytes += len(content)
        if self._bytes > _IMAGE_LIMIT_BYTES:
            raise RunError(
                f"the packages unpack to more than {_IMAGE_LIMIT_BYTES >> 20} MiB; a guest has no room for that"
            )
        self._contents[name] = (content, executable)
        if executable:
            self._archive.program(name, content)
        else:
            self._archive.file(name, content)

    def finish(self, workload: Workload) -> bytes:
        """The archive, with the first program and the workload."""
        if "usr/bin/sh" not in self._names:
            self._archive.symbolic_link("usr/bin/sh", "dash")
        self._archive.file("workload", workload.script)
        self._archive.program("usr/sbin/switch-recorder", _SWITCH)
        if workload.switches_recorder:
            self._archive.file("switches", b"")
        self._archive.program("init", _INIT.encode())
        return self._archive.finish()


def _inside(name: str, below: PurePosixPath, stripped: int) -> PurePosixPath | None:
    """The place of an archive's member, in `usr` if its folder is a link there; None for one that would lie outside."""
    parts = [part for part in PurePosixPath(name).parts if part not in (".", "/")][stripped:]
    if not parts or ".." in parts:
        return None
    path = below.joinpath(*parts)
    return PurePosixPath("usr") / path if path.parts[0] in _MERGED else path
