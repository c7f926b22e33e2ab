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


@dataclass(frozen=True)
class Toolchain:
    """A cargo on the path that is new enough; `host` is the platform triple that it builds for."""

    cargo: str
    version: str
    host: str

    @classmethod
    def find(cls) -> Toolchain:
        """The toolchain on the path. Raises StepFailed if there is none, or it is too old, or for other hardware."""
        minimum = minimum_version()
        advice = f"Rust {minimum} or newer is needed (Debian 12's own is older): install it with rustup, then run again"
        cargo = shutil.which("cargo")
        if cargo is None or shutil.which("rustc") is None:
            raise StepFailed(f"cargo and rustc are not on the path. {advice}")
        version = run(["rustc", "--version", "--verbose"])
        release = re.search(r"^release: (\d+)\.(\d+)", version, re.MULTILINE)
        host = re.search(r"^host: (\S+)", version, re.MULTILINE)
        if release is None or host is None:
            raise StepFailed(f"`rustc --version --verbose` prints no release and host:\n{version}")
        major, minor = (int(part) for part in minimum.split(".")[:2])
        if (int(release[1]), int(release[2])) < (major, minor):
            raise StepFailed(f"rustc is {release[1]}.{release[2]}. {advice}")
        if host[1] != "x86_64-unknown-linux-gnu":
            raise StepFailed(f"the tracer is for x86-64 Linux with glibc; this toolchain builds for {host[1]}")
        return cls(cargo, version, host[1])

    def build(self, crate: str, kind: str, *rustc_flags: str) -> Path:
        """Builds the `bin` or `cdylib` of a crate for release, named by its folder below crates/; returns its path.

        The flags reach the last rustc alone. So they hold whatever RUSTFLAGS and the user's cargo configuration say,
        and the crates underneath are not built a second time.
        """
        manifest = ROOT / "crates" / crate / "Cargo.toml"
        target = "--bins" if kind == "bin" else "--lib"
        argv = [self.cargo, "rustc", "--release", "--locked", "--offline", "--manifest-path", str(manifest), target]
        output = run([*argv, "--message-format=json-render-diagnostics", "--", *rustc_flags])
        for line in output.splitlines():
            message = json.loads(line)
            if message.get("reason") == "compiler-artifact" and message["manifest_path"] == str(manifest):
                if kind == "bin" and message.get("executable"):
                    return Path(message["executable"])
                if kind in message["target"]["kind"]:
                    return next(Path(name) for name in message["filenames"] if name.endswith(".so"))
        raise StepFailed(f"cargo built no {kind} in crates/{crate}")
