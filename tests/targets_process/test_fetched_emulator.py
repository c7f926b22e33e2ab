"""The emulator of programs that is fetched: what is known by its digest is taken, and each failure is one line."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from commutant.guest import fetched_emulator as fetched
from commutant.guest import find_user_emulator
from commutant.guest.versions import PROGRAMS
from commutant.support import RunError

SOURCE = """
#include <stdio.h>
int used(void);
int main(int count, char **words) {
    puts(words[1][1] == 'h' ? OPTIONS : "qemu-x86_64 version " VERSION);
    return used();
}
"""
LIBRARY = "libcapstone-of-the-test.so.4"
"""Such as no system has."""

WHOLE = {"VERSION": "7.2.22 (Debian 1:7.2)", "OPTIONS": "-plugin file"}


def _program(folder: Path, macros: dict[str, str]) -> Path:
    """An emulator that only tells of itself, and the library that it needs, as files."""
    (folder / "used.c").write_text("int used(void) { return 0; }")
    (folder / "program.c").write_text(SOURCE)
    library = folder / LIBRARY
    subprocess.run(["gcc", "-shared", f"-Wl,-soname,{library.name}", "-o", library, folder / "used.c"], check=True)
    defined = [f'-D{name}="{text}"' for name, text in macros.items()]
    program = folder / PROGRAMS
    subprocess.run(["gcc", *defined, "-o", program, folder / "program.c", library], check=True)
    return program


def _package(folder: Path, name: str, path: str, content: bytes) -> bytes:
    """A package with one file, whose installation would leave a trace."""
    tree = folder / name
    (tree / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody\nDescription: test\n"
    (tree / "DEBIAN" / "control").write_text(control)
    script = tree / "DEBIAN" / "postinst"
    script.write_text(f"#!/bin/sh\ntouch {folder}/installed\n")
    script.chmod(0o755)
    (tree / path).parent.mkdir(parents=True)
    (tree / path).write_bytes(content)
    subprocess.run(["dpkg-deb", "-Zgzip", "--build", tree, folder / f"{name}.deb"], capture_output=True, check=True)
    return (folder / f"{name}.deb").read_bytes()


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class Archive:
    """What apt finds: archives as folders, of which `good` has the packages; nothing reaches a network."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        self.good = folder / "good"
        self.cache = folder / "cache"
        self.tell(f"Debian file:{folder}/gone/", f"Ubuntu file:{folder}/other/", f"Debian file:{self.good}/")
        helper = folder / "apt-helper"
        _script(helper, 'shift 3; cp "${1#file:}" "$2" 2>/dev/null || { echo "E: 404  Not Found" >&2; exit 100; }')
        monkeypatch.setattr(fetched, "_HELPER", str(helper))
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.cache))
        self.hold(WHOLE)

    def tell(self, *lines: str) -> None:
        """Has apt know these archives."""
        (self._folder / "bin").mkdir(exist_ok=True)
        _script(self._folder / "bin" / "apt-get", "\n".join(f"echo '{line}'" for line in lines))

    def hold(self, macros: dict[str, str]) -> None:
        """Packages with an emulator that tells this of itself, and their digests as those that are known."""
        build = self._folder / f"build-{len(list(self._folder.iterdir()))}"
        build.mkdir()
        program = _program(build, macros)
        wanted = []
        for known, file in zip(fetched.WANTED, (program, build / LIBRARY), strict=True):
            content = file.read_bytes()
            member = str(Path(known.member).with_name(file.name))
            package = _package(build, known.package, member, content)
            place = self.good / known.place
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(package)
            digests = [hashlib.sha256(data).hexdigest() for data in (package, content)]
            wanted.append(replace(known, member=member, package_sha256=digests[0], sha256=digests[1]))
        self._monkeypatch.setattr(fetched, "WANTED", tuple(wanted))

    @property
    def installed(self) -> bool:
        """Whether a package's script ran."""
        return any(self._folder.glob("*/installed"))


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """Archives with all that is wanted."""
    return Archive(tmp_path, monkeypatch)


