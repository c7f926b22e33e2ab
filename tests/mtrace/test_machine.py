"""The tracer on a real kernel, with sharing planted by an init of our own (guest_init.c).

Every rule is seen at work: with it the planted conflict is counted as ignored, without it the same conflict is found.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest

from commutant.guest.cpio import initramfs
from commutant.guest.emulator import Emulator, find_emulator
from commutant.guest.kernel import default_kernel
from commutant.guest.machine import Hardware
from commutant.guest.snapshot import Guest as RunnerGuest
from commutant.guest.snapshot import take_snapshot
from commutant.mtrace.finding import Finding
from commutant.mtrace.trace import TracedWindow, TraceReader, kernel_layout, kernel_names
from commutant.support import artifacts
from commutant.support.errors import RunError

WINDOWS = 6
MAJORITY = 4
# no_timer_check: on a loaded machine the emulated timer's ticks come too late for the check, which panics.
COMMAND_LINE = (
    "console=ttyS0 quiet nokaslr slab_nomerge lsm=capability apparmor=0 mitigations=off no_timer_check panic=-1"
)
RULES = ("runner", "interrupt", "softirq", "other_task", "allocation_clear", "device_memory")


@dataclass(frozen=True)
class Guest:
    """All that QEMU needs to boot the planted init, as files."""

    emulator: Emulator
    folder: Path
    kallsyms: bytes
    btf: bytes

    def boot(self, name: str, rules: str, threads: str = "single") -> tuple[Path, list[str]]:
        """Boots once and gives the trace and the scenarios; `rules` is `on` or `off`, for all of them."""
        trace, ram = self.folder / f"{name}.trace", self.folder / f"{name}.ram"
        plugin = [f"{artifacts.plugin_path()}", f"out={trace}", f"layout={self.folder / 'layout'}", f"ram={ram}"]
        plugin += [f"ignore_{rule}={rules}" for rule in RULES]
        command = [
            *(self.emulator.path, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none"),
            *(
                "-machine",
                "pc,hpet=off,memory-backend=ram",
                "-accel",
                f"tcg,thread={threads}",
                "-cpu",
                "max,-erms,-fsrm",
            ),
            *("-smp", "3", "-m", "256", "-serial", "stdio"),
            *("-object", f"memory-backend-file,id=ram,size=256M,mem-path={ram},share=on"),
            *("-kernel", str(self.folder / "vmlinux"), "-initrd", str(self.folder / "initramfs")),
            *("-append", COMMAND_LINE),
            *("-plugin", ",".join(plugin)),
        ]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        console = done.stdout.splitlines()
        assert done.returncode == 0 and "done" in console, (done.stderr, console)
        return trace, [line.removeprefix("scenario ") for line in console if line.startswith("scenario ")]

    def reader(self, trace: BinaryIO) -> TraceReader:
        """Reads a trace with this kernel's names."""
        return TraceReader(trace.fileno(), kernel_names(self.kallsyms, self.btf))

    def trace(self, name: str, rules: str) -> Mapping[str, list[TracedWindow]]:
        """Boots once and gives the windows of each scenario."""
        trace, scenarios = self.boot(name, rules)
        with trace.open("rb") as file:
            batches = list(iter(self.reader(file).read_batch, None))
        assert batches.pop() == [], "the end of the trace"
        assert [len(batch) for batch in batches] == [WINDOWS] * len(scenarios)
        return dict(zip(scenarios, batches, strict=True))


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    folder = tmp_path_factory.mktemp("machine")
    emulator, kernel = find_emulator(), default_kernel()
    # The kernel's symbols, which a guest alone can tell: those of the target's own snapshot, of the same kernel.
    snapshot = take_snapshot(emulator, RunnerGuest(kernel, artifacts.runner_path(), Hardware(2)), print)
    init = folder / "init"
    source = Path(__file__).with_name("guest_init.c")
    compiler = ["gcc", "-O1", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", str(init), str(source)]
    subprocess.run(compiler, check=True)
    kallsyms, btf = snapshot.kallsyms.read_bytes(), snapshot.btf.read_bytes()
    (folder / "layout").write_text(kernel_layout(kallsyms, btf))
    (folder / "vmlinux").write_bytes(kernel.read())
    (folder / "initramfs").write_bytes(initramfs(init.read_bytes()))
    return Guest(emulator, folder, kallsyms, btf)


@pytest.fixture(scope="module")
def with_rules(guest: Guest) -> Mapping[str, list[TracedWindow]]:
    return guest.trace("with-rules", "on")


@pytest.fixture(scope="module")
def without_rules(guest: Guest) -> Mapping[str, list[TracedWindow]]:
    return guest.trace("without-rules", "off")


def stable_names(windows: list[TracedWindow]) -> set[str]:
    """Names found in most windows of a scenario."""
    counts = Counter(name for window in windows for name in {finding.name for finding in window.findings})
    return {name for name, count in counts.items() if count >= MAJORITY}


def find(windows: list[TracedWindow], name: str) -> Finding:
    """One finding of that name."""
    return next(finding for window in windows for finding in window.findings if finding.name == name)


def ignored(windows: list[TracedWindow], rule: str) -> int:
    return sum(window.ignored.get(rule, 0) for window in windows)


def test_calls_that_share_nothing_have_no_finding(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    windows = with_rules["getppid"]
    assert stable_names(windows) == set()
    first, second = sorted(windows[0].counted_accesses)[-2:]
    assert 0 < first <= second


def test_a_reference_count_is_found_with_both_stacks(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    windows = with_rules["fstat"]
    assert stable_names(windows) == {"struct file.f_count"}
    finding = find(windows, "struct file.f_count")
    assert finding.sharing == "true"
    for core, access in enumerate((finding.first, finding.second)):
        assert (access.core, access.write, access.size_bytes) == (core, True, 8)
        functions = [frame.split("+")[0] for frame in access.stack]
        assert functions[0] == access.function
        assert functions[-2:] == ["do_syscall_64", "entry_SYSCALL_64_after_hwframe"]
        assert "__do_sys_newfstat" in functions


def test_creation_in_one_directory_shares_the_parent(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    names = stable_names(with_rules["create"])
    assert {"struct dentry.d_lockref", "struct inode.i_rwsem"} <= names


def test_user_memory_counts_by_what_is_behind_its_address(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    false = [finding for window in with_rules["user-false"] for finding in window.findings]
    assert len(false) >= MAJORITY and {finding.sharing for finding in false} == {"false"}
    assert {(finding.first.offset, finding.second.offset) for finding in false} == {(0, 8)}
    assert "user page" in stable_names(with_rules["user-true"]), "two processes, one page"
    assert find(with_rules["user-true"], "user page").sharing == "true"
    assert stable_names(with_rules["user-private"]) == set(), "two processes, one address, two pages"


def test_an_access_across_a_border_of_pages_touches_what_is_behind_both(
    with_rules: Mapping[str, list[TracedWindow]],
) -> None:
    """The second page lies elsewhere in memory than behind the first: there the other process meets it."""
    found = [finding for window in with_rules["user-border"] for finding in window.findings]
    assert "user page" in stable_names(with_rules["user-border"])
    finding = find(with_rules["user-border"], "user page")
    assert finding.sharing == "true"
    assert {(one.offset, one.size_bytes) for one in (finding.first, finding.second)} == {(0, 4), (0, 8)}, found


def test_an_interrupt_that_a_call_sends_counts(with_rules: Mapping[str, list[TracedWindow]]) -> None:
    findings = [finding for window in with_rules["shoot-down"] for finding in window.findings]
    sent = [finding for finding in findings if finding.second.stack[-1].startswith("asm_sysvec_call_function")]
    assert any("munmap" in frame for finding in sent for frame in finding.first.stack)
    windows_with_it = {window.sequence for window in with_rules["shoot-down"] if set(window.findings) & set(sent)}
    assert len(windows_with_it) >= MAJORITY


@pytest.mark.parametrize(("scenario", "rule"), [("runner", "runner"), ("timer", "interrupt"), ("yield", "other_task")])
def test_each_rule_removes_what_is_found_without_it(
    scenario: str,
    rule: str,
    with_rules: Mapping[str, list[TracedWindow]],
    without_rules: Mapping[str, list[TracedWindow]],
) -> None:
    assert ignored(with_rules[scenario], rule) >= MAJORITY
    assert stable_names(with_rules[scenario]) == set()
    assert sum(map(len, (window.findings for window in without_rules[scenario]))) >= MAJORITY
    assert all(not window.ignored for windows in without_rules.values() for window in windows)


def test_without_rules_the_other_task_shares_the_file(without_rules: Mapping[str, list[TracedWindow]]) -> None:
    # It has descriptors of its own, so that it reads the file without taking a reference (fdget).
    assert any(name.startswith("struct file.f_count") for name in stable_names(without_rules["yield"]))


def test_a_machine_with_several_threads_is_refused(guest: Guest) -> None:
    trace, _ = guest.boot("threads", "on", threads="multi")
    with trace.open("rb") as file, pytest.raises(RunError, match="the tracer says: expected -accel tcg,thread=single"):
        list(iter(guest.reader(file).read_batch, None))
