"""Debug information of kernels: taken only from the file that belongs to the kernel, reported in one line otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from commutant.support import artifacts
from commutant.support.errors import UsageError
from commutant.targets.linux.debug import kernel_stacks
from commutant.targets.registry import load_target

ADDRESS = 0xFFFFFFFF81000000
KALLSYMS = f"{ADDRESS:x} T vfs_read\n{ADDRESS + 64:x} T __pfx_schedule\n{ADDRESS + 64:x} T schedule\n".encode()


def test_another_kernels_file_is_refused() -> None:
    with pytest.raises(UsageError, match=r"another kernel's: at 0xffffffff81000000 expected vfs_read, found nothing$"):
        kernel_stacks(artifacts.runner_path(), KALLSYMS)


def test_a_file_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    text = tmp_path / "notes"
    text.write_text("no ELF file")
    with pytest.raises(UsageError, match=r"^debug=: .*notes: expected an ELF file of 64 bits") as error:
        kernel_stacks(text, KALLSYMS)
    assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match=r"missing: expected a vmlinux with debug information; there is no such file"):
        load_target(f"linux:debug={tmp_path / 'missing'}")


def test_functions_reach_to_the_next_and_aliases_are_all_known() -> None:
    behind = f"{ADDRESS + 128:x} T other\n{ADDRESS + 256:x} t of_module\t[module]\n{ADDRESS + 300:x} d data\n".encode()
    stacks = kernel_stacks(
        artifacts.runner_path(), (KALLSYMS + behind).replace(b"vfs_read", b"a").replace(b"T s", b"T b")
    )
    assert [stacks.start_of(name) for name in ("a", "__pfx_schedule", "bchedule")] == [
        ADDRESS,
        ADDRESS + 64,
        ADDRESS + 64,
    ]
    assert stacks.start_of("of_module") is None and stacks.start_of("data") is None
