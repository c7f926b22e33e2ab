"""File systems under test: disks that their own tools make, kernels that lack one, and what is shared on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from commutant.corpus.file import Corpus
from commutant.corpus.testcase import TestCase
from commutant.guest.emulator import find_emulator
from commutant.guest.file_systems import DISK_BYTES, FILE_SYSTEMS, GuestFileSystem, make_disk, tool_version
from commutant.guest.kernel import default_kernel
from commutant.guest.machine import Hardware
from commutant.guest.snapshot import Guest, take_snapshot
from commutant.lang.load import load_interface
from commutant.runs import Check
from commutant.runs.directory import load_run_info
from commutant.support import artifacts
from commutant.support.errors import RunError, UsageError
from commutant.targets.base import Job
from commutant.targets.linux.target import LinuxOptions, LinuxTarget
from commutant.targets.registry import load_target
from commutant.testgen.generation import generate
from tests.targets.handwritten import CREATE_CREATE, LINK_LINK, RIGHT

MAGIC = {"ext4": (0x438, b"\x53\xef"), "xfs": (0, b"XFSB"), "btrfs": (0x10040, b"_BHRfS_M")}
"""Where the kernel looks for what tells the file system from others."""


@cache
def corpus() -> Corpus:
    """Tests of names."""
    return generate(load_interface("names"), ("open", "link"), level="conflict")


def renames() -> list[TestCase]:
    """Tests that take a lock which is a variable of its own."""
    return list(generate(load_interface("names"), ("rename", "rename"), level="path").tests[:20])


def sample() -> list[TestCase]:
    """Thirty of them, the same each time, and those written by hand."""
    return [*RIGHT, *random.Random(30).sample(corpus().tests, 30)]


@pytest.mark.parametrize("name", MAGIC)
def test_a_disk_holds_the_file_system_in_few_bytes(name: str) -> None:
    parts = make_disk(FILE_SYSTEMS[name])
    place, magic = MAGIC[name]
    assert any(start <= place and content[place - start :].startswith(magic) for start, content in parts)
    ends = [start + len(content) for start, content in parts]
    assert all(end < start for end, (start, _) in zip(ends, parts[1:], strict=False))
    assert ends[-1] <= DISK_BYTES
    assert sum(len(content) for _, content in parts) < DISK_BYTES // 100


def test_file_systems_without_a_disk_get_none() -> None:
    for name in FILE_SYSTEMS.keys() - MAGIC.keys():
        assert make_disk(FILE_SYSTEMS[name]) == []
        assert tool_version(FILE_SYSTEMS[name]) == ""


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (("mkfs.nowhere",), "mkfs.nowhere is not there; run `make setup`, or install Debian's nowhere-progs"),
        (("mke2fs", "-t", "nonsense"), "mke2fs -t nonsense .*disk: "),
        (("false",), "false .*disk: exit code 1"),
    ],
)
def test_a_tool_that_is_missing_or_fails_is_one_line(tool: tuple[str, ...], expected: str) -> None:
    with pytest.raises(RunError, match=expected) as caught:
        make_disk(GuestFileSystem("nowhere", tool=tool, package="nowhere-progs"))
    assert "\n" not in str(caught.value)


def _guest(file_system: str) -> Guest:
    entry = FILE_SYSTEMS[file_system]
    return Guest(default_kernel(), artifacts.runner_path(), Hardware(2, entry.memory_mib), entry)


def _without_modules(guest: Guest) -> Guest:
    return replace(guest, kernel=replace(guest.kernel, load_orders={}))


def _without_disk_driver(guest: Guest) -> Guest:
    orders = {name: order for name, order in guest.kernel.load_orders.items() if name != "brd"}
    return replace(guest, kernel=replace(guest.kernel, load_orders=orders))


def _badly_mounted(guest: Guest) -> Guest:
    return replace(guest, mount_options="data=nonsense")


@pytest.mark.parametrize(
    ("change", "kind", "expected"),
    [
        (_without_modules, UsageError, "does not have the file system ext4: it is no part of it, and no module came"),
        pytest.param(_without_disk_driver, RunError, "/dev/ram0: No such file or directory", marks=pytest.mark.long),
        (_badly_mounted, RunError, "mounting ext4 on /w with data=nonsense: Invalid argument"),
    ],
)
def test_a_guest_that_cannot_mount_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Guest], Guest],
    kind: type[Exception],
    expected: str,
) -> None:
    guest = change(_guest("ext4"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(kind, match=expected) as caught:
        take_snapshot(find_emulator(), guest, lambda _doing: None)
    assert "\n" not in str(caught.value)
    assert [path.suffix for path in (tmp_path / "commutant" / "snapshots").iterdir()] == [".lock"]


@pytest.fixture(
    scope="module", params=["ext4", *(pytest.param(fs, marks=pytest.mark.long) for fs in ("xfs", "btrfs", "overlay"))]
)
def target(request: pytest.FixtureRequest) -> Iterator[LinuxTarget]:
    """The target on each, started: the self-test has passed."""
    target = LinuxTarget(f"linux:fs={request.param}", LinuxOptions(request.param))
    target.start(lambda _: None, 2)
    yield target
    target.close()


def test_calls_do_what_they_do_on_tmpfs(target: LinuxTarget) -> None:
    (session,) = target.sessions(1)
    jobs = [Job(test, order) for test in sample() for order in range(len(test.orders))]
    for record in session.run(jobs):
        assert (record.wrong, record.crashed) == (None, None), record.job.test.id
    session.close()


OWN = {
    "ext4": ("struct ext4_inode_info.", "ext4_create"),
    "xfs": ("struct xfs_inode.", "xfs_create"),
    "btrfs": ("struct btrfs_inode.", "btrfs_create"),
    "overlay": ("struct ovl_", "ovl_create_object"),
}
"""A type of the file system's module, of which two creations or two links share a field, and a function of it."""


