"""A kernel that is built and does not start: one line, and nothing of it is kept."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commutant.cli.kernel import try_start
from commutant.guest import keep_built, kept_kernels
from commutant.guest.kernel import KernelBuild
from commutant.support import RunError

BROKEN = """
const char banner[] = "Linux version 6.1.192-broken (x) #1 SMP";
void start(void) { __asm__("ud2"); }
__asm__(".section .note.Xen,\\"a\\",@note\\n.long 4, 8, 18\\n.asciz \\"Xen\\"\\n.quad start\\n.previous");
"""
"""The machine has no table of interrupts yet, so that it resets at once."""


def test_a_kernel_that_does_not_start_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "broken.c").write_text(BROKEN)
    vmlinux = tmp_path / "vmlinux"
    options = ["-O1", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-Wl,-e,start,--build-id=none"]
    subprocess.run(["gcc", *options, "-o", str(vmlinux), str(tmp_path / "broken.c")], check=True)
    facts = KernelBuild(
        source="linux",
        source_sha256="0" * 64,
        version="6.1.192",
        reference="6.1.0",
        config_sha256="1" * 64,
        compiler="gcc",
        patches=(),
        types_compared=0,
        types_that_differ=(),
    )
    keep_built(vmlinux, "broken", facts, None)
    with pytest.raises(RunError) as caught:
        try_start("broken")
    assert str(caught.value).startswith("broken was built and does not start: ")
    assert str(caught.value).endswith("; it is not kept")
    assert "\n" not in str(caught.value)
    assert not list(kept_kernels())
    assert not list((tmp_path / "cache" / "commutant" / "snapshots").glob("*/state"))
