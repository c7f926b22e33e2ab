"""`commutant prepare`: download and unpack the kernel that the target `linux` boots."""

from __future__ import annotations

import click

from commutant.cli import console, options


@click.command(
    "prepare",
    short_help="Download and unpack a Debian kernel to run tests on.",
    epilog=options.examples(
        "commutant prepare",
        "commutant prepare linux-image-6.12-amd64",
        "commutant prepare --update",
        "commutant prepare --emulator",
    ),
)
@click.argument("package", required=False)
@click.option("--update", is_flag=True, help="Look for a newer one, though one is there.")
@click.option("--emulator", is_flag=True, help="Fetch Debian 12's emulator of programs, which takes plugins, instead.")
def command(package: str | None, update: bool, emulator: bool) -> int:
    """Downloads PACKAGE, a Debian kernel's [default: linux-image-amd64], and unpacks it into the cache folder.

    `apt-get download` checks its signature; nothing is installed, and no rights are needed. Afterwards
    `--target linux` boots the default, `--target linux:kernel=PACKAGE` another one, without a network.

    With --emulator: where the system's qemu-x86_64 takes no plugins (Debian 13), the targets scalefs, library and
    gallery and `locks -- PROGRAM` use one of Debian 12, whose package is known by its SHA-256.
    """
    if emulator:
        return _fetch_emulator(package, update)
    from commutant.guest import prepare_kernel

    console.message(f"looking for {package or 'linux-image-amd64'} with apt")
    kernel = prepare_kernel(package, update=update)
    console.write(f"Linux {kernel.release} ({kernel.source}): {console.one_line(str(kernel.vmlinux.parent))}\n")
    return 0


def _fetch_emulator(package: str | None, update: bool) -> int:
    from commutant.guest import fetch_emulator
    from commutant.support import UsageError

    if package is not None or update:
        raise UsageError("--emulator stands alone: expected no package and no --update with it")
    console.message("fetching Debian 12's qemu-user")
    found = fetch_emulator()
    console.write(f"QEMU {found.version}: {console.one_line(found.path)}\n")
    return 0
