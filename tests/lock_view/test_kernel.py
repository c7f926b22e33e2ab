"""A kernel's locks: what a workload says it needs, what goes into its guest, and whole runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest

from commutant.lock_view.recording.guest_image import build_image, read_workload
from commutant.lock_view.recording.kernel import DEFAULT_WORKLOAD, KernelTarget, record_kernel
from commutant.lock_view.study.kernel_names import KernelAddressNames
from commutant.support.errors import CommutantError, RunError, UsageError
from tests.repository.tree import ROOT

COMMUTANT = ROOT / ".venv" / "bin" / "commutant"


def script(folder: Path, text: str) -> Path:
    path = folder / "work.sh"
    path.write_text(text)
    return path


def locks(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMUTANT, "locks", *arguments], capture_output=True, text=True, check=False)


def test_a_workload_says_what_it_needs(tmp_path: Path) -> None:
    workload = read_workload(
        script(tmp_path, "# work\n# packages: gcc libc6-dev\n# sources: flac\nmake\n# packages: x\n")
    )
    assert (workload.packages, workload.sources) == (("gcc", "libc6-dev"), ("flac",))
    assert not workload.switches_recorder
    assert read_workload(script(tmp_path, "# recorded: between switches\nls\n")).switches_recorder
    default = read_workload(DEFAULT_WORKLOAD)
    assert "gcc" in default.packages and default.sources == ("flac",)


@pytest.mark.parametrize("text", ["", "# packages: gcc; rm\nls", "# sources:flac\nls", "# recorded: later\nls", "a\0b"])
def test_what_is_no_workload_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="expected") as failure:
        read_workload(script(tmp_path, text))
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("argument", ["linux:cpus=0", "linux:cpus=x", "linux:fs=ext4", "scalefs", "nothing"])
def test_a_target_that_has_no_locks_of_a_kernel_is_refused(argument: str) -> None:
    with pytest.raises(CommutantError, match="expected"):
        KernelTarget.parse(argument)


def test_targets_are_read(tmp_path: Path) -> None:
    kernel = tmp_path / "vmlinux"
    kernel.touch()
    assert KernelTarget.parse("linux").cpu_count == 4
    assert KernelTarget.parse(f"linux:cpus=8,kernel={kernel}") == KernelTarget(kernel, 8)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--target", "linux", "--", "ls"), "got both"),
        (("--workload", "x.sh"), "expected --target linux"),
        (("--target", "linux", "--workload", "/nowhere.sh"), "No such file"),
        (("--timeout", "nan", "--", "ls"), "expected a number of seconds"),
        (("--timeout", "inf", "--", "ls"), "expected a number of seconds"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], expected: str) -> None:
    answer = locks(*arguments)
    assert answer.returncode == 2
    assert expected in answer.stderr and "Traceback" not in answer.stderr


def test_functions_are_found_by_address(tmp_path: Path) -> None:
    kallsyms = tmp_path / "kallsyms"
    kallsyms.write_text(
        "0000000000001000 A per_cpu\nffffffff81000000 T first\nffffffff81000040 t second.cold\n"
        "ffffffff82000000 D data\n"
    )
    names = KernelAddressNames(kallsyms)
    stack = names.stack((0xFFFFFFFF81000044, 0xFFFFFFFF8100003F, 0x10))
    assert [frame.function for frame in stack] == ["second.cold", "first", "0x10"]
    kallsyms.write_text("not a symbol table\n")
    with pytest.raises(UsageError, match="expected lines of address"):
        KernelAddressNames(kallsyms)


@pytest.mark.long
def test_a_guests_image_holds_its_packages_and_the_workload(tmp_path: Path) -> None:
    image = build_image(read_workload(script(tmp_path, "# packages: grep\ntrue\n")))
    names = set(re.findall(rb"070701.{104}([^\0]+)\0", image, re.DOTALL))
    assert {b"init", b"workload", b"bin", b"usr/bin/grep", b"usr/bin/sh", b"usr/sbin/switch-recorder"} <= names


@pytest.mark.long
def test_a_run_names_its_locks_and_fits_the_schema(tmp_path: Path) -> None:
    path = script(tmp_path, "for i in 1 2 3 4; do ls -l /bin > /tmp/$i & done; wait\n")
    answer = locks("--target", "linux", "--workload", str(path), "--format", "json", "--top", "100")
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    schema = json.loads((ROOT / "docs" / "schemas" / "locks.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    names = {(lock["name"], lock["family"]) for lock in document["locks"]}
    assert {("struct mm_struct.mmap_lock", "rw_semaphore"), ("per-CPU runqueues.__lock", "spinlock")} <= names
    kernel = document["kernel"]
    assert kernel["named_percent"] >= 95
    assert kernel["calls"] > 10_000 and kernel["failed"] < kernel["calls"] / 100
    open_ends = sum(lock["never_released"] + lock["releases_without_acquire"] for lock in document["locks"])
    assert open_ends < kernel["calls"] / 1000


@pytest.mark.long
def test_locks_are_recorded_on_one_processor(tmp_path: Path) -> None:
    """There were none: the kernel took the prefix `lock` out of its instructions."""
    run = record_kernel(read_workload(script(tmp_path, "ls /bin > /tmp/listed\n")), KernelTarget(cpu_count=1))
    counts = run.record.kernel
    assert counts is not None and counts.calls > 1000 and counts.failed < counts.calls / 100
    assert run.record.locks


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo wrong; exit 7\n", "ended with exit code 7; its output: wrong"),
        ("echo c > /proc/sysrq-trigger\n", "the guest stopped: .*Kernel panic"),
    ],
)
def test_a_workload_that_fails_says_why(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(RunError, match=expected) as failure:
        record_kernel(read_workload(script(tmp_path, text)))
    assert "\n" not in str(failure.value)


@pytest.mark.long
def test_a_workload_that_never_ends_is_stopped_and_what_was_recorded_is_read(tmp_path: Path) -> None:
    run = record_kernel(read_workload(script(tmp_path, "while true; do ls / > /dev/null; done\n")), timeout_seconds=10)
    assert run.timed_out and run.record.locks


FUNCTIONS = (
    "_raw_spin_lock _raw_spin_lock_bh _raw_spin_lock_irq _raw_spin_lock_irqsave _raw_spin_trylock "
    "_raw_spin_trylock_bh _raw_read_lock _raw_read_lock_bh _raw_read_lock_irq _raw_read_lock_irqsave _raw_read_trylock "
    "_raw_write_lock _raw_write_lock_nested _raw_write_lock_bh _raw_write_lock_irq _raw_write_lock_irqsave "
    "_raw_write_trylock mutex_lock mutex_lock_interruptible mutex_lock_killable mutex_trylock ww_mutex_lock "
    "ww_mutex_lock_interruptible down_read down_read_interruptible down_read_killable down_read_trylock down_write "
    "down_write_killable down_write_trylock"
)


@pytest.mark.long
def test_the_kernels_own_probes_count_as_many_calls(tmp_path: Path) -> None:
    """A second count, made by the guest itself: probes of the kernel's tracer at the functions that acquire.

    A probe that is met while another is handled, by an interrupt, leaves no entry, but is counted as missed.
    """
    text = f"""# recorded: between switches
