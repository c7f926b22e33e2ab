"""Debian's packages and sources for a guest: downloaded by apt, which checks their signatures; nothing is installed.

apt is given a state of its own, in which no package is installed, so that it finds all that the wanted ones depend on,
and works for any user. What was downloaded stays in the cache folder, under the names that were asked for.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import platformdirs

from commutant.guest.apt import apt
from commutant.support import RunError


def binary_packages(names: Sequence[str]) -> list[Path]:
    """The package files of the wanted packages and of all that they depend on. Raises RunError."""
    return _downloaded("packages", names, ".deb", _download_packages)


def downloaded_package(name: str, version: str) -> Path:
    """The file of one package of one version, without what it depends on. Raises RunError."""
    files = _downloaded("package", [f"{name}={version}"], ".deb", _download_alone)
    if len(files) != 1:
        raise RunError(f"package {name}: expected one file, got {len(files)}")
    return files[0]


def source_archive(name: str) -> Path:
    """The archive of a source package as its authors released it, without Debian's changes. Raises RunError."""
    files = _downloaded("sources", [name], "", _download_source)
    archives = [path for path in files if ".orig.tar." in path.name and not path.name.endswith(".asc")]
    archives = archives or [path for path in files if ".tar." in path.name]
    if len(archives) != 1:
        raise RunError(f"source package {name}: expected one archive of sources, got {len(archives)}")
    return archives[0]


def _downloaded(
    kind: str, names: Sequence[str], suffix: str, download: Callable[[Sequence[str], Path], None]
) -> list[Path]:
    """The files in the cache folder for these names; downloaded, all or nothing, if they are not there."""
    key = hashlib.sha256(" ".join(sorted(names)).encode()).hexdigest()[:24]
    folder = platformdirs.user_cache_path("commutant") / "debian" / f"{kind}-{key}"
    if not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".part", dir=folder.parent))
        except OSError as error:
            raise RunError(f"{folder.parent}: {error.strerror}; make it writable, or set XDG_CACHE_HOME") from None
        try:
            download(names, part)
            part.rename(folder)
        except OSError as error:
            if not folder.is_dir():  # else another program was faster
                raise RunError(f"{folder}: cannot be written: {error.strerror}") from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))


def _download_packages(names: Sequence[str], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="commutant-apt-") as state:
        status = Path(state) / "status"
        status.touch()
        archives = Path(state) / "archives"
        (archives / "partial").mkdir(parents=True)
        options = [f"Dir::State::status={status}", f"Dir::Cache::archives={archives}"]
        _apt(options, ["--no-install-recommends", "--download-only", "install", *names])
        for path in archives.glob("*.deb"):
            shutil.move(path, folder / path.name)


def _download_alone(names: Sequence[str], folder: Path) -> None:
    _apt([], ["download", *names], folder)


def _download_source(names: Sequence[str], folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="commutant-apt-") as state:
        lists = Path(state) / "sources.list"
        lists.write_text(_source_lines())
        for part in ("lists/partial", "cache/archives/partial"):
            (Path(state) / part).mkdir(parents=True)
        (Path(state) / "status").touch()
        options = [
            *(f"Dir::Etc::SourceList={lists}", "Dir::Etc::SourceParts=/dev/null", f"Dir::State={state}"),
            *(f"Dir::State::status={state}/status", f"Dir::Cache={state}/cache"),
        ]
        _apt(options, ["update"])
        _apt(options, ["--download-only", "source", *names], folder)


def _source_lines() -> str:
    """Where sources lie: next to the packages that this system's apt knows."""
    form = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)"
    lines = set(apt(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]).splitlines())
    if not lines:
        raise RunError("apt knows no packages: run `apt-get update` on a Debian system")
    return "\n".join(sorted(lines)) + "\n"


def _apt(options: Sequence[str], arguments: Sequence[str], folder: Path | None = None) -> str:
    settings = [word for option in ("Debug::NoLocking=1", *options) for word in ("-o", option)]
    # Downloading as the calling user: apt's own user may not read a private folder.
    return apt(["apt-get", "-q", "-y", "-o", "APT::Sandbox::User=root", *settings, *arguments], folder)
