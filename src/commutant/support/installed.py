"""How this package was installed, and so what to tell a user of whose installation something is missing.

In a clone `make setup` builds and downloads what is missing. A wheel holds all that is built; what it cannot hold is
the kernel (`commutant prepare`) and Debian's packages.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CLONE = _PACKAGE.parents[1]


def is_clone() -> bool:
    """Whether this is the source tree, in which `make setup` works."""
    return (_CLONE / "Makefile").is_file() and (_CLONE / "scripts" / "setup.py").is_file()


def build_advice() -> str:
    """What makes built files whole again."""
    return "run `make setup` again" if is_clone() else "install the wheel again (pip install --force-reinstall)"


def kernel_advice() -> str:
    """What downloads and unpacks Debian's kernel."""
    return "run `make setup`" if is_clone() else "run `commutant prepare`"


def package_advice(package: str) -> str:
    """What installs a package of Debian's."""
    return f"run `make setup`, or install Debian's {package}" if is_clone() else f"run `apt-get install {package}`"


def pages_folder() -> Path:
    """Where the pages lie that hints and messages name (`docs/guides/...`): in a wheel, copies of them."""
    return _CLONE if is_clone() else _PACKAGE / "_artifacts"


def annotations_folder() -> Path:
    """Where `commutant_locks.h` lies, with which programs in C and C++ tell of locks of their own."""
    return _headers(_CLONE / "crates" / "locks" / "lock-annotation" / "include")


def marks_folder() -> Path:
    """Where `commutant_scale.h` lies, with which programs in C and C++ mark operations."""
    return _headers(_CLONE / "crates" / "scaling" / "scale-annotation" / "include")


def _headers(of_clone: Path) -> Path:
    return of_clone if is_clone() else _PACKAGE / "_artifacts" / "include"