# packages: grep
cd /sys/kernel/tracing
echo 0 > tracing_on
echo 20000 > buffer_size_kb
for f in {FUNCTIONS}; do echo "p:count/$f $f" >> kprobe_events || exit 9; done
for e in events/count/*/enable; do echo 1 > $e; done
echo 1 > tracing_on
echo guest > /proc/sys/kernel/hostname
for i in 1 2 3; do (for j in 1 2; do ls -l /bin /usr/bin > /tmp/$i; done) & done; wait
echo guest > /proc/sys/kernel/hostname
echo 0 > tracing_on
for e in events/count/*/enable; do echo 0 > $e; done
echo counted $(grep -h -e entries -e overrun -e dropped per_cpu/cpu*/stats) missed $(cat kprobe_profile) > /dev/console
"""
    run = record_kernel(read_workload(script(tmp_path, text)))
    assert run.record.kernel is not None
    found = re.search(r"counted (.*) missed (.*)", run.console)
    assert found, run.console
    missed = sum(int(words) for words in found[2].split()[2::3])
    numbers = re.findall(r"(entries|overrun|dropped events): (\d+)", found[1])
    assert numbers and not any(int(count) for what, count in numbers if what != "entries"), found[1]
    probed = sum(int(count) for what, count in numbers if what == "entries")
    assert run.record.kernel.calls > 10_000
    assert run.record.kernel.calls == pytest.approx(probed + missed, rel=0.01)
