"""The small parts of the target linux: options, initramfs, monitor, shared memory, the emulator's version."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commutant.guest import region as regions
from commutant.guest.cpio import CpioWriter, initramfs
from commutant.guest.emulator import find_emulator
from commutant.guest.qmp import Monitor
from commutant.guest.region import Region
from commutant.support.errors import RunError, UsageError
from commutant.targets.linux.target import LinuxOptions, LinuxTarget, parse_options


def test_options_are_a_file_system_and_a_kernel(tmp_path: Path) -> None:
    kernel = tmp_path / "vmlinux"
    kernel.touch()
    assert parse_options("linux", {}) == LinuxOptions("tmpfs")
    assert parse_options("linux:...", {"fs": "xfs", "kernel": str(kernel)}) == LinuxOptions("xfs", kernel=kernel)


def test_further_options_are_of_the_machine_and_the_mount() -> None:
    options = {"mount": "noatime,sync", "append": "slub_debug=P quiet", "cpus": "4", "memory": "2048"}
    parsed = LinuxOptions(mount="noatime,sync", append="slub_debug=P quiet", cpus=4, memory_mib=2048)
    assert parse_options("linux:...", options) == parsed


@pytest.mark.parametrize(("security", "are_on"), [("off", False), ("on", True)])
def test_security_modules_are_off_unless_they_are_asked_for(security: str, are_on: bool) -> None:
    options = parse_options("linux:...", {"security": security, "append": "quiet"})
    target = LinuxTarget("linux:...", options)
    words = target.guest(2).command_line.split()
    assert words[-1] == "quiet"
    assert ("apparmor=0" not in words and "lsm=capability" not in words) is are_on


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"security": "yes"}, "security=yes: expected one of off, on"),
        ({"fs": "ntfs"}, "fs=ntfs: expected one of tmpfs, ramfs, ext4, xfs, btrfs, overlay"),
        ({"cpus": "1"}, "cpus=1: expected a number from 2 to 32"),
        ({"cpus": "9" * 5000}, "expected a number"),
        ({"memory": "511"}, "memory=511: expected a number from 512 to 3072"),
        ({"mount": "a b"}, "expected printable ASCII"),
        ({"append": "commutant.fs=xfs"}, "without 'commutant.'"),
        ({"append": "x\n"}, "expected printable ASCII"),
        ({"append": "x" * 600}, "at most 512 characters"),
        ({"kernel": "/nowhere/vmlinuz"}, "no file /nowhere/vmlinuz"),
        ({"speed": "high"}, "unknown option 'speed'; expected fs="),
    ],
)
def test_bad_options_are_named(options: dict[str, str], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        parse_options("linux:x", options)


def _entries(archive: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content of each entry, read by the book."""
    position = 0
    while True:
        assert archive[position : position + 6] == b"070701"
        fields = [int(archive[position + 6 + 8 * index : position + 14 + 8 * index], 16) for index in range(13)]
        name_at = position + 110
        name = archive[name_at : name_at + fields[11] - 1].decode()
        content_at = -(-(name_at + fields[11]) // 4) * 4
        if name == "TRAILER!!!":
            return
        yield name, fields[1], archive[content_at : content_at + fields[6]]
        position = -(-(content_at + fields[6]) // 4) * 4


@given(st.lists(st.tuples(st.text("abc/", min_size=1, max_size=9), st.binary(max_size=40)), max_size=6))
def test_an_archive_holds_what_was_put_in(files: list[tuple[str, bytes]]) -> None:
    writer = CpioWriter()
    for name, content in files:
        writer.program(name, content)
    assert list(_entries(writer.finish())) == [(name, 0o100755, content) for name, content in files]


def test_modules_and_disk_are_laid_out_in_order() -> None:
    archive = initramfs(b"runner", [("b", b"first"), ("a", b"second")], [(0, b"super"), (0x12000, b"block")])
    contents = {name: content for name, _, content in _entries(archive)}
    assert [name for name in contents if name.startswith("modules/")] == ["modules/00-b.ko", "modules/01-a.ko"]
    assert contents["modules/01-a.ko"] == b"second"
    assert {name: contents[name] for name in contents if name.startswith("disk/")} == {
        "disk/000000000000": b"super",
        "disk/000000012000": b"block",
    }


def test_the_initramfs_starts_the_runner_and_lets_it_speak() -> None:
    entries = {name: (mode, content) for name, mode, content in _entries(initramfs(b"runner"))}
    assert entries["init"] == (0o100755, b"runner")
    assert entries["dev/console"] == (0o020600, b"")
    assert initramfs(b"runner") == initramfs(b"runner")


@contextlib.contextmanager
def _monitor(lines: list[bytes]) -> Iterator[Monitor]:
    """A monitor whose far end has said these lines and hung up."""
    near, far = socket.socketpair()
    with near, far:
        far.sendall(b"".join(line + b"\n" for line in lines))
        far.shutdown(socket.SHUT_WR)
        yield Monitor(near, 10)


GREETING = [b'{"QMP": {}}', b'{"return": {}}']


def test_the_monitor_passes_events_by_and_returns_answers() -> None:
    with _monitor([*GREETING, b'{"event": "STOP"}', b'{"return": {"status": "running"}}']) as monitor:
        assert monitor.execute("query-status") == {"status": "running"}
        with pytest.raises(RunError, match="closed before it answered"):
            monitor.execute("quit")


def test_the_monitor_reports_errors_and_failed_migrations() -> None:
    answers = [
        b'{"error": {"class": "x", "desc": "no such thing"}}',
        b'{"event": "MIGRATION", "data": {"status": "active"}}',
        b'{"event": "MIGRATION", "data": {"status": "failed"}}',
        b'{"return": {"error-desc": "disk full"}}',
    ]
    with _monitor([*GREETING, *answers]) as monitor:
        with pytest.raises(RunError, match="frobnicate: no such thing"):
            monitor.execute("frobnicate")
        with pytest.raises(RunError, match="disk full"):
            monitor.wait_for_migration()


@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([*GREETING, b"7", b"[]", b'{"error": 1}']))))
def test_whatever_the_monitor_says_gives_an_answer_or_one_line(lines: list[bytes]) -> None:
    try:
        with _monitor(lines) as monitor:
            monitor.execute("query-status")
    except RunError as error:
        assert "QEMU's monitor" in str(error)