@pytest.mark.long
def test_mount_options_reach_the_file_system() -> None:
    """ext4 without delayed allocation and with times of access: both kinds of options are taken."""
    target = LinuxTarget("linux:fs=ext4", LinuxOptions("ext4", mount="strictatime,nodelalloc"))
    try:
        target.start(lambda _: None, 2)
        assert "commutant.mount=strictatime,nodelalloc" in str(target.describe()["kernel_command_line"])
    finally:
        target.close()


def test_types_and_functions_of_modules_are_named(target: LinuxTarget) -> None:
    (session,) = target.sessions(1)
    records = list(session.run([Job(test, order) for test in (CREATE_CREATE, LINK_LINK) for order in (0, 1, 0, 1)]))
    session.close()
    kind, function = OWN[target.options.file_system]
    names = {finding.name for record in records for finding in record.findings}
    frames = {frame for record in records for finding in record.findings for frame in finding.first.stack}
    assert any(kind in name for name in names), sorted(names)
    assert any(frame.startswith(f"{function}+") for frame in frames), sorted(frames)


def test_a_kernel_that_panics_in_one_test_costs_that_test_alone(tmp_path: Path) -> None:
    """An unknown non-maskable interrupt, which this kernel is set to panic at, falls into some window."""
    target = LinuxTarget("linux", LinuxOptions(append="unknown_nmi_panic=1"))
    with Check.new(corpus(), target, jobs=1, repeats=1, directory=tmp_path / "run") as check:
        check.start(lambda _doing: None)
        (session,) = check._sessions
        done: list[int] = []

        def interrupt(_progress: object) -> None:
            if not done:
                session.monitor.execute("inject-nmi")  # type: ignore[attr-defined]
            done.append(1)

        run = check.run(interrupt)
    counts = run.summary
    assert (counts.crashed, counts.wrong_result, counts.skipped) == (1, 0, 0)
    assert counts.tests == len(corpus().tests)
    (crashed,) = [verdict for verdict in run.verdicts() if verdict.outcome == "crashed"]
    assert "Kernel panic" in crashed.detail


def test_a_kernel_without_types_is_named_by_symbols_and_that_is_said(tmp_path: Path) -> None:
    image = tmp_path / "vmlinux"
    image.write_bytes(default_kernel().read().replace(b"\0.BTF\0", b"\0.XTF\0"))
    target = LinuxTarget("linux", LinuxOptions(kernel=image))
    target.start(lambda _: None, 2)
    try:
        assert "has no type information (CONFIG_DEBUG_INFO_BTF)" in str(target.describe()["limits"])
        (session,) = target.sessions(1)
        tests = [*RIGHT, *renames()]
        records = list(session.run([Job(test, order) for test in tests for order in range(len(test.orders))]))
    finally:
        target.close()
    assert [record.wrong or record.crashed for record in records] == [None] * len(records)
    findings = [finding for record in records for finding in record.findings]
    assert any("openat" in frame for finding in findings for frame in finding.first.stack)
    names = {finding.name for finding in findings}
    assert "unknown" in names and "rename_lock" in names


@pytest.mark.long
@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs", "overlay"])
def test_names_run_to_the_end_and_again_from_run_json_alone(name: str, tmp_path: Path) -> None:
    """The whole interface, as `check names` runs it; then a part of it, as `repeat` does."""
    whole = generate(load_interface("names"), None, level="conflict")
    with Check.new(whole, load_target(f"linux:fs={name}"), jobs=2, directory=tmp_path / "whole") as check:
        check.start(lambda _doing: None)
        counts = check.run().summary
    assert counts.tests == len(whole.tests) > 1000
    assert (counts.wrong_result, counts.crashed, counts.skipped) == (0, 0, 0)
    part = replace(whole, tests=whole.tests[::10])
    target = load_target(f"linux:fs={name},mount=strictatime,append=quiet,cpus=3,memory=1536")
    runs = []
    with Check.new(part, target, jobs=2, repeats=2, seed=7, directory=tmp_path / "part") as check:
        check.start(lambda _doing: None)
        runs.append(check.run())
    with Check.repeat(
        load_run_info(tmp_path / "part" / "run.json"), part, jobs=2, directory=tmp_path / "again"
    ) as check:
        check.start(lambda _doing: None)
        runs.append(check.run())
    first, again = ({verdict.test_id: verdict.outcome for verdict in run.verdicts()} for run in runs)
    assert first.keys() == again.keys()
    assert sum(first[test] != again[test] for test in first) <= 0.02 * len(first)
    assert runs[0].info.target_description == runs[1].info.target_description
