"""Builds the container of `Containerfile` without a registry of images, and runs the main job in it.

    python scripts/container.py                 Debian 13
    python scripts/container.py 12              Debian 12
    python scripts/container.py 13 -- OPTION... what buildah is to be given besides, such as --volume FROM:TO:ro

The base is made from Debian's own packages by mmdebstrap, as debian:13 is. All is done by buildah in a chroot, so that
no container engine has to run; images lie in `target/container`. Needs Debian's packages buildah and mmdebstrap.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from steps import ROOT, StepFailed, run, say, stream, timed

FOLDER = ROOT / "target" / "container"
RELEASES = {"12": "bookworm", "13": "trixie"}
STORE = ["--root", str(FOLDER / "images"), "--runroot", str(FOLDER / "run")]
CHROOT = ["--isolation", "chroot"]


def base(release: str) -> str:
    """Makes an image of the release's smallest system, unless it is there; returns its name."""
    name = f"localhost/debian:{release}"
    if name in run(["buildah", *STORE, "images", "--format", "{{.Name}}:{{.Tag}}"]).split():
        return name
    archive = FOLDER / f"{release}.tar"
    with timed("base", f"Debian {release}'s smallest system made"):
        run(["mmdebstrap", "--quiet", "--variant=minbase", RELEASES[release], archive])
        recipe = FOLDER / "Containerfile.base"
        recipe.write_text(f"FROM scratch\nADD {archive.name} /\n")
        run(["buildah", *STORE, "build", *CHROOT, "--quiet", "--tag", name, "--file", recipe, FOLDER])
        archive.unlink()
    return name


def main(arguments: Sequence[str]) -> int:
    """Makes base and image, and runs the image's command; returns the exit code."""
    border = arguments.index("--") if "--" in arguments else len(arguments)
    own, options = arguments[:border], arguments[border + 1 :]
    release = own[0] if own else "13"
    if len(own) > 1 or release not in RELEASES:
        expected = " or ".join(RELEASES)
        print(f"usage: container.py [{expected}] [-- OPTION ...], not {' '.join(arguments)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    image = f"localhost/commutant:{release}"
    try:
        found = base(release)
        build = ["build", *CHROOT, "--layers", "--build-arg", f"BASE={found}", "--tag", image, *options]
        with timed("image", f"Commutant set up on Debian {release}"):
            stream(["buildah", *STORE, *build, ROOT])
        container = run(["buildah", *STORE, "from", image]).strip()
        try:
            stream(["buildah", *STORE, "run", *CHROOT, *options, container, "--", "make", "demo"])
        finally:
            run(["buildah", *STORE, "rm", container])
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    say("container", f"`make demo` passed on Debian {release}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
