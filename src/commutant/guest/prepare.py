"""Downloads and unpacks Debian kernels: `python -m commutant.guest.prepare`, part of `make setup`.

The one step that needs a network. It does nothing if the kernel is prepared already; `--update` looks for a newer one.
Without a name it prepares the default, with one that package, for `linux:kernel=NAME`: a kernel's, or one that depends
on the current one, such as `linux-image-6.12-amd64`. A package is downloaded by `apt-get download`, which checks its
signature, as any user; nothing is installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from commutant.guest.apt import apt
from commutant.guest.kernel import Kernel, is_package_name, prepared_kernel, set_prepared, unpack
from commutant.support import CommutantError, RunError, UsageError

DEFAULT_PACKAGE = "linux-image-amd64"
"""Debian's package that depends on the current kernel's."""

_OTHERWISE = "; or give linux:kernel=PATH"


def prepare(package: str | None = None, *, update: bool = False) -> Kernel:
    """The kernel of a package (None: the default), downloaded and unpacked if there is none yet, or with `update`.

    Raises RunError if the package cannot be found or downloaded, UsageError if what came is damaged.
    """
    name = package or "default"
    if not is_package_name(name):
        raise UsageError(f"{name!r}: expected the name of a Debian package, such as {DEFAULT_PACKAGE}")
    if not update:
        try:
            if (kernel := prepared_kernel(name)) and kernel.has_all_modules:
                return kernel
        except RunError:
            pass  # damaged: downloaded below, as what an older version has unpacked
    image = image_package(_known(package or DEFAULT_PACKAGE), package or DEFAULT_PACKAGE)
    with tempfile.TemporaryDirectory(prefix="commutant-kernel-") as folder:
        apt(["apt-get", "-q", "download", image], Path(folder), otherwise=_OTHERWISE)
        packages = list(Path(folder).glob("*.deb"))
        if len(packages) != 1:
            raise RunError(f"apt-get download {image}: expected one package file, found {len(packages)}")
        kernel = unpack(packages[0], packages[0].name)
    set_prepared(name, kernel)
    return kernel


def _known(package: str) -> str:
    return apt(["apt-cache", "depends", package], otherwise=_OTHERWISE)


def image_package(depends: str, package: str) -> str:
    """The kernel package among the dependencies that `apt-cache depends` prints of `package`, or itself if it depends
    on none; raises RunError if apt knows nothing."""
    lines = depends.splitlines()
    for line in lines:
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    if len(lines) > 1:
        return package
    raise RunError(
        f"apt knows no kernel that {package} stands for: run `apt-get update` on a Debian system, "
        "or give a kernel of your own: linux:kernel=PATH"
    )


def main(arguments: list[str]) -> int:
    """Prepares a kernel and prints its release; the exit code is that of the command line."""
    names = [argument for argument in arguments if argument != "--update"]
    if len(names) > 1 or any(name.startswith("-") for name in names):
        print("usage: python -m commutant.guest.prepare [--update] [PACKAGE]", file=sys.stderr)
        return 2
    try:
        kernel = prepare(*names, update="--update" in arguments)
    except CommutantError as error:
        print(f"prepare: {error}", file=sys.stderr)
        return error.exit_code
    print(f"Linux {kernel.release} ({kernel.source})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
