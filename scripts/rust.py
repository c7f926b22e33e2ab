"""The Rust toolchain that builds the workspace: found, checked against the stated minimum, asked for products."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from steps import ROOT, StepFailed, run


def minimum_version() -> str:
    """The `rust-version` that Cargo.toml states for the workspace."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        version: str = tomllib.load(file)["workspace"]["package"]["rust-version"]
    return version


FOR_BROWSERS = ("rustc-web", "cargo-web", "rust-web-clippy", "rustfmt-web")
"""The toolchain that Debian 12 and 13 keep new enough for browsers. Its packages exclude rustc's and rustup's."""
OF_THE_RELEASE = ("rustc", "cargo", "rust-clippy", "rustfmt")
"""The toolchain of a release itself: new enough in Debian's testing."""

_ADVICE = "install it with rustup (Debian's package rustc is older), then run again"


def packages_of_rust() -> tuple[str, ...]:
    """The packages to install for a toolchain: none if one is on the path that fits.

    Raises StepFailed if there is one that does not, which is not for us to replace, or if none that fits can be had.
    """
    if shutil.which("rustc") or shutil.which("cargo") or shutil.which("rustup"):
        Toolchain.find()
        return ()
    if shutil.which("apt-cache") is None:
        return ()  # no Debian: what is missing is said with all else, once it is looked for
    known = run(["env", "LC_ALL=C", "apt-cache", "policy", FOR_BROWSERS[0], OF_THE_RELEASE[0]])
    found = re.findall(r"^(\S+):\n(?: .*\n)*?  Candidate: (\d+)\.(\d+)", known, re.MULTILINE)
    candidates = {name: (int(major), int(minor)) for name, major, minor in found}
    for packages in (FOR_BROWSERS, OF_THE_RELEASE):
        if candidates.get(packages[0], (0, 0)) >= _minimum():
            return packages
    if candidates:
        offered = " and ".join(f"{name} {major}.{minor}" for name, (major, minor) in candidates.items())
        raise StepFailed(
            f"rustc and rustup are not there, and apt has {offered}; Rust "
            f"{minimum_version()} or newer is needed: add the release's security archive to /etc/apt, or {_ADVICE}"
        )
    return FOR_BROWSERS


def _minimum() -> tuple[int, int]:
    major, minor = (int(part) for part in minimum_version().split(".")[:2])
    return major, minor


@dataclass(frozen=True)
class Toolchain:
    """A cargo on the path that is new enough; `host` is the platform triple that it builds for."""

    cargo: str
    version: str
    host: str

    @classmethod
    def find(cls) -> Toolchain:
        """The toolchain on the path. Raises StepFailed if there is none, or it is too old, or for other hardware."""
        advice = f"Rust {minimum_version()} or newer is needed: {_ADVICE}"
        cargo = shutil.which("cargo")
        if cargo is None or shutil.which("rustc") is None:
            raise StepFailed(f"cargo and rustc are not on the path. {advice}")
        version = run(["rustc", "--version", "--verbose"])
        release = re.search(r"^release: (\d+)\.(\d+)", version, re.MULTILINE)
        host = re.search(r"^host: (\S+)", version, re.MULTILINE)
        if release is None or host is None:
            raise StepFailed(f"`rustc --version --verbose` prints no release and host:\n{version}")
        if (int(release[1]), int(release[2])) < _minimum():
            raise StepFailed(f"rustc is {release[1]}.{release[2]}. {advice}")
        if host[1] != "x86_64-unknown-linux-gnu":
            raise StepFailed(f"the tracer is for x86-64 Linux with glibc; this toolchain builds for {host[1]}")
        return cls(cargo, version, host[1])

    def build(self, crate: str, kind: str, *rustc_flags: str, cfg: str | None = None) -> Path:
        """Builds the `bin` or `cdylib` of a crate for release, named by its folder below crates/; returns its path.

        The flags reach the last rustc alone. So they hold whatever RUSTFLAGS and the user's cargo configuration say,
        and the crates underneath are not built a second time. `cfg` reaches them all, in a target folder of its own.
        """
        manifest = ROOT / "crates" / crate / "Cargo.toml"
        target = "--bins" if kind == "bin" else "--lib"
        argv = [self.cargo, "rustc", "--release", "--locked", "--offline", "--manifest-path", str(manifest), target]
        apart = ["--target-dir", str(ROOT / "target" / cfg.replace("_", "-"))] if cfg else []
        env = {"RUSTFLAGS": f"--cfg {cfg}"} if cfg else None
        output = run([*argv, *apart, "--message-format=json-render-diagnostics", "--", *rustc_flags], env=env)
        for line in output.splitlines():
            message = json.loads(line)
            if message.get("reason") == "compiler-artifact" and message["manifest_path"] == str(manifest):
                if kind == "bin" and message.get("executable"):
                    return Path(message["executable"])
                if kind in message["target"]["kind"]:
                    return next(Path(name) for name in message["filenames"] if name.endswith(".so"))
        raise StepFailed(f"cargo built no {kind} in crates/{crate}")
