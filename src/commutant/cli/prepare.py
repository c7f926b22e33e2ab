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
    ),
)
@click.argument("package", required=False)
@click.option("--update", is_flag=True, help="Look for a newer one, though one is there.")
def command(package: str | None, update: bool) -> int:
    """Downloads PACKAGE, a Debian kernel's [default: linux-image-amd64], and unpacks it into the cache folder.

    `apt-get download` checks its signature; nothing is installed, and no rights are needed. Afterwards
    `--target linux` boots the default, `--target linux:kernel=PACKAGE` another one, without a network.
    """
    from commutant.guest import prepare_kernel

    console.message(f"looking for {package or 'linux-image-amd64'} with apt")
    kernel = prepare_kernel(package, update=update)
    console.write(f"Linux {kernel.release} ({kernel.source}): {console.one_line(str(kernel.vmlinux.parent))}\n")
    return 0
