"""A fresh Debian, and in a fresh clone of the last commit there what a stranger does first.

    sudo python3 scripts/fresh_system.py trixie                 # make demo
    sudo python3 scripts/fresh_system.py bookworm make test
    sudo python3 scripts/fresh_system.py --folder /var/tmp/trixie --keep trixie make demo

The system is a folder that mmdebstrap makes of nothing but the packages that the README asks for (`--kernels` copies
this user's prepared kernels into it, so that two systems check one kernel). The archives are those that this machine's
apt knows, with the other release; its own certificates are taken along. What is mounted for the command goes with it,
and so does the folder, unless `--keep` is given; then the next run goes on in it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from steps import ROOT, StepFailed, run, say

RELEASES = ("bookworm", "trixie", "forky")
PACKAGES = ("ca-certificates", "git", "make", "python3")
"""What the README asks for; Rust comes by `make setup` where there is none."""

CLONE = "/srv/commutant"
CERTIFICATES = Path("/usr/local/share/ca-certificates")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def sources(release: str, targets: str) -> list[str]:
    """The lines of apt for a release, from what `apt-get indextargets` says of this machine: origin, archive, release.

    Raises StepFailed if it knows no archive of Debian.
    """
    lines = []
    for target in targets.splitlines():
        origin, uri, known = target.split(" ")[:3]
        if origin != "Debian" or known.endswith("-backports"):
            continue
        suffix = next((end for end in ("-updates", "-security") if known.endswith(end)), "")
        lines.append(f"deb [signed-by={KEYRING}] {uri} {release}{suffix} main")
    if not lines:
        raise StepFailed("apt knows no archive of Debian: run `apt-get update` on a Debian system")
    return list(dict.fromkeys(lines))


def make_system(folder: Path, release: str, packages: Sequence[str] = PACKAGES) -> None:
    """Makes a system in a folder that is empty or not there, with these packages. Raises StepFailed."""
    targets = run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE)", "Created-By: Packages"])
    wanted = [*([f"--include={','.join(packages)}"] if packages else []), "--variant=minbase"]
    run(["mmdebstrap", *wanted, release, folder, *sources(release, targets)])
    if CERTIFICATES.is_dir():
        shutil.copytree(CERTIFICATES, folder / CERTIFICATES.relative_to("/"), dirs_exist_ok=True)
    if CERTIFICATES.is_dir() and "ca-certificates" in packages:
        run(inside(folder, ["update-ca-certificates"], "/"))


def clone(folder: Path) -> None:
    """Puts a clone of the last commit into the system, in place of an older one, whose builds stay."""
    there = folder / CLONE.lstrip("/")
    safe = ["git", "-c", "safe.directory=*"]
    if there.exists():
        run([*safe, "-C", there, "fetch", "--quiet", ROOT, "HEAD"])
        run([*safe, "-C", there, "reset", "--quiet", "--hard", "FETCH_HEAD"])
    else:
        run([*safe, "clone", "--quiet", "--no-hardlinks", ROOT, there])


def copy_kernels(folder: Path) -> None:
    """Copies the kernels that this user has prepared."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "commutant" / "kernels"
    if not cache.is_dir():
        raise StepFailed(f"no kernels in {cache}: run `make setup`")
    shutil.copytree(cache, folder / "root" / ".cache" / "commutant" / "kernels", dirs_exist_ok=True)


def inside(folder: Path, command: Sequence[str], place: str = CLONE) -> list[str | Path]:
    """The command that runs another in the system; what is mounted for it is seen by it alone, and ends with it.

    The system's folder becomes the root of all mounts, as on a machine: who has merely changed his root can make no
    namespace of users (`create_user_ns` in Linux), nor make that root private.
    """
    prepare = (
        'mount --rbind "$1" "$1" && '
        'mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys" && mount -t proc proc "$1/proc" && '
        'mount -t tmpfs tmpfs "$1/tmp" && cp -L /etc/resolv.conf "$1/etc/resolv.conf" && '
        'cd "$1" && mkdir -p .before && pivot_root . .before && exec chroot . '
        "env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "
        'LANG=C.UTF-8 TERM="$TERM" PIP_CERT=/etc/ssl/certs/ca-certificates.crt '
        'sh -c "umount --lazy /.before && rmdir /.before && cd $2 && $3"'
    )
    unshared = ["unshare", "--mount", "--propagation", "private", "--"]
    return [*unshared, "sh", "-c", prepare, "sh", str(folder), shlex.quote(place), shlex.join(command)]


def main(arguments: list[str]) -> int:
    """Makes the system and runs the command; the exit code is the command's."""
    parser = argparse.ArgumentParser(description="Runs a command in a fresh clone in a fresh Debian.")
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("--folder", type=Path, help="where the system is made [default: a new folder, removed after]")
    parser.add_argument("--keep", action="store_true", help="leave the system there, and go on in one that is there")
    parser.add_argument("--kernels", action="store_true", help="copy this user's prepared kernels into it")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="[default: make demo]")
    given = parser.parse_args(arguments)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        print("fresh system: expected root, and mmdebstrap (apt-get install mmdebstrap)", file=sys.stderr)
        return 2
    if given.keep and given.folder is None:
        parser.error("--keep needs --folder")
    folder = given.folder or Path(tempfile.mkdtemp(prefix="commutant-system-"))
    command = given.command or ["make", "demo"]
    try:
        started = time.monotonic()
        if not (folder / "etc").exists():
            make_system(folder, given.release)
            say("fresh system", f"{given.release} in {folder}: {time.monotonic() - started:.1f} s")
        clone(folder)
        if given.kernels:
            copy_kernels(folder)
        started = time.monotonic()
        status = subprocess.run([str(word) for word in inside(folder, command)], check=False).returncode
        say("fresh system", f"`{shlex.join(command)}` returned {status} after {time.monotonic() - started:.1f} s")
        return status
    except StepFailed as failure:
        print(f"fresh system: {failure}", file=sys.stderr)
        return 1
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
