"""`make lock`: writes the lock files again from what pyproject.toml and the crates' manifests ask for.

Python packages are pinned by version and hash for CPython 3.11 and newer on x86-64 Linux, wheels only, so that `make
setup` runs no code of a package to install it. The files name no registry: pip takes the one that the user configured.
"""

from __future__ import annotations

import shutil
import sys

from steps import ROOT, StepFailed, run, timed

HEADER = "# Made by `make lock` from pyproject.toml; do not edit.\n"


def lock_python(name: str, *selection: str) -> None:
    """Resolves the selected dependencies again and writes them to the lock file of this name."""
    uv = shutil.which("uv")
    if uv is None:
        raise StepFailed("uv is not on the path; it is needed to write lock files, not to use them")
    options = ["--quiet", "--no-header", "--upgrade", "--universal", "--python-version", "3.11"]
    checked = ["--generate-hashes", "--only-binary", ":all:"]
    resolved = run([uv, "pip", "compile", *options, *checked, *selection])
    (ROOT / name).write_text(HEADER + resolved.replace(str(ROOT) + "/", ""))


def main() -> int:
    """Writes all lock files; returns the exit code."""
    project = str(ROOT / "pyproject.toml")
    try:
        with timed("Python packages", "locked"):
            lock_python("requirements.lock", project)
            lock_python("requirements-dev.lock", project, "--group", "dev")
            lock_python("requirements-fuzz.lock", "--group", f"{project}:fuzz")
            lock_python("requirements-mutants.lock", "--group", f"{project}:mutants")
        with timed("Rust crates", "locked"):
            run(["cargo", "update"])
            # What the fuzzer runs has the workspace's versions; cargo adds those of libFuzzer.
            shutil.copy(ROOT / "Cargo.lock", ROOT / "fuzz" / "Cargo.lock")
            run(["cargo", "metadata", "--format-version", "1", "--manifest-path", ROOT / "fuzz" / "Cargo.toml"])
    except StepFailed as failure:
        print(f"{failure}\nno lock file was written in this step", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
