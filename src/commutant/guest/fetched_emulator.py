"""The emulator of programs where the distribution's takes no plugins: Debian 12's, as files in the cache folder.

Debian 13 builds its qemu-user without plugins. So two files are taken out of two packages of Debian 12: the emulator,
and the one library that later releases do not have. The packages are those of a version that is known by its SHA-256,
so anyone who delivers them cannot choose what they hold, and no list of another release is needed: they come from the
archives that this system's apt knows. Nothing is installed, and no script of a package runs.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from commutant.guest.apt import apt
from commutant.guest.emulator import Emulator, answer_of, judge
from commutant.guest.package import open_package
from commutant.support import Budget, RunError, UsageError, replace_file

PAGE = "docs/reference/systems.md"
"""Where it says how to build one."""

_HELPER = "/usr/lib/apt/apt-helper"
_LOADER = "/lib64/ld-linux-x86-64.so.2"
_PACKAGE_LIMIT_BYTES = 64 << 20
_UNPACKED_LIMIT_BYTES = 256 << 20
"""Of one package: qemu-user has the emulators of all processors, 110 MB."""
_UNPACK_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of a package: where an archive has the package, the file's path in it, and the SHA-256 of both."""

    package: str
    version: str
    place: str
    package_sha256: str
    member: str
    sha256: str

    @property
    def name(self) -> str:
        """The name that the file is kept under."""
        return self.member.rpartition("/")[2]


WANTED = (
    Wanted(
        "qemu-user",
        "1:7.2+dfsg-7+deb12u18+b3",
        "pool/main/q/qemu/qemu-user_7.2+dfsg-7+deb12u18+b3_amd64.deb",
        "02a7d6a2675a12dd7fdd474924295552470c0c933e0b543975887f493a84219f",
        "usr/bin/qemu-x86_64",
        "dfee81b0b7c5b943a0dc52308bccda8fcfcdf2e92f6563bbdac66e1d3eee118a",
    ),
    Wanted(
        "libcapstone4",
        "4.0.2-5",
        "pool/main/c/capstone/libcapstone4_4.0.2-5_amd64.deb",
        "41277f0388184f6e3b9fc02eda3184afbc999314b25b77ed75e8049428bdfe5e",
        "usr/lib/x86_64-linux-gnu/libcapstone.so.4",
        "faae0495d13e17b65ef579358dada70ee98b609b575d5a56951e073280660acd",
    ),
)
"""The emulator first."""


def folder() -> Path:
    """Where the files are kept; those of another choice have another folder."""
    key = hashlib.sha256("".join(wanted.sha256 for wanted in WANTED).encode()).hexdigest()[:16]
    return platformdirs.user_cache_path("commutant") / "emulator" / key


def kept_emulator() -> Emulator | None:
    """The emulator in the cache folder; None if there is none. Raises RunError if it is damaged or does not start."""
    if not folder().is_dir():
        return None
    for wanted in WANTED:
        path = folder() / wanted.name
        try:
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}; run `commutant prepare --emulator`") from None
        if sha256 != wanted.sha256:
            raise RunError(f"{path}: not what was put there (its SHA-256 differs); run `commutant prepare --emulator`")
    return _judged(folder())


def _judged(files: Path) -> Emulator:
    """The emulator among files. The loader that starts it finds its library: a variable of the environment would reach
    the program that is emulated, and a script in front cannot have the recorder of locks loaded before it."""
    path = str(files / WANTED[0].name)
    loader = (_LOADER, "--library-path", str(files))
    advice = "; install the library that is missing (packages libglib2.0-0, libgnutls30, libnuma1, liburing2, zlib1g)"
    emulator = judge(path, answer_of([*loader, path], "--version", advice), loader)
    if "-plugin" not in answer_of(emulator.command, "-h", advice):
        raise RunError(f"{path}: built without plugins")
    return emulator


def fetch_emulator() -> Emulator:
    """Brings the emulator into the cache folder, all or nothing, and again if it is there.

    Raises RunError if it cannot be had, is not the one that is known, or does not run here.
    """
    archives = _archives()
    place = folder()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{place.name}.", suffix=".part", dir=place.parent))
    except OSError as error:
        raise RunError(f"{place.parent}: {error.strerror}; make it writable, or set XDG_CACHE_HOME") from None
    try:
        for wanted in WANTED:
            path, package = part / wanted.name, _package(wanted, archives, part)
            replace_file(path, _content(package, wanted))
            path.chmod(0o755)
            package.unlink()
        _judged(part)
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    except OSError as error:
        raise RunError(f"{place}: cannot be written: {error.strerror}; free 100 MiB there") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return _judged(place)


def _archives() -> list[str]:
    """The archives of Debian that this system's apt knows, each once."""
    otherwise = f"; {PAGE} says how to build an emulator"
    form = "$(ORIGIN) $(REPO_URI)"
    lines = apt(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], otherwise=otherwise)
    told = [line.partition(" ") for line in lines.splitlines()]
    archives = list(dict.fromkeys(uri for origin, _, uri in told if origin == "Debian"))
    if not archives:
        raise RunError(f"apt knows no archive of Debian: run `apt-get update` on a Debian system{otherwise}")
    return archives


def _package(wanted: Wanted, archives: list[str], part: Path) -> Path:
    """The file of a package, downloaded from the first archive that has it, and compared with what is known of it."""
    path, reasons = part / f"{wanted.package}.deb", []
    for archive in archives:
        command = ["prlimit", f"--fsize={_PACKAGE_LIMIT_BYTES}", "--core=0", "--", _HELPER]
        command += ["-o", "APT::Sandbox::User=root", "download-file", archive + wanted.place, str(path)]
        try:
            apt(command)
            break
        except RunError as error:
            reasons.append(str(error).partition("failed: ")[2] or str(error))
            path.unlink(missing_ok=True)
    else:
        raise RunError(
            f"{wanted.package} {wanted.version} cannot be fetched from {', '.join(archives)} ({reasons[0][:120]}); if "
            f"the archives no longer have it, {PAGE} says how to build an emulator"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != wanted.package_sha256:
        raise RunError(
            f"{archive}{wanted.place}: not the package that is known (SHA-256 {found[:16]}..., expected "
            f"{wanted.package_sha256[:16]}...); nothing of it was used"
        )
    return path


def _content(package: Path, wanted: Wanted) -> bytes:
    budget = Budget(f"{wanted.package} {wanted.version}", _UNPACKED_LIMIT_BYTES, _UNPACK_SECONDS)
    try:
        with open_package(package, budget) as archive:
            for member in archive:
                if member.isfile() and member.name.removeprefix("./") == wanted.member:
                    content = archive.read(member)
                    if hashlib.sha256(content).hexdigest() == wanted.sha256:
                        return content
    except UsageError as error:
        raise RunError(str(error)) from None
    raise RunError(f"{wanted.package} {wanted.version}: holds no {wanted.member} such as is known")
