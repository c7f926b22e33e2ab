"""Adapters of the gallery, built in the user's cache: by cargo or by gcc.

A build that is there is used again: cargo knows itself what has changed, one of gcc's is kept by what it is made of.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import platformdirs

from commutant.support import OnProgress, Progress, RunError, UsageError, no_progress
from commutant.targets.gallery.entries import SOURCES, Entry, installed_version
from commutant.targets.library import INCLUDE

_COMPILERS = {"c": ("gcc", "-std=gnu11"), "cpp": ("g++", "-std=c++17")}
_CARGO = "cargo (rustup installs it)"
_FLAGS = ("-O2", "-g", "-shared", "-fPIC")


def built(entry: Entry, on_progress: OnProgress = no_progress) -> Path:
    """The adapter of an entry; raises UsageError if a package or a compiler is missing, RunError if building fails."""
    folder = Path(os.environ.get("COMMUTANT_GALLERY") or platformdirs.user_cache_path("commutant") / "gallery")
    folder.mkdir(parents=True, exist_ok=True)
    on_progress(Progress(text=f"building {entry.shown}"))
    return _with_cargo(entry, folder) if entry.language == "rust" else _with_compiler(entry, folder)


def _with_cargo(entry: Entry, folder: Path) -> Path:
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--example", entry.name]
    if entry.features:
        command += ["--features", ",".join(entry.features)]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    _run(command, entry, _CARGO, cwd=SOURCES / "rust", environment=environment)
    return folder / "target" / "release" / "examples" / f"lib{entry.name.replace('-', '_')}.so"


def _with_compiler(entry: Entry, folder: Path) -> Path:
    if entry.package:
        version = installed_version(entry.package)
        if not version:
            raise UsageError(f"gallery:{entry.name}: needs Debian's {entry.package}; `apt-get install {entry.package}`")
    else:
        version = ""
    compiler = [*_COMPILERS[entry.language], *_FLAGS]
    sources = [entry.source, *_files_of_crate(entry)]
    made_of = hashlib.sha256("\0".join([version, *compiler, *entry.links]).encode())
    for file in (*sources, INCLUDE / "commutant.h", INCLUDE / "commutant.hpp"):
        made_of.update(file.read_bytes())
    path = folder / f"{entry.name}-{made_of.hexdigest()[:16]}.so"
    if not path.exists():
        new = path.with_suffix(f".{os.getpid()}")
        links = [f"-l{name}" for name in entry.links]
        folders = [f"-I{folder}" for folder in dict.fromkeys([INCLUDE, *(file.parent for file in sources[1:])])]
        _run([*compiler, *folders, *map(str, sources), "-o", str(new), *links], entry, compiler[0])
        new.rename(path)
    return path


def _files_of_crate(entry: Entry) -> list[Path]:
    """The files that are compiled with an adapter in C, where cargo keeps the crate that carries them."""
    if not entry.compiled:
        return []
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--features", ",".join(entry.features)]
    answer = _run(command, entry, _CARGO, cwd=SOURCES / "rust")
    packages = json.loads(answer)["packages"]
    (manifest,) = (Path(package["manifest_path"]) for package in packages if package["name"] == entry.crate)
    return [manifest.parent / file for file in entry.compiled]


def _run(
    command: list[str], entry: Entry, needs: str, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    try:
        answer = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UsageError(f"gallery:{entry.name}: needs {needs}") from None
    if answer.returncode != 0:
        said = [line for line in answer.stderr.splitlines() if line.startswith("error")] or answer.stderr.splitlines()
        raise RunError(f"gallery:{entry.name}: building its adapter failed: {' '.join(said[:2])[:400]}")
    return answer.stdout
