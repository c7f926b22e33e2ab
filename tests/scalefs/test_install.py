"""`make install`: pkg-config finds what it installs, and programs are built with it and run, shared and static."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import install
from steps import StepFailed
from tests.repository.tree import ROOT

GUIDE = (ROOT / "docs" / "guides" / "files.md").read_text()
PROGRAM = GUIDE.split("```c\n")[1].split("```")[0]


def run(*argv: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        [str(word) for word in argv], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which it is installed as for itself, and the file of another program that was there."""
    prefix = tmp_path_factory.mktemp("installed") / "of its own"
    (prefix / "include").mkdir(parents=True)
    (prefix / "include" / "other.h").write_text("kept")
    made = run("make", "install", f"PREFIX={prefix}", "DESTDIR=")
    assert made.returncode == 0, made.stderr
    assert "pkg-config --cflags --libs scalefs" in made.stdout
    yield prefix


def of_pkg_config(prefix: Path, *options: str) -> list[str]:
    """What pkg-config says of the installation: folders with blanks are quoted for a shell."""
    answered = run("pkg-config", *options, "scalefs", PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    assert answered.returncode == 0, answered.stderr
    quoted = run("sh", "-c", f"printf '%s\\n' {answered.stdout.strip()}")
    return quoted.stdout.splitlines()


@pytest.fixture
def built(installed: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The guide's program, built with the options that the test names."""
    source, program = tmp_path / "letter.c", tmp_path / "letter"
    source.write_text(PROGRAM)
    linking, options = request.param
    flags = of_pkg_config(installed, "--cflags", "--libs", *options)
    compiled = run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", *linking, source, "-o", program, *flags)
    assert compiled.returncode == 0, compiled.stderr
    return program


def test_nothing_else_is_installed_and_nothing_is_lost(installed: Path) -> None:
    version = install.version()
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if not path.is_dir()}
    assert files == {
        "include/other.h",
        "include/scalefs.h",
        "lib/libscalefs_c.a",
        "lib/libscalefs_c.so",
        f"lib/{install.soname(version)}",
        f"lib/libscalefs_c.so.{version}",
        "lib/pkgconfig/scalefs.pc",
    }
    assert (installed / "include" / "other.h").read_text() == "kept"
    assert of_pkg_config(installed, "--modversion") == [version]


@pytest.mark.parametrize("built", [((), ())], indirect=True, ids=["shared"])
def test_a_program_is_linked_with_the_shared_library(installed: Path, built: Path) -> None:
    assert run(built).returncode != 0, "it needs the library, which is in no folder that the system looks into"
    ran = run(built, LD_LIBRARY_PATH=str(installed / "lib"))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Dear Bob\ngone\n", "")
    needed = run("readelf", "--dynamic", built).stdout
    assert f"[{install.soname(install.version())}]" in needed


@pytest.mark.parametrize("built", [(("-static",), ("--static",))], indirect=True, ids=["static"])
def test_a_program_is_linked_with_the_static_library(built: Path) -> None:
    ran = run(built)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Dear Bob\ngone\n", "")


def test_the_shared_library_gives_out_the_calls_of_the_header_alone(installed: Path) -> None:
    symbols = run("nm", "--dynamic", "--defined-only", installed / "lib" / "libscalefs_c.so").stdout.split()
    header = (installed / "include" / "scalefs.h").read_text()
    assert "scalefs_truncateat" in symbols
    assert all(symbol.startswith("scalefs_") and f"{symbol}(" in header for symbol in symbols[2::3]), symbols


def test_folders_with_a_root_of_their_own(tmp_path: Path) -> None:
    place = install.install("/opt/scalefs", str(tmp_path))
    assert place == tmp_path / "opt" / "scalefs"
    described = (place / "lib" / "pkgconfig" / "scalefs.pc").read_text()
    assert described.startswith("prefix=/opt/scalefs\n")


@pytest.mark.parametrize("prefix", ["usr/local", ""])
def test_a_prefix_that_is_not_absolute_is_refused(prefix: str) -> None:
    with pytest.raises(StepFailed, match=r"^expected an absolute path as PREFIX, such as /usr/local, got '"):
        install.install(prefix)


def test_a_folder_that_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    made = run("make", "install", f"PREFIX={tmp_path}/file/below")
    assert made.returncode != 0
    assert made.stderr.splitlines()[0].startswith(f"cannot install below {tmp_path}/file/below: Not a directory")
    assert "choose another PREFIX" in made.stderr.splitlines()[0]