@pytest.fixture
def ram() -> Iterator[int]:
    """An empty RAM."""
    descriptor = os.memfd_create("test-ram")
    os.ftruncate(descriptor, regions.LEAST_RAM_BYTES)
    yield descriptor
    os.close(descriptor)


def _guest_writes(ram: int, index: int, value: int) -> None:
    os.pwrite(ram, value.to_bytes(8, "little"), regions.ADDRESS + 8 * index)


def test_batches_take_turns_in_two_slots(ram: int) -> None:
    region = Region(ram)
    assert not region.ready and not region.exporting
    assert [region.submit(b"first"), region.submit(b"second")] == [0, 1]
    with pytest.raises(AssertionError):
        region.submit(b"third")
    _guest_writes(ram, 3, 1)
    assert region.completed == 1
    assert region.submit(b"third") == 2
    first_slot = os.pread(ram, 5, regions.ADDRESS + 0x1000)
    assert first_slot == b"third"
    region.close()


def test_impossible_sizes_from_the_guest_are_refused(ram: int) -> None:
    region = Region(ram)
    _guest_writes(ram, 9, 1 << 40)
    with pytest.raises(RunError, match="results of"):
        region.results(0)
    _guest_writes(ram, 5, 1 << 40)
    with pytest.raises(RunError, match="offers"):
        region.take_export()
    region.close()
    region.close()


def test_the_host_sees_the_guest_s_stages(ram: int) -> None:
    region = Region(ram)
    os.pwrite(ram, b"CMTREGN1", regions.ADDRESS)
    os.pwrite(ram, b"text", regions.ADDRESS + 0x1000)
    _guest_writes(ram, 5, 4)
    _guest_writes(ram, 1, 1)
    assert region.exporting
    assert region.take_export() == b"text"
    assert not region.exporting
    _guest_writes(ram, 1, 2)
    assert region.ready
    _guest_writes(ram, 4, (1 << 64) - 1)
    assert region.window is None
    _guest_writes(ram, 4, 7)
    assert region.window == 7
    assert mmap.PAGESIZE == 4096
    region.close()


def _fake_qemu(folder: Path, script: str) -> None:
    program = folder / "qemu-system-x86_64"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo QEMU emulator version 5.2.0", "version 5.2.0 cannot trace"),
        ("echo hello", "expected a version"),
        ("exit 7", "does not start"),
    ],
)
def test_an_unfit_qemu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: str) -> None:
    _fake_qemu(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(RunError, match=expected):
        find_emulator()


def test_a_fit_qemu_is_found_and_a_missing_one_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="not in PATH"):
        find_emulator()
    _fake_qemu(tmp_path, "echo 'QEMU emulator version 7.2.22 (Debian 1:7.2)'")
    assert find_emulator().version == "version 7.2.22 (Debian 1:7.2)"
    assert find_emulator().untested == ""
    _fake_qemu(tmp_path, "echo 'QEMU emulator version 11.1.0'")
    assert find_emulator().untested.startswith("QEMU version 11.1.0 was not tested (tested: 7.2 and 10.0)")


def test_json_of_the_monitor_is_one_line() -> None:
    near, far = socket.socketpair()
    far.sendall(b'{"QMP": {}}\n{"return": {}}\n{"return": 1}\n')
    monitor = Monitor(near, 10)
    assert monitor.execute("x", {"a": "line\nbreak"}) == 1
    sent = far.recv(4096).decode().splitlines()
    assert [json.loads(line)["execute"] for line in sent] == ["qmp_capabilities", "x"]
    near.close()
    far.close()
