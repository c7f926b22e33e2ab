"""The plugins meet the interface that the emulator offers, and say in one line what they miss."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commutant.guest import find_emulator
from commutant.support import artifacts, locks_plugin_path

SOURCE = Path(__file__).parent / "interface.c"


def _emulator(folder: Path, lowest: int, newest: int, *missing: str, target: str = "x86_64") -> Path:
    """A program that stands for a QEMU."""
    program = folder / "emulator"
    macros = [f"-DMIN={lowest}", f"-DCUR={newest}", f'-DTARGET="{target}"', *(f"-DWITHOUT_{name}" for name in missing)]
    subprocess.run(["gcc", "-rdynamic", "-o", str(program), str(SOURCE), *macros], check=True)
    return program


def _load(program: Path, plugin: Path) -> subprocess.CompletedProcess[str]:
    command = [str(program), str(plugin), "out=/dev/null", "record=off"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("lowest", "newest", "asked"), [(0, 1, "1"), (2, 2, "2"), (2, 3, "2"), (2, 4, "2")])
def test_one_plugin_asks_for_whichever_interface_is_there(tmp_path: Path, lowest: int, newest: int, asked: str) -> None:
    answer = _load(_emulator(tmp_path, lowest, newest), artifacts.plugin_path())
    assert (answer.returncode, answer.stdout.strip(), answer.stderr) == (0, asked, "")


@pytest.mark.parametrize(
    ("lowest", "newest", "missing", "target", "expected"),
    [
        (7, 9, (), "x86_64", "expected a QEMU with plugin interface 2, got one with 7 to 9"),
        (2, 4, (), "aarch64", "expected QEMU for x86_64, got one for aarch64"),
        (2, 4, ("CURRENT_CPU",), "x86_64", "expected a QEMU that exports 'current_cpu'"),
        (0, 1, ("CURRENT_CPU",), "x86_64", "expected a QEMU that exports 'current_cpu'"),
        (2, 4, ("AN_ADDRESS",), "x86_64", "undefined symbol: qemu_plugin_get_hwaddr"),
    ],
)
def test_what_an_emulator_lacks_is_told_in_one_line(
    tmp_path: Path, lowest: int, newest: int, missing: tuple[str, ...], target: str, expected: str
) -> None:
    answer = _load(_emulator(tmp_path, lowest, newest, *missing, target=target), artifacts.plugin_path())
    assert answer.returncode in (1, 2)
    assert expected in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_registers_that_are_not_there_are_told_before_anything_is_recorded(tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    layout.write_text("commutant-layout 1\n")
    for missing, expected in ((("REGISTERS",), "exports 'qemu_plugin_get_registers'"), ((), "")):
        program = _emulator(tmp_path, 2, 4, *missing)
        answer = subprocess.run(
            [str(program), str(artifacts.plugin_path()), "out=/dev/null", f"layout={layout}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert expected in answer.stderr
        assert bool(answer.returncode) == bool(expected)


@pytest.mark.parametrize("plugin", ["tracer", "lock recorder"])
def test_the_installed_emulator_exports_all_that_the_plugins_look_up(plugin: str) -> None:
    """What is no part of the interface comes and goes with the way a distribution builds QEMU."""
    path = artifacts.plugin_path() if plugin == "tracer" else locks_plugin_path()
    exported = _names(find_emulator().path, "--defined-only")
    wanted = {name for name in _names(str(path), "--undefined-only") if name.startswith("qemu_")}
    assert "qemu_plugin_register_vcpu_mem_cb" in wanted
    assert wanted | {"current_cpu", "qemu_get_cpu", "cpu_get_phys_page_debug", "curr_cflags"} <= exported


def _names(path: str, which: str) -> set[str]:
    command = ["nm", "--dynamic", which, path]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines}