def test_two_files_are_taken_and_start_without_anything_installed(archive: Archive) -> None:
    assert fetched.kept_emulator() is None
    emulator = fetched.fetch_emulator()
    assert emulator.version == "version 7.2.22 (Debian 1:7.2)"
    assert {path.name for path in fetched.folder().iterdir()} == {PROGRAMS, LIBRARY}
    answer = subprocess.run([*emulator.command, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout == "qemu-x86_64 version 7.2.22 (Debian 1:7.2)\n"
    assert not archive.installed
    assert fetched.kept_emulator() == emulator == fetched.fetch_emulator()


def test_the_first_emulator_in_path_that_takes_plugins_is_used_and_else_the_fetched_one(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, options in (("first", "-g port"), ("second", "-plugin file")):
        (tmp_path / name).mkdir()
        _script(tmp_path / name / PROGRAMS, f'[ "$1" = -h ] && echo "{options}" || echo "version 10.0.2"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{tmp_path / 'bin'}:/bin")
    monkeypatch.setattr("commutant.guest.user_emulator._in_path", lambda: iter([str(tmp_path / "first" / PROGRAMS)]))
    with pytest.raises(RunError, match="built without plugins, so it cannot trace; run `commutant prepare --emulator`"):
        find_user_emulator()
    kept = fetched.fetch_emulator()
    assert find_user_emulator() == kept
    monkeypatch.undo()
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    assert find_user_emulator().path == str(tmp_path / "second" / PROGRAMS)


def _other_package(archive: Archive) -> None:
    place = archive.good / fetched.WANTED[0].place
    place.write_bytes(place.read_bytes() + b"x")


def _moved_on(archive: Archive) -> None:
    (archive.good / fetched.WANTED[1].place).unlink()


def _larger(archive: Archive) -> None:
    with (archive.good / fetched.WANTED[0].place).open("r+b") as file:
        file.truncate((64 << 20) + 1)


def _cache_is_a_file(archive: Archive) -> None:
    archive.cache.write_text("")


def _library_is_missing(archive: Archive) -> None:
    fetched.WANTED = fetched.WANTED[:1]


def _other_member(archive: Archive) -> None:
    fetched.WANTED = (replace(fetched.WANTED[0], sha256="0" * 64), *fetched.WANTED[1:])


@pytest.mark.parametrize(
    ("break_it", "expected"),
    [
        (_other_package, r"not the package that is known \(SHA-256 .* nothing of it was used"),
        (
            _moved_on,
            r"libcapstone4 4\S+ cannot be fetched from .*gone/, .*good/ \(E: 404 .*systems\.md",
        ),
        (_larger, "cannot be fetched|not the package that is known"),
        (_cache_is_a_file, "make it writable, or set XDG_CACHE_HOME"),
        (_library_is_missing, r"does not start: .*libcapstone-of.*install the library that is missing"),
        (_other_member, "holds no usr/bin/qemu-x86_64 such as is known"),
        (lambda archive: archive.tell("Ubuntu file:/"), "apt knows no archive of Debian: run `apt-get update`"),
        (lambda archive: archive.tell(), "apt knows no archive of Debian"),
        (lambda archive: archive.hold({**WHOLE, "OPTIONS": "-g port"}), "built without plugins"),
        (lambda archive: archive.hold({**WHOLE, "VERSION": "5.2.0"}), r"version 5\.2\.0 cannot trace"),
    ],
)
def test_each_failure_is_one_line_and_leaves_nothing(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[Archive], None], expected: str
) -> None:
    monkeypatch.setattr(fetched, "WANTED", fetched.WANTED)
    break_it(archive)
    with pytest.raises(RunError, match=expected) as failure:
        fetched.fetch_emulator()
    assert "\n" not in str(failure.value)
    assert not archive.installed
    if archive.cache.is_dir():
        assert list((archive.cache / "commutant" / "emulator").iterdir()) == []


def test_a_file_that_was_changed_in_the_cache_is_not_started(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(fetched.fetch_emulator().path)
    monkeypatch.setattr("commutant.guest.user_emulator._in_path", lambda: iter(()))
    os.truncate(path, 100)
    with pytest.raises(RunError, match=r"its SHA-256 differs\); run `commutant prepare --emulator`"):
        find_user_emulator()
    fetched.fetch_emulator()
    (fetched.folder() / LIBRARY).unlink()
    with pytest.raises(RunError, match=r"No such file.*run `commutant prepare --emulator`"):
        fetched.kept_emulator()
