"""Lines of a kernel's modules: from files of their own, which are relocatable, at addresses of the running kernel."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commutant import _native
from commutant.mtrace import Access, Finding
from commutant.support import artifacts
from commutant.support.errors import UsageError
from commutant.targets.linux.debug import kernel_stacks, module_files

SOURCE = """int counter;
static inline __attribute__((always_inline)) void grow(void)
{
\tcounter++;
}
void first(void)
{
\tgrow();
}
void third(void)
{
	counter = 0;
}
__attribute__((section(".text.cold"))) void second(void)
{
\tcounter--;
}
"""
FIRST, SECOND = 0xFFFFFFFFC0400000, 0xFFFFFFFFC0300010


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as debug packages have it; the kernel's own file is a program."""
    tree = tmp_path_factory.mktemp("debug")
    folder = tree / "lib" / "modules" / "6.1" / "kernel" / "fs"
    folder.mkdir(parents=True)
    (folder / "own.c").write_text(SOURCE)
    built_in = f"-fdebug-prefix-map={folder}=/build/reproducible-path/linux-6.1.192/fs"
    subprocess.run(["cc", "-g", "-O1", built_in, "-c", folder / "own.c", "-o", folder / "own-fs.ko"], check=True)
    (tree / "boot").mkdir()
    (tree / "boot" / "vmlinux-6.1").symlink_to(artifacts.runner_path())
    return tree / "boot" / "vmlinux-6.1"


def _kallsyms(**functions: int) -> bytes:
    listed = [f"{address:x} t {name}\t[own_fs]\n" for name, address in functions.items()]
    kernel = "ffffffff81000000 T a\nffffffff81000040 T first\n"
    return f"{kernel}{''.join(listed)}ffffffffc0500000 t end\t[other]\n".encode()


def test_modules_are_found_beside_the_kernels_file(vmlinux: Path) -> None:
    file = vmlinux.parent.parent / "lib/modules/6.1/kernel/fs/own-fs.ko"
    assert module_files(vmlinux) == {"own_fs": file}
    assert module_files(file.parent.parent.parent / "vmlinux") == {"own_fs": file}
    assert module_files(file.parent / "vmlinux") == {}


def test_frames_in_modules_have_inlined_functions_and_lines(vmlinux: Path) -> None:
    stacks = kernel_stacks(vmlinux, _kallsyms(first=FIRST, second=SECOND))
    inner, outer = stacks.code(FIRST)
    assert (inner[0], outer[0]) == ("grow", "first") and inner[1] is not None and inner[1][1] == 4
    (cold,) = stacks.code(SECOND)  # both functions are at 0 in the file
    assert cold[0] == "second" and cold[1] is not None and cold[1][1] == 16
    sides = (
        Access(core, True, 0, 4, "first", (f"first+0x0{module}",)) for core, module in enumerate((" [own_fs]", ""))
    )
    finding = stacks.expanded(Finding(0, "counter", "", "true", *sides))
    # The folder that the kernel was built in is left out: its sources lie elsewhere on other machines.
    assert finding.first.stack == ("grow fs/own.c:4", "first+0x0 [own_fs] fs/own.c:8")
    assert finding.second.stack == ("first+0x0",)  # the kernel's own function of that name


def test_another_kernels_module_is_refused(vmlinux: Path) -> None:
    with pytest.raises(UsageError, match=r"own-fs.ko: another kernel's: it has none of the functions"):
        kernel_stacks(vmlinux, _kallsyms(fourth=FIRST))
    path = module_files(vmlinux)["own_fs"]
    assert _native.RelocatableFile(path, {"first": FIRST}).code(FIRST)
    with pytest.raises(ValueError, match=r"own-fs.ko: another kernel's: \w+ lies elsewhere"):
        _native.RelocatableFile(path, {"first": FIRST, "third": FIRST + (1 << 16)})
    with pytest.raises(ValueError, match=r"expected an ELF file of 64 bits"):
        _native.RelocatableFile(path.parent / "own.c", {"first": FIRST})


def test_a_module_without_debug_information_is_refused(vmlinux: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "own.ko"
    subprocess.run(["strip", "-g", "-o", stripped, module_files(vmlinux)["own_fs"]], check=True)
    with pytest.raises(ValueError, match=r"own.ko: it has no debug information$"):
        _native.RelocatableFile(stripped, {"first": FIRST})
