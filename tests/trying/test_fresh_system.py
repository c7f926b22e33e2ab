"""`try` in a fresh Debian, a folder that is no mount: a package is tried, looked at, refused, and committed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import fresh_system
import system_packages
from commutant import documents
from commutant.support import artifacts
from commutant.trying import TriedOutcome, TryDocument
from tests.trying.test_document import needs_rights

pytestmark = [pytest.mark.long, needs_rights]

RELEASE = "bookworm"
MOUNTS = (
    'mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && mount -t proc proc "$0/proc" && '
    'cp -L /etc/resolv.conf "$0/etc/resolv.conf" && root=$0 && exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 '
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"'
)


class System:
    """A system in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command with the system's folder as root; mounts that it needs are its own."""
        unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTS, str(self.folder), *command]
        return subprocess.run(unshared, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def tried(self, *arguments: str) -> TryDocument:
        """Runs `try`, and reads what it says."""
        answer = self.run("commutant-try", "--json", *arguments)
        return documents.read(TryDocument, answer.stdout.encode())

    def left(self) -> set[str]:
        """All paths of the system, but those of workspaces."""
        paths = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
        return {path for path in paths if not path.startswith(("root/", "var/log/", "tmp/", "dev/", "proc/", "sys/"))}


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """A fresh one with two packages that are not installed yet; the folder goes with the tests."""
    if shutil.which("mmdebstrap") is None:
        system_packages.install(["mmdebstrap"])
    with tempfile.TemporaryDirectory(prefix="commutant-system-") as name:
        folder = Path(name) / RELEASE
        fresh_system.make_system(folder, RELEASE, packages=())
        shutil.copy2(artifacts.try_path(), folder / "usr/local/bin/commutant-try")
        system = System(folder)
        got = system.run(
            "sh", "-ec", "apt-get update -q; mkdir -m 777 /srv/got; cd /srv/got; apt-get download hello tree"
        )
        assert got.returncode == 0, got.stderr
        for package in ("hello", "tree"):
            (deb,) = folder.glob(f"srv/got/{package}_*.deb")
            deb.rename(folder / "srv" / f"{package}.deb")
        yield system


def test_a_package_is_tried_refused_and_installed(system: System) -> None:
    before = system.left()
    kept = system.tried("-n", "--", "dpkg", "-i", "/srv/hello.deb")
    assert kept.outcome is TriedOutcome.KEPT and kept.exit_code == 0 and kept.directory is not None
    assert system.left() == before
    shown = system.tried("summary", kept.directory)
    changes = {change.path: change.change for change in shown.changes}
    assert changes["/usr/bin/hello"] == "added" and changes["/var/lib/dpkg/status"] == "modified"
    # Somebody installs another package: what dpkg has read of its database is not so any more.
    assert system.run("dpkg", "-i", "/srv/tree.deb").returncode == 0
    refused = system.tried("commit", kept.directory)
    assert refused.outcome is TriedOutcome.REFUSED and refused.exit_code == 1
    conflicts = {conflict.path: conflict for conflict in refused.conflicts}
    assert conflicts["/var/lib/dpkg/status"].to_be_written == "modified"
    assert not (system.folder / "usr/bin/hello").exists()
    # Run again, it rests on what is there now.
    again = system.tried("-y", "--retry", "2", "--", "dpkg", "-i", "/srv/hello.deb")
    assert again.outcome is TriedOutcome.COMMITTED
    assert system.run("hello").stdout == "Hello, world!\n"
    listed = system.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Package}\n", "hello", "tree").stdout
    assert listed.split("\n")[:2] == ["ii hello", "ii tree"]
    assert system.run("dpkg", "--verify", "hello", "tree").stdout == ""


def test_a_package_whose_script_fails_leaves_no_trace(system: System) -> None:
    script = """
        mkdir -p /tmp/bad/DEBIAN /tmp/bad/usr/share/bad; cd /tmp/bad; echo x > usr/share/bad/data
        printf 'Package: bad\\nVersion: 1\\nArchitecture: all\\n' > DEBIAN/control
        printf 'Maintainer: A <a@b.c>\\nDescription: x\\n' >> DEBIAN/control
        printf '#!/bin/sh\\nexit 7\\n' > DEBIAN/postinst; chmod 755 DEBIAN/postinst; dpkg-deb --build . /srv/bad.deb"""
    assert system.run("sh", "-ec", script).returncode == 0
    before = system.left()
    failed = system.tried("-y", "--", "dpkg", "-i", "/srv/bad.deb")
    assert failed.outcome is TriedOutcome.COMMAND_FAILED and failed.exit_code == 1
    assert system.left() == before
    assert system.run("dpkg", "--audit").stdout == ""
