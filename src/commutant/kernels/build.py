"""Builds of a kernel: one base for each source, configuration and compiler, and patched ones next to it.

```
builds/KEY/base.json     the base is whole: what it was made of
           tree/         its sources; tree/build/ its objects
           KEY/          a patched kernel that is being built: the same again, with the patch
```

A patched build begins as a copy of the base: sources by hard links, objects as files, both with their times, so that
make compiles only what the patch changed. It goes when it is done. What was interrupted, or failed for a full disk, is
continued by the next build of the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from commutant.kernels.make import BuildFailed, Made, make
from commutant.kernels.patches import Patch, apply
from commutant.kernels.source import Source
from commutant.kernels.users import Scope, limit_to_users
from commutant.support import OnProgress, Progress, RunError, UsageError, no_progress, private_folder, replace_file

_BASE_BYTES = 4 << 30
_PATCHED_BYTES = 2 << 30
"""Room that a build takes at most; less is refused before it begins."""


def builds_folder() -> Path:
    """Where builds lie, each in a folder of its own."""
    return platformdirs.user_cache_path("commutant") / "builds"


@dataclass(frozen=True, slots=True)
class Base:
    """A kernel without patches, built: its folder, and what it was made of."""

    folder: Path
    source: str
    version: str
    config_sha256: str
    toolchain: str
    compiled: int
    cpu_seconds: float

    @property
    def tree(self) -> Path:
        """Its sources, with its objects in `build`."""
        return self.folder / "tree"

    @property
    def vmlinux(self) -> Path:
        """The kernel with its debug information."""
        return self.tree / "build" / "vmlinux"


def build_base(source: Source, config: str, toolchain: str, jobs: int, on_progress: OnProgress) -> Base:
    """The base of a source, a configuration and a compiler, built if it is not there yet. Raises RunError."""
    key = hashlib.sha256("\0".join([source.digest, config, toolchain]).encode()).hexdigest()[:24]
    folder = builds_folder() / key
    with _locked(folder):
        base = read_base(folder)
        if base is not None:
            return base
        _require_room(folder, _BASE_BYTES)
        tree = folder / "tree"
        if not tree.is_dir():
            on_progress(Progress(text="unpacking the sources"))
            source.unpack(tree)
        written = tree / "build" / ".config.wanted"
        if not written.is_file() or written.read_text() != config:
            (tree / "build").mkdir(exist_ok=True)
            (tree / "build" / ".config").write_text(config)
            make(tree, ["olddefconfig"], jobs, folder / "config.log", no_progress)
            written.write_text(config)
        made = make(tree, ["vmlinux"], jobs, folder / "build.log", on_progress)
        facts = {
            "source": source.name,
            "version": source.version,
            "config_sha256": hashlib.sha256((tree / "build" / ".config").read_bytes()).hexdigest(),
            "toolchain": toolchain,
            "compiled": made.compiled,
            "cpu_seconds": round(made.cpu_seconds, 1),
        }
        replace_file(folder / "base.json", json.dumps(facts, indent=1).encode())
        return Base(folder, **facts)  # type: ignore[arg-type]


def read_base(folder: Path) -> Base | None:
    """The base in a folder; None if it is not whole."""
    try:
        facts = json.loads((folder / "base.json").read_text())
        base = Base(
            folder,
            source=str(facts["source"]),
            version=str(facts["version"]),
            config_sha256=str(facts["config_sha256"]),
            toolchain=str(facts["toolchain"]),
            compiled=int(facts["compiled"]),
            cpu_seconds=float(facts["cpu_seconds"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return base if base.vmlinux.is_file() else None


@contextlib.contextmanager
def patched(
    base: Base,
    patches: Sequence[Patch],
    jobs: int,
    on_progress: OnProgress,
    *,
    whole: bool,
    tell: Callable[[str], None],
) -> Iterator[tuple[Path, Made, Scope]]:
    """The tree of the base with patches, built, while the block lasts; then it goes. Raises UsageError if a patch does
    not apply or compile, RunError if the build fails otherwise."""
    digest = hashlib.sha256("\0".join(patch.text for patch in patches).encode(errors="surrogateescape"))
    folder = base.folder / digest.hexdigest()[:24]
    tree = folder / "tree"
    with _locked(folder):
        if not (folder / "scope.json").is_file():
            shutil.rmtree(tree, ignore_errors=True)
            _require_room(folder, _PATCHED_BYTES)
            on_progress(Progress(text="copying the base"))
            _copy_base(base.tree, tree)
            try:
                apply(patches, tree)
            except UsageError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            scope = Scope.everything() if whole else limit_to_users(base.tree, tree, patches)
            replace_file(folder / "scope.json", scope.to_json())
        scope = Scope.from_json((folder / "scope.json").read_bytes())
        tell(scope.text)
        try:
            made = make(tree, ["vmlinux"], jobs, folder / "build.log", on_progress)
        except BuildFailed as error:
            if "No space left" in error.reason:
                raise
            log = base.folder / f"{folder.name}.log"
            shutil.move(folder / "build.log", log)
            shutil.rmtree(folder, ignore_errors=True)
            names = ", ".join(str(patch.path) for patch in patches)
            raise UsageError(f"{names}: does not compile: {error.reason}; all of it: {log}") from None
        yield tree, made, scope
        shutil.rmtree(folder, ignore_errors=True)


def _copy_base(old: Path, tree: Path) -> None:
    """A copy of a built tree that make takes for built; sources are shared, for no one writes them in place."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    tree.mkdir()
    for entry in sorted(old.iterdir()):
        how = ["-a"] if entry.name == "build" else ["-al"]
        answer = subprocess.run(["cp", *how, str(entry), str(tree)], capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            shutil.rmtree(tree, ignore_errors=True)
            raise RunError(f"{tree}: the base cannot be copied: {' '.join(answer.stderr.split())[-200:]}")
    # The tools of the build note where they were built, and would be built again anywhere else.
    was, now = str(old).encode(), str(tree).encode()
    for path in (tree / "build" / "tools").rglob("*"):
        if path.suffix in (".cmd", ".d") and path.is_file():
            text = path.read_bytes()
            if was in text:
                path.write_bytes(text.replace(was, now))


def _require_room(folder: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size_bytes:
        raise RunError(
            f"{folder}: {free >> 20:,} MiB free, expected {size_bytes >> 20:,} MiB for a build; "
            "`commutant kernel forget` makes room, or set XDG_CACHE_HOME"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One build of the same at a time; another one waits."""
    try:
        private_folder(folder)
        descriptor = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RunError(f"{folder}: {error.strerror}; make it writable, or set XDG_CACHE_HOME") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
