"""Programs on ScaleFS in guests: a user without rights, and kernels that this host does not have.

A compiler and make build a small program in a directory that is a tree of `scalefs run`, and in one that is a mount by
FUSE. All they leave must be what they leave on tmpfs, bit by bit.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from commutant.guest import Kernel, default_kernel
from commutant.guest.prepare import prepare
from tests.scalefs.guest_image import GuestImage, run_in_guest

ROOT = Path(__file__).parents[2]
NEWER = "linux-image-6.12-amd64"
SECONDS = 550.0
"""A guest takes some twelve of processor time; what else the machine does is not ours to know."""

SOURCES = {
    "Makefile": "o = main.o one.o two.o\np: $(o)\n\tgcc -o $@ $(o)\n",
    "main.c": "int puts(const char *), one(void), two(void);\n"
    'int main(void) { puts("built"); return one() + two() - 3; }\n',
    "one.c": "int one(void) { return 1; }\n",
    "two.c": "int two(void) { return 2; }\n",
}

SCRIPT = """
uname -r
chown -R 1000:1000 /srv /mnt/build /mnt/fuse
user="setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set -all --inh-caps -all"
same() { for name in main.o one.o two.o p; do cmp /srv/tmpfs/$name $1/$name; done; }

$user sh -euc 'cp -r /srv/source /srv/tmpfs; cd /srv/tmpfs; make -j2'

$user sh -euc 'cd /srv/source; scalefs run --at /mnt/build --from . --to /srv/run -- make -j2'
$user /srv/run/p
same /srv/run
test ! -e /mnt/build/p
echo "run: as on tmpfs"

scalefs mount --size 64M --from /srv/source --to /srv/fuse /mnt/fuse
$user sh -euc 'cd /mnt/fuse; make -j2; ./p'
same /mnt/fuse
scalefs unmount /mnt/fuse
same /srv/fuse
echo "mount: as on tmpfs"
"""


@pytest.fixture(scope="module")
def program() -> Path:
    """The program `scalefs`."""
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    build = [cargo, "build", "--quiet", "--locked", "--offline", "--package", "scalefs-program"]
    subprocess.run(build, cwd=ROOT, check=True)
    return ROOT / "target" / "debug" / "scalefs"


def build_in_guest(program: Path, kernel: Kernel) -> str:
    """What the console shows of a guest in which all was built as on tmpfs."""
    image = GuestImage()
    image.program(program, "usr/bin/scalefs")
    for name, text in SOURCES.items():
        image.file(f"srv/source/{name}", text.encode())
    for name in ("mnt/build", "mnt/fuse"):
        image.directory(name)
    for name in kernel.modules_for(["fuse"]):
        image.module(name, kernel.read_module(name))
    return run_in_guest(kernel, image.finish(SCRIPT), SECONDS)


def check(console: str, release: str) -> None:
    """Whether a guest of this release has come to the end of both."""
    lines = console.splitlines()
    assert any(line.startswith(release) for line in lines)
    assert [line for line in lines if line.endswith("as on tmpfs")] == ["run: as on tmpfs", "mount: as on tmpfs"]
    assert lines.count("built") == 2


def test_a_user_without_rights_builds_a_program(program: Path) -> None:
    check(build_in_guest(program, default_kernel()), "6.1.")


@pytest.mark.long
def test_so_it_is_with_a_newer_kernel(program: Path) -> None:
    check(build_in_guest(program, prepare(NEWER)), "6.12.")
