"""Downloads and unpacks Debian's kernel: `python -m commutant.targets.linux.prepare`, part of `make setup`.

The one step that needs a network. It does nothing if a kernel is prepared already; `--update` looks for a newer one.
The package is downloaded by `apt-get download`, which checks its signature, as any user; nothing is installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from commutant.errors import CommutantError, RunError
from commutant.targets.linux.kernel import Kernel, default_kernel, set_default, unpack

META_PACKAGE = "linux-image-amd64"
"""Debian's package that depends on the current kernel's."""

_DOWNLOAD_SECONDS = 600.0


def prepare(update: bool = False) -> Kernel:
    """The default kernel, downloaded and unpacked if there is none yet (or with `update`, whatever is there).

    Raises RunError if the package cannot be found or downloaded, UsageError if what came is damaged.
    """
    if not update:
        try:
            return default_kernel()
        except RunError:
            pass  # none yet, or damaged: downloaded below
    package = package_name(_run(["apt-cache", "depends", META_PACKAGE]))
    with tempfile.TemporaryDirectory(prefix="commutant-kernel-") as folder:
        _run(["apt-get", "-q", "download", package], folder)
        packages = list(Path(folder).glob("*.deb"))
        if len(packages) != 1:
            raise RunError(f"apt-get download {package}: expected one package file, found {len(packages)}")
        kernel = unpack(packages[0], packages[0].name)
    set_default(kernel)
    return kernel


def package_name(depends: str) -> str:
    """The kernel package among the dependencies that `apt-cache depends` prints; raises RunError."""
    for line in depends.splitlines():
        kind, _, name = line.strip().partition(": ")
        if kind == "Depends" and name.startswith("linux-image-"):
            return name
    raise RunError(
        f"apt knows no kernel behind {META_PACKAGE}: run `apt-get update` on a Debian system, "
        "or give a kernel of your own: linux:kernel=PATH"
    )


def _run(command: list[str], folder: str | None = None) -> str:
    try:
        answer = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False
        )
    except FileNotFoundError:
        raise RunError(f"{command[0]} is not there: expected a Debian system; or give linux:kernel=PATH") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"{' '.join(command)}: {error}") from None
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split())[-300:]
        raise RunError(f"{' '.join(command)} failed: {reason or f'exit code {answer.returncode}'}")
    return answer.stdout


def main(arguments: list[str]) -> int:
    """Prepares the kernel and prints its release; the exit code is that of the command line."""
    if arguments not in ([], ["--update"]):
        print("usage: python -m commutant.targets.linux.prepare [--update]", file=sys.stderr)
        return 2
    try:
        kernel = prepare(update=bool(arguments))
    except CommutantError as error:
        print(f"prepare: {error}", file=sys.stderr)
        return error.exit_code
    print(f"Linux {kernel.release} ({kernel.source})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
