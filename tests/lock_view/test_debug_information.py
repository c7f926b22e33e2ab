"""Locks of a stripped program, named by debug information that debuginfod's client downloads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commutant.lock_view import LockStudy, record_program, study
from tests.lock_view.test_planted import COMPILERS, HERE

CLIENT = """#!/bin/sh
# Stands for elfutils' client and its server: files by build id.
id=$(readelf -n "$2" | sed -n 's/.*Build ID: //p')
echo "$id" >> "{folder}/asked"
[ -f "{folder}/$id" ] || exit 1
mkdir -p "$DEBUGINFOD_CACHE_PATH/$id" && cp "{folder}/$id" "$DEBUGINFOD_CACHE_PATH/$id/debuginfo"
"""


@pytest.fixture
def stripped(tmp_path: Path) -> Path:
    program = tmp_path / "program"
    subprocess.run([*COMPILERS["planted.c"], "-Wl,--build-id", "-o", program, HERE / "planted.c"], check=True)
    shown = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = shown.rpartition("Build ID: ")[2].split()[0]
    server = tmp_path / "server"
    server.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", program, server / build_id], check=True)
    subprocess.run(["strip", program], check=True)
    client = server / "debuginfod-find"
    client.write_text(CLIENT.format(folder=server))
    client.chmod(0o755)
    return program


def studied(program: Path) -> LockStudy:
    return study(record_program([str(program), "mutex", "50"], timeout_seconds=300.0).records[0])


def names(program: Path) -> list[str]:
    return [one.name for one in studied(program).classes]


def test_a_stripped_program_is_named_by_what_is_downloaded(
    stripped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tmp_path / "server"
    monkeypatch.setenv("PATH", f"{server}:/usr/bin:/bin")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    assert "planted_mutex" not in names(stripped)
    assert not (server / "asked").exists(), "nobody named a server, so nothing is asked for"
    monkeypatch.setenv("DEBUGINFOD_URLS", "nowhere")
    assert "planted_mutex" in names(stripped)
    assert (server / "asked").exists()


def test_debug_information_of_another_build_is_passed_over_and_said(
    stripped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (build,) = [path for path in (tmp_path / "server").iterdir() if path.name != "debuginfod-find"]
    other = tmp_path / "cache" / build.name / "debuginfo"
    other.parent.mkdir(parents=True)
    built = [*COMPILERS["planted.c"], "-Wl,--build-id=0x0123456789abcdef", "-o", str(other), str(HERE / "planted.c")]
    subprocess.run(built, check=True)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    found = studied(stripped)
    assert "planted_mutex" not in [one.name for one in found.classes]
    assert list(found.unreadable.values()) == [f"{stripped}: its debug information, {other}, is of another build"]
