"""Kernel sources: a folder of the user's, or Debian's package of the reference kernel's version.

What a kernel is built from is identified by a digest: of the package's archive, or of all files of the folder. Either
is brought into the cache folder as a tree of its own, so that neither building nor patching touches what the user has.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from commutant.guest import Kernel, downloaded_package
from commutant.support import OnProgress, Progress, RunError, UsageError

DEBIAN = "debian"
"""What `--source` says for Debian's package."""


_MADE = (".git", ".config", ".config.old", "vmlinux", "vmlinux.o", "System.map", "Module.symvers")
_MADE_ENDINGS = (".o", ".ko", ".a", ".cmd", ".mod", ".orig", ".rej")
_MADE_FOLDERS = ("include/config", "include/generated", "arch/x86/include/generated")
"""What a build in the source tree leaves there, which is no source."""

_VERSION_LINE = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)\s*=[ \t]*(\S*)", re.MULTILINE)
_DEBIAN_VERSION = re.compile(rb"Linux version [^\n]{0,400} SMP [^\n]{0,80}Debian (\d+\.\d+\.\d+)-(\S{1,40}) \(")
_MAKEFILE_LIMIT = 1 << 20
_UNPACK_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Source:
    """Where a tree comes from: its version (`make kernelversion`), a digest, and where it lies. `archive` is a
    package's archive of sources; without one, `folder` is a tree."""

    name: str
    version: str
    digest: str
    folder: Path
    archive: Path | None = None

    def unpack(self, tree: Path) -> None:
        """Makes a tree of its own at a path that does not exist. Raises RunError."""
        if self.archive is None:
            _copy(self.folder, tree)
            return
        part = tree.with_name(f"{tree.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _run(["tar", "-xJf", str(self.archive), "-C", str(part), "--strip-components=1", "--no-same-owner"])
        part.rename(tree)


def version_of(tree: Path) -> str:
    """The version that the Makefile of a source tree states; raises UsageError if it is none of Linux."""
    try:
        with (tree / "Makefile").open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MAKEFILE_LIMIT)
    except OSError as error:
        raise UsageError(f"{tree}: no source tree of Linux ({error.strerror}: Makefile); give --source DIR") from None
    parts = dict(_VERSION_LINE.findall(text))
    if not {"VERSION", "PATCHLEVEL", "SUBLEVEL"} <= parts.keys() or not (tree / "Kbuild").is_file():
        raise UsageError(f"{tree}: no source tree of Linux (its Makefile states no version); expected --source DIR")
    return f"{parts['VERSION']}.{parts['PATCHLEVEL']}.{parts['SUBLEVEL']}{parts.get('EXTRAVERSION', '')}"


def debian_version(kernel: Kernel) -> tuple[str, str] | None:
    """The upstream version and Debian's revision that a kernel's banner states; None if it is not Debian's."""
    found = _DEBIAN_VERSION.search(kernel.read())
    return (found[1].decode(), found[2].decode()) if found else None


def find_source(argument: str, reference: Kernel, on_progress: OnProgress) -> Source:
    """The source that `--source` names. Raises UsageError, or RunError if a package cannot be downloaded."""
    if argument == DEBIAN:
        return _debian_source(reference, on_progress)
    folder = Path(argument).absolute()
    if not folder.is_dir():
        raise UsageError(f"no folder {argument}; expected a source tree of Linux, or `--source {DEBIAN}`")
    version = version_of(folder)
    on_progress(Progress(text="reading the source tree"))
    return Source(str(folder), version, _digest(folder), folder)


def _debian_source(reference: Kernel, on_progress: OnProgress) -> Source:
    version = debian_version(reference)
    if version is None:
        raise UsageError(f"{reference.source} is no kernel of Debian's; give its sources: --source DIR")
    upstream, revision = version
    package = f"linux-source-{upstream.rpartition('.')[0]}"
    on_progress(Progress(text=f"getting {package} {upstream}-{revision}"))
    path = downloaded_package(package, f"{upstream}-{revision}")
    folder = path.parent / "unpacked"
    if not folder.is_dir():
        part = path.parent / "unpacked.part"
        shutil.rmtree(part, ignore_errors=True)
        _run(["dpkg-deb", "-x", str(path), str(part)])
        part.rename(folder)
    archives = list(folder.glob("usr/src/linux-source-*.tar.xz"))
    if len(archives) != 1:
        raise RunError(f"{path}: expected one archive of sources, found {len(archives)}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Source(f"{package} {upstream}-{revision}", upstream, digest, folder, archives[0])


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a tree that are source, in a fixed order."""
    for where, folders, files in os.walk(folder):
        inside = os.path.relpath(where, folder)
        inside = "" if inside == "." else f"{inside}/"
        folders[:] = sorted(one for one in folders if one not in _MADE and f"{inside}{one}" not in _MADE_FOLDERS)
        for name in sorted(files):
            if name not in _MADE and not name.endswith(_MADE_ENDINGS):
                yield f"{inside}{name}", Path(where, name)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    try:
        for name, path in _files(folder):
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()  # noqa: PTH115
            digest.update(f"{len(name)} {name} {len(content)} ".encode(errors="surrogateescape") + content)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}; expected a source tree that can be read") from None
    return digest.hexdigest()


def _copy(folder: Path, tree: Path) -> None:
    part = tree.with_name(f"{tree.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        for name, path in _files(folder):
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, part / name, follow_symlinks=False)
        part.rename(tree)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise RunError(f"{part}: the sources cannot be copied: {error.strerror}") from None


def _run(command: list[str]) -> None:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_UNPACK_SECONDS, check=False)
    except FileNotFoundError:
        raise RunError(f"{command[0]} is not there: expected a Debian system; or give --source DIR") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{command[0]}: {error}") from None
    if answer.returncode != 0:
        raise RunError(f"{command[0]} failed: {' '.join(answer.stderr.split())[-300:]}")
