"""`make install`: builds ScaleFS for C and installs header, libraries and a file for pkg-config.

```
PREFIX/include/scalefs.h
PREFIX/lib/libscalefs_c.a
PREFIX/lib/libscalefs_c.so -> libscalefs_c.so.0 -> libscalefs_c.so.0.2.0
PREFIX/lib/pkgconfig/scalefs.pc
```
All are put together aside and then moved to their places, so that a build that fails leaves what was there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from rust import Toolchain
from steps import ROOT, StepFailed, run

_CRATE = ROOT / "crates" / "file-system" / "scalefs-c"
_NAME = "libscalefs_c"


def version() -> str:
    """The version of the library, that of the workspace."""
    for line in (ROOT / "Cargo.toml").read_text().splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise StepFailed("Cargo.toml states no version of the workspace")


def soname(of_version: str) -> str:
    """What programs that were linked with a version look for when they start: nothing is taken away within one."""
    return f"{_NAME}.so.{of_version.split('.')[0]}"


def description(prefix: str, of_version: str) -> str:
    """What pkg-config reads."""
    # pkg-config takes a blank for the end of a word.
    quoted = prefix.replace("\\", "\\\\").replace(" ", "\\ ")
    return f"""prefix={quoted}
includedir=${{prefix}}/include
libdir=${{prefix}}/lib

Name: scalefs
Description: A POSIX file system in memory that shares no cache line where POSIX commutes
Version: {of_version}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -lscalefs_c
Libs.private: -lpthread -lm -ldl
"""


def build(of_version: str) -> tuple[Path, Path]:
    """Builds the static and the shared library; returns their paths. Raises StepFailed if that fails."""
    toolchain = Toolchain.find()
    manifest = ["--manifest-path", str(_CRATE / "Cargo.toml")]
    kinds = ["--lib", "--crate-type", "staticlib,cdylib"]
    flags = ["-Cstrip=debuginfo", f"-Clink-arg=-Wl,-soname,{soname(of_version)}"]
    run([toolchain.cargo, "rustc", "--release", "--locked", "--offline", *manifest, *kinds, "--", *flags])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    return target / f"{_NAME}.a", target / f"{_NAME}.so"


def _place(prefix: str, root: str) -> Path:
    if not Path(prefix).is_absolute():
        raise StepFailed(f"expected an absolute path as PREFIX, such as /usr/local, got {prefix!r}")
    return Path(f"{root}{prefix}") if root else Path(prefix)


def install(prefix: str, root: str = "") -> Path:
    """Installs below `root`, for programs that find it below `prefix`; returns the folder.

    Raises StepFailed if the build fails, the prefix is not absolute, or the folder cannot be written.
    """
    place, of_version = _place(prefix, root), version()
    static, shared = build(of_version)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".scalefs-", dir=place) as aside:
            made = Path(aside)
            (made / "include").mkdir()
            (made / "lib" / "pkgconfig").mkdir(parents=True)
            shutil.copy(_CRATE / "include" / "scalefs.h", made / "include")
            shutil.copy(static, made / "lib")
            full = f"{_NAME}.so.{of_version}"
            shutil.copy(shared, made / "lib" / full)
            (made / "lib" / soname(of_version)).symlink_to(full)
            (made / "lib" / f"{_NAME}.so").symlink_to(soname(of_version))
            (made / "lib" / "pkgconfig" / "scalefs.pc").write_text(description(prefix, of_version))
            for source in sorted(path for path in made.rglob("*") if path.is_symlink() or path.is_file()):
                target = place / source.relative_to(made)
                target.parent.mkdir(parents=True, exist_ok=True)
                if not source.is_symlink():
                    source.chmod(0o644)
                source.replace(target)
    except OSError as error:
        raise StepFailed(
            f"cannot install below {place}: {error.strerror} ({error.filename}); "
            "choose another PREFIX, or run as somebody who may write there"
        ) from error
    return place


def main() -> int:
    """Installs where the command line says; returns the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--prefix", default="/usr/local", help="where programs find it (default: /usr/local)")
    arguments.add_argument("--root", default="", help="a folder that stands for / while it is installed (DESTDIR)")
    given = arguments.parse_args()
    try:
        place = install(given.prefix, given.root)
    except StepFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"installed below {place}; build with: cc ... $(pkg-config --cflags --libs scalefs)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
