"""The Debian packages that Commutant runs on, installed only where the file that is needed from them is missing."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from steps import StepFailed, run, say, timed

COMMANDS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-x86_64": "qemu-user",
    "gcc": "gcc",
    "g++": "g++",
    "cmake": "cmake",
    "pkg-config": "pkg-config",
    "gdb": "gdb",
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
    "groff": "groff-base",
    "xz": "xz-utils",
    "zstd": "zstd",
    "patch": "patch",
    "pahole": "pahole",
    "mke2fs": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
}
"""A command, and the package that brings it: the emulators, compilers and linker, what builds adapters of libraries,
what finds installed ones, the debugger that says where a test hangs, the browser of the page's test, what shows man
pages, what unpacks kernels and their modules, the reader of kernel types that ours is compared with, and what makes
disks for the file systems under test."""

SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
"""Where the commands are looked for: not every user's PATH has the administrator's."""

STATIC_C_LIBRARY = Path("/usr/lib/x86_64-linux-gnu/libc.a")


def missing() -> list[str]:
    """The packages to install, sorted."""
    packages = {package for command, package in COMMANDS.items() if shutil.which(command, path=SEARCHED) is None}
    if "qemu-user" in packages and not _has_plugins(release()):
        packages.remove("qemu-user")  # it would be of no use; a later step fetches another one
    if not STATIC_C_LIBRARY.exists():
        packages.add("libc6-dev")
    if importlib.util.find_spec("ensurepip") is None:
        packages.add("python3-venv")
    return sorted(packages)


def release() -> dict[str, str]:
    """What the system says of itself in os-release(5); nothing if it says nothing."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _has_plugins(values: Mapping[str, str]) -> bool:
    """Whether this system's qemu-user takes plugins: not that of Debian from 13 on."""
    version = values.get("VERSION_ID", "0").partition(".")[0]
    return values.get("ID") != "debian" or (version.isdigit() and 0 < int(version) < 13)


def install_missing(besides: Sequence[str] = ()) -> None:
    """Installs what is missing, and packages besides, with sudo if the user is not root, and says so first.

    Raises StepFailed if that is impossible, with the command that an administrator has to run.
    """
    install([*missing(), *besides])
    importlib.invalidate_caches()
    if still := missing():
        raise StepFailed(f"installed, yet what is needed of {', '.join(still)} is not found; is /usr/bin on the path?")
    if _package_lists_missing():
        raise StepFailed("apt knows no packages, even after `apt-get update`; are there sources in /etc/apt?")


def install(packages: Sequence[str]) -> None:
    """Installs packages, and fetches apt's lists first where it has none. Raises StepFailed as above."""
    fetch_missing_lists()
    if not packages:
        return
    apt = _apt_get(f"apt-get install --no-install-recommends {' '.join(packages)}")
    with timed("system packages", f"installed {', '.join(packages)}"):
        command = [*apt, "install", "--no-install-recommends", *packages]
        try:
            run(command)
        except StepFailed:  # lists that are older than the archive name versions that are gone
            run([*apt, "update"])
            run(command)


def fetch_missing_lists() -> None:
    """Fetches apt's package lists where there are none: what can be had is not known without."""
    if shutil.which("apt-get") is not None and _package_lists_missing():
        refresh_package_lists()


def refresh_package_lists() -> None:
    """Fetches apt's package lists again: older ones name versions that the archive no longer has."""
    apt = _apt_get("apt-get update")
    with timed("system packages", "package lists fetched"):
        run([*apt, "update"])


def _apt_get(wanted: str) -> list[str]:
    """How this user starts apt-get as an administrator; `wanted` is what is to be run, said before sudo asks."""
    if shutil.which("apt-get") is None:
        raise StepFailed(f"this is not Debian (no apt-get); what is needed is what `{wanted}` installs on Debian 13")
    administrator: list[str] = []
    if os.geteuid() != 0:
        if shutil.which("sudo") is None:
            raise StepFailed(f"there is no sudo, and this needs an administrator; have one run `{wanted}`")
        administrator = ["sudo"]
        say("system packages", f"sudo will be asked to run `{wanted}`")
        if subprocess.run(["sudo", "-v"], check=False).returncode != 0:
            raise StepFailed(f"sudo refused; have an administrator run `{wanted}`")
    return [*administrator, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes"]


def _package_lists_missing() -> bool:
    """Whether apt knows no packages, as in a fresh container; without them the kernel cannot be found either."""
    lists = Path("/var/lib/apt/lists")
    return lists.is_dir() and not any("_Packages" in entry.name for entry in lists.iterdir())
